"""Names of what a store keeps on a server."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Keys:
    """Keys under a prefix. All of them are in one slot, since a script may touch one slot only."""

    prefix: str

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise ValueError(
                f"the prefix is {self.prefix!r}; 1 to 64 letters, digits and . _ - are needed"
            )

    @property
    def schema(self) -> str:
        """The schema version."""
        return self._name("schema")

    @property
    def check(self) -> str:
        """Written to find out whether writing works."""
        return self._name("check")

    @property
    def barrier(self) -> str:
        """Written so that a connection has something to wait for."""
        return self._name("barrier")

    @property
    def jobs(self) -> str:
        """Set of all job ids."""
        return self._name("jobs")

    @property
    def requests(self) -> str:
        """Job ids by the key of the request that made them."""
        return self._name("requests")

    @property
    def last_token(self) -> str:
        """The newest fencing token of all jobs."""
        return self._name("last-token")

    def job(self, job_id: str) -> str:
        """Record, revision, token, holder and request of a job."""
        return self._name("job", job_id)

    def events(self, job_id: str) -> str:
        """List of a job's history; the first has revision 1."""
        return self._name("events", job_id)

    def epochs(self, job_id: str) -> str:
        """A job's epochs by number."""
        return self._name("epochs", job_id)

    def snapshots(self, job_id: str) -> str:
        """A job's snapshots by revision."""
        return self._name("snapshots", job_id)

    def of(self, job_id: str) -> tuple[str, str, str, str]:
        """All that is a job's own, in the order that the scripts expect."""
        return self.job(job_id), self.events(job_id), self.epochs(job_id), self.snapshots(job_id)

    def _name(self, *parts: str) -> str:
        return ":".join((f"{{{self.prefix}}}", *parts))
