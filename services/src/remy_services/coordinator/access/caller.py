"""Who makes the call that is being answered."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from remy_services.coordinator.access.roles import Role


@dataclass(frozen=True)
class Caller:
    """Somebody who was let in."""

    #: Owns the jobs that it submits.
    name: str
    role: Role


_caller: ContextVar[Caller] = ContextVar("caller")


def set_caller(caller: Caller) -> None:
    """For the rest of this call."""
    _caller.set(caller)


def current_caller() -> Caller:
    """Who makes this call. Raises LookupError in a call that is open to everybody."""
    return _caller.get()
