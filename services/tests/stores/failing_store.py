"""A store with injected failures, to simulate a crash or a lost response at a given call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Durability,
    Snapshot,
    StoredJob,
    StoreUnavailable,
)

_Result = TypeVar("_Result")

WRITES = frozenset({"create", "acquire", "commit", "prune_snapshots", "delete"})
READS = frozenset({"check", "job", "jobs", "snapshots", "events", "epochs", "epoch"})


def unavailable() -> BaseException:
    """Returns the error of an unreachable store."""
    return StoreUnavailable("injected failure")


class FailingStore:
    """Wraps a store, and fails at one call (and all later ones if `stays_down`).

    To test a failure at every write of an operation, run it once with `fail_at` 0, which never
    fails, and then for each number up to `len(calls)`, with `when` "before" and "after".
    """

    def __init__(
        self,
        inner: CheckpointStore,
        *,
        fail_at: int,
        when: Literal["before", "after"],
        counts: frozenset[str] = WRITES,
        stays_down: bool = False,
        error: Callable[[], BaseException] = unavailable,
    ) -> None:
        """Fails at call number `fail_at` (from 1) among the calls named in `counts`.

        With `when` "before" the call has no effect; with "after" it has its full effect and only
        the response is lost. The error may be a BaseException that nothing handles, to simulate a
        kill.
        """
        self._inner = inner
        self._fail_at = fail_at
        self._when = when
        self._counts = counts
        self._stays_down = stays_down
        self._error = error
        self._is_down = False
        #: Names of the counted calls so far, including the failing one.
        self.calls: list[str] = []

    def durability(self) -> Durability:
        return self._inner.durability()

    def check(self) -> None:
        self._call("check", self._inner.check)

    def usage(self) -> Mapping[str, int]:
        return self._inner.usage()

    def create(self, job_id: str, commit: Commit, *, request_key: str | None = None) -> str:
        return self._call(
            "create", lambda: self._inner.create(job_id, commit, request_key=request_key)
        )

    def acquire(self, job_id: str, holder: str) -> int:
        return self._call("acquire", lambda: self._inner.acquire(job_id, holder))

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        return self._call("commit", lambda: self._inner.commit(job_id, token, revision, commit))

    def job(self, job_id: str) -> StoredJob:
        return self._call("job", lambda: self._inner.job(job_id))

    def jobs(self) -> list[StoredJob]:
        return self._call("jobs", self._inner.jobs)

    def snapshots(self, job_id: str) -> list[Snapshot]:
        return self._call("snapshots", lambda: self._inner.snapshots(job_id))

    def prune_snapshots(self, job_id: str, token: int, *, keep: int) -> None:
        self._call("prune_snapshots", lambda: self._inner.prune_snapshots(job_id, token, keep=keep))

    def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        return self._call("events", lambda: self._inner.events(job_id, after=after, limit=limit))

    def epochs(self, job_id: str) -> dict[int, bytes]:
        return self._call("epochs", lambda: self._inner.epochs(job_id))

    def epoch(self, job_id: str, number: int) -> bytes | None:
        return self._call("epoch", lambda: self._inner.epoch(job_id, number))

    def delete(self, job_id: str, token: int) -> None:
        self._call("delete", lambda: self._inner.delete(job_id, token))

    def close(self) -> None:
        self._inner.close()

    def _call(self, name: str, call: Callable[[], _Result]) -> _Result:
        if self._is_down:
            raise self._error()
        if name not in self._counts:
            return call()
        self.calls.append(name)
        if len(self.calls) != self._fail_at:
            return call()
        self._is_down = self._stays_down
        if self._when == "after":
            call()
        raise self._error()
