"""What the launcher needs of a cluster: Jobs and Pods watched, Jobs applied and removed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from remy_services.kubernetes.settings import Owner

Kind = Literal["Job", "Pod"]


@dataclass(frozen=True)
class Listed:
    """All objects of a kind, as they are now."""

    kind: Kind
    objects: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Changed:
    """One object is new, or is not what it was."""

    kind: Kind
    object: Mapping[str, Any]


@dataclass(frozen=True)
class Gone:
    """One object was removed."""

    kind: Kind
    object: Mapping[str, Any]


Change = Listed | Changed | Gone


class Cluster(Protocol):
    """What the launcher needs of a cluster. Every method may raise Unreachable and Refused."""

    def watch(self, kind: Kind) -> AsyncIterator[Change]:
        """What there is, and then what changes, for as long as the API server tells."""

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        """Makes the Job, or makes it so, by server-side apply."""

    async def remove(self, name: str) -> None:
        """Removes a Job and its pods; one that is gone already is no error."""

    async def deployment(self, name: str) -> Owner:
        """A Deployment, as an owner of Jobs."""

    async def close(self) -> None:
        """Frees what the client holds."""
