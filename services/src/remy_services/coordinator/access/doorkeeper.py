"""Lets callers in by their tokens, or turns them away. Decides; the server asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import grpc

from remy_services.coordinator.access.caller import Caller
from remy_services.coordinator.access.roles import METHOD_ROLES, OPEN, Role
from remy_services.coordinator.access.tokens import Tokens
from remy_services.coordinator.answering.refusal import CallRefused

_SCHEME = "bearer "
#: Whoever calls where no tokens are asked for.
LOCAL = Caller("local", Role.ADMIN)


@dataclass
class Doorkeeper:
    """Knows the tokens of the moment; None: everybody may do everything."""

    tokens: Tokens | None

    def admit(self, method: str, metadata: Iterable[tuple[str, str | bytes]]) -> Caller | None:
        """Who calls this method; None if it is open to anybody. Raises CallRefused."""
        roles = METHOD_ROLES.get(method)
        if roles is OPEN:
            return None
        caller = LOCAL if self.tokens is None else _caller(self.tokens, metadata)
        if roles is None:
            raise CallRefused(grpc.StatusCode.UNIMPLEMENTED, "this server has no such method")
        if caller.role not in roles:
            raise CallRefused(
                grpc.StatusCode.PERMISSION_DENIED,
                f"{method.rpartition('/')[2]} is not for {caller.name}, whose role is "
                f"{caller.role}; it needs one of {', '.join(sorted(roles))}",
            )
        return caller


def _caller(tokens: Tokens, metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
    given = [value for key, value in metadata if key == "authorization"]
    if len(given) != 1 or not isinstance(given[0], str):
        raise _not_authenticated("the call carries no token")
    scheme, token = given[0][: len(_SCHEME)], given[0][len(_SCHEME) :]
    caller = tokens.caller_with(token.strip()) if scheme.lower() == _SCHEME else None
    if caller is None:
        raise _not_authenticated("the call's token is not known here")
    return caller


def _not_authenticated(message: str) -> CallRefused:
    return CallRefused(grpc.StatusCode.UNAUTHENTICATED, message)
