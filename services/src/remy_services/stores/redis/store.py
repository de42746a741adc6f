"""The store of a farm: a Redis server."""

from __future__ import annotations

import hashlib
import re
import struct
from typing import Any, NoReturn

from remy_services.stores.contract import (
    Commit,
    Durability,
    Snapshot,
    StoredJob,
    StoreError,
    check_commit,
    check_keep,
    check_page,
    conflict,
    exists,
    fenced,
    missing,
)
from remy_services.stores.redis import server
from remy_services.stores.redis.connection import Argument, RedisAddress
from remy_services.stores.redis.server import RedisServer

_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Keys:
    """Keys under a prefix. All of them are in one slot, since a script may touch one slot only."""

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(
                f"the prefix is {prefix!r}; 1 to 64 letters, digits and . _ - are needed"
            )
        self.prefix = prefix
        self._slot = f"{{{prefix}}}"
        self.schema = f"{self._slot}:schema"
        #: Written to find out whether writing works.
        self.check = f"{self._slot}:check"
        #: Written so that a connection has something to wait for.
        self.barrier = f"{self._slot}:barrier"
        #: Set of all job ids.
        self.jobs = f"{self._slot}:jobs"
        #: Job ids by the key of the request that made them.
        self.requests = f"{self._slot}:requests"
        #: The newest fencing token of all jobs.
        self.last_token = f"{self._slot}:last-token"

    def job(self, job_id: str) -> str:
        """Record, revision, token, holder and request of a job."""
        return f"{self._slot}:job:{job_id}"

    def events(self, job_id: str) -> str:
        """List of a job's history; the first has revision 1."""
        return f"{self._slot}:events:{job_id}"

    def epochs(self, job_id: str) -> str:
        """A job's epochs by number."""
        return f"{self._slot}:epochs:{job_id}"

    def snapshots(self, job_id: str) -> str:
        """A job's snapshots by revision."""
        return f"{self._slot}:snapshots:{job_id}"

    def of(self, job_id: str) -> tuple[str, str, str, str]:
        """All that is a job's own, in the order that the scripts expect."""
        return self.job(job_id), self.events(job_id), self.epochs(job_id), self.snapshots(job_id)


_HEAD = struct.Struct(">I32s")


def pack(data: bytes, schema_version: int) -> bytes:
    """The value for a snapshot that is being committed."""
    return _HEAD.pack(schema_version, hashlib.sha256(data).digest()) + data


def unpack(revision: int, value: bytes) -> Snapshot:
    """The snapshot that a value was made of; damage shows in its hash."""
    schema_version, sha256 = _HEAD.unpack(value[: _HEAD.size].ljust(_HEAD.size, b"\0"))
    return Snapshot(revision, schema_version, value[_HEAD.size :], sha256)


_SCHEMA_VERSION = 2
_JOBS_AT_ONCE = 500
_FIELDS = ("record", "revision", "token")


class RedisStore:
    """Keeps jobs on a Redis server. See `CheckpointStore`.

    A call is one request. Its answer may be lost on the way; it is never repeated here.
    """

    def __init__(
        self,
        address: RedisAddress,
        *,
        password: str | None = None,
        accept_data_loss: bool = False,
        prefix: str = "remy-farm",
        connect_seconds: float = 2.0,
        answer_seconds: float = 5.0,
    ) -> None:
        """The store under `prefix` on this server.

        Raises StoreUnavailable if the server cannot be reached within `connect_seconds` or does not
        answer within `answer_seconds`; StoreError if it would lose acknowledged commits and that is
        not accepted, or if another version of this program made what it holds.
        """
        self._keys = Keys(prefix)
        self._server = RedisServer(
            address,
            password,
            accept_data_loss=accept_data_loss,
            barrier=self._keys.barrier,
            connect_seconds=connect_seconds,
            answer_seconds=answer_seconds,
        )
        try:
            self._check_schema()
        except BaseException:
            self._server.close()
            raise

    def durability(self) -> Durability:
        return self._server.durability

    def check(self) -> None:
        self._server.renew_promise()
        self._check_schema()
        self._server.write(server.CHECK, [self._keys.check], [])

    def usage(self) -> dict[str, int]:
        return self._server.usage()

    def create(self, job_id: str, commit: Commit, *, request_key: str | None = None) -> str:
        check_commit(commit)
        keys = [*self._keys.of(job_id), self._keys.jobs, self._keys.requests]
        request = "" if request_key is None else f":{request_key}"
        status, *more = self._server.write(
            server.CREATE, keys, [job_id, request, *_change(0, commit)]
        )
        if status == b"exists":
            raise exists(job_id)
        return more[0].decode()

    def acquire(self, job_id: str, holder: str) -> int:
        keys = [self._keys.job(job_id), self._keys.last_token]
        status, *more = self._server.write(server.ACQUIRE, keys, [holder])
        if status == b"missing":
            raise missing(job_id)
        return int(more[0])

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        check_commit(commit)
        status, *more = self._server.write(
            server.COMMIT, self._keys.of(job_id), [token, revision, *_change(revision, commit)]
        )
        if status == b"conflict":
            raise conflict(job_id, revision, int(more[0]))
        if status != b"ok":
            _refuse(job_id, token, more)
        return revision + len(commit.events)

    def job(self, job_id: str) -> StoredJob:
        fields = self._server.read("HMGET", self._keys.job(job_id), *_FIELDS)
        return _stored_job(job_id, fields)

    def jobs(self) -> list[StoredJob]:
        ids = self._server.read("SMEMBERS", self._keys.jobs)
        names = sorted(job_id.decode() for job_id in ids)
        found = []
        for first in range(0, len(names), _JOBS_AT_ONCE):
            some = names[first : first + _JOBS_AT_ONCE]
            answers = self._server.read_together(
                [("HMGET", self._keys.job(job_id), *_FIELDS) for job_id in some]
            )
            # A job may have been deleted in between.
            found += [
                _stored_job(job_id, fields)
                for job_id, fields in zip(some, answers, strict=True)
                if fields[0] is not None
            ]
        return found

    def snapshots(self, job_id: str) -> list[Snapshot]:
        values = self._of_job(job_id, "HGETALL", self._keys.snapshots(job_id))
        found = [unpack(int(revision), value) for revision, value in values.items()]
        return sorted(found, key=lambda snapshot: snapshot.revision, reverse=True)

    def prune_snapshots(self, job_id: str, token: int, *, keep: int) -> None:
        check_keep(keep)
        keys = [self._keys.job(job_id), self._keys.snapshots(job_id)]
        status, *more = self._server.write(server.PRUNE, keys, [token, keep])
        if status != b"ok":
            _refuse(job_id, token, more)

    def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        check_page(after, limit)
        events = self._of_job(job_id, "LRANGE", self._keys.events(job_id), after, after + limit - 1)
        return list(enumerate(events, after + 1))

    def epochs(self, job_id: str) -> dict[int, bytes]:
        epochs = self._of_job(job_id, "HGETALL", self._keys.epochs(job_id))
        return {number: epochs[b"%d" % number] for number in sorted(int(key) for key in epochs)}

    def epoch(self, job_id: str, number: int) -> bytes | None:
        epoch = self._of_job(job_id, "HGET", self._keys.epochs(job_id), number)
        return None if epoch is None else bytes(epoch)

    def delete(self, job_id: str, token: int) -> None:
        keys = [*self._keys.of(job_id), self._keys.jobs, self._keys.requests]
        status, *more = self._server.write(server.DELETE, keys, [token, job_id])
        if status != b"ok":
            _refuse(job_id, token, more)

    def close(self) -> None:
        self._server.close()

    def _of_job(self, job_id: str, *command: Argument) -> Any:
        """The answer to a command about a job that is there."""
        there, answer = self._server.read_together([("EXISTS", self._keys.job(job_id)), command])
        if not there:
            raise missing(job_id)
        return answer

    def _check_schema(self) -> None:
        _, version = self._server.write(server.OPEN, [self._keys.schema], [_SCHEMA_VERSION])
        if int(version) != _SCHEMA_VERSION:
            raise StoreError(
                f"the store {self._keys.prefix} on Redis at {self._server.shown} has schema "
                f"version {int(version)}, and this program reads version {_SCHEMA_VERSION} only; "
                "finish or fetch its jobs with the version of remy-farm that wrote it, and use a "
                "new store"
            )


def _change(revision: int, commit: Commit) -> list[Argument]:
    """A commit to a job at this revision, as apply.lua takes it."""
    after = revision + len(commit.events)
    at: Argument = ""
    packed = b""
    if commit.snapshot is not None:
        at = after if commit.snapshot_revision is None else commit.snapshot_revision
        packed = pack(commit.snapshot, commit.schema_version)
    epochs = [part for number, epoch in commit.epochs.items() for part in (number, epoch)]
    return [commit.record, after, at, packed, len(commit.events), *commit.events, *epochs]


def _stored_job(job_id: str, fields: list[Any]) -> StoredJob:
    record, revision, token = fields
    if record is None:
        raise missing(job_id)
    return StoredJob(job_id, record, int(revision), int(token))


def _refuse(job_id: str, token: int, more: list[bytes]) -> NoReturn:
    """Raises what a script's answer means: it names the newest token, or there is no job."""
    if more:
        raise fenced(job_id, token, int(more[0]))
    raise missing(job_id)
