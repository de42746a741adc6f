"""RedisStore: job store on a Redis server."""

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
    """Redis keys under a prefix, all in one hash slot because a script may access only one."""

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(
                f"the prefix is {prefix!r}; it must be 1 to 64 letters, digits or . _ -"
            )
        self.prefix = prefix
        self._slot = f"{{{prefix}}}"
        self.schema = f"{self._slot}:schema"
        #: Written by availability checks.
        self.check = f"{self._slot}:check"
        #: Written before WAIT and WAITAOF, which cover only writes of their own connection.
        self.barrier = f"{self._slot}:barrier"
        #: Set of all job ids.
        self.jobs = f"{self._slot}:jobs"
        #: Job id by request key.
        self.requests = f"{self._slot}:requests"
        #: Newest fencing token over all jobs.
        self.last_token = f"{self._slot}:last-token"

    def job(self, job_id: str) -> str:
        """Hash with a job's record, revision, token, holder and request key."""
        return f"{self._slot}:job:{job_id}"

    def events(self, job_id: str) -> str:
        """List of a job's history events; the first has revision 1."""
        return f"{self._slot}:events:{job_id}"

    def epochs(self, job_id: str) -> str:
        """Hash of a job's epochs by number."""
        return f"{self._slot}:epochs:{job_id}"

    def snapshots(self, job_id: str) -> str:
        """Hash of a job's snapshots by revision."""
        return f"{self._slot}:snapshots:{job_id}"

    def of(self, job_id: str) -> tuple[str, str, str, str]:
        """All keys of a job, in the order that the scripts expect."""
        return self.job(job_id), self.events(job_id), self.epochs(job_id), self.snapshots(job_id)


_HEAD = struct.Struct(">I32s")


def pack(data: bytes, schema_version: int) -> bytes:
    """Serializes a snapshot with schema version and hash."""
    return _HEAD.pack(schema_version, hashlib.sha256(data).digest()) + data


def unpack(revision: int, value: bytes) -> Snapshot:
    """Parses a stored snapshot. A damaged one is returned with a hash that does not match."""
    schema_version, sha256 = _HEAD.unpack(value[: _HEAD.size].ljust(_HEAD.size, b"\0"))
    return Snapshot(revision, schema_version, value[_HEAD.size :], sha256)


_SCHEMA_VERSION = 2
_JOBS_PER_READ = 500
_FIELDS = ("record", "revision", "token")


class RedisStore:
    """Stores jobs on a Redis server. See `CheckpointStore`.

    Each call is one request, which is never retried here.
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
        """Opens the store under a key prefix.

        Raises StoreUnavailable if the server cannot be reached within `connect_seconds` or does not
        answer within `answer_seconds`. Raises StoreError if the server may lose acknowledged
        commits and `accept_data_loss` is not set, or if the data has another schema version.
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
        self._server.refresh_guarantee()
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
        for first in range(0, len(names), _JOBS_PER_READ):
            some = names[first : first + _JOBS_PER_READ]
            answers = self._server.read_transaction(
                [("HMGET", self._keys.job(job_id), *_FIELDS) for job_id in some]
            )
            # A job may have been deleted since its id was read.
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
        """Runs a read command about a job. Raises JobMissing."""
        job_exists, answer = self._server.read_transaction(
            [("EXISTS", self._keys.job(job_id)), command]
        )
        if not job_exists:
            raise missing(job_id)
        return answer

    def _check_schema(self) -> None:
        _, version = self._server.write(server.OPEN, [self._keys.schema], [_SCHEMA_VERSION])
        if int(version) != _SCHEMA_VERSION:
            raise StoreError(
                f"the store {self._keys.prefix} on Redis at {self._server.shown} has schema "
                f"version {int(version)}, but this program reads version {_SCHEMA_VERSION} only; "
                "finish or fetch its jobs with the version of remy-farm that wrote it, and use a "
                "new store"
            )


def _change(revision: int, commit: Commit) -> list[Argument]:
    """Encodes a commit at this revision as arguments of apply.lua."""
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
    """Raises the error for a script's refusal: Fenced with the newest token, or JobMissing."""
    if more:
        raise fenced(job_id, token, int(more[0]))
    raise missing(job_id)
