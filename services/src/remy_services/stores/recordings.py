"""Link traces ("recordings") in a store: entries beside the jobs, named by their hashes.

An entry's events are the parts of the recording, each small enough for one commit. Code that lists
jobs skips these entries. A recording that no job references is deleted after a retention time, so
that it can be uploaded before its job. Uploading or claiming a recording acquires a new token of
its entry, which restarts the retention time (`UnusedRecordings`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Conflict,
    Fenced,
    JobExists,
    JobMissing,
    StoredJob,
    StoreUnavailable,
)

#: Largest recording in bytes: eight million delivery opportunities.
MAX_RECORDING_BYTES: Final = 64 << 20

_PART_BYTES = 1 << 20
_PARTS_PER_READ = 4
_ENTRY = re.compile(r"trace-[0-9a-f]{64}")
_LENGTH_BYTES = 8
_MAX_ATTEMPTS = 5


def entry_of(sha256: bytes) -> str:
    """Returns the entry id of a recording."""
    return f"trace-{sha256.hex()}"


def is_recording(job_id: str) -> bool:
    """Returns whether a store entry is a recording and not a job."""
    return _ENTRY.fullmatch(job_id) is not None


def put_recording(store: CheckpointStore, opportunities_us: bytes) -> bytes:
    """Stores a recording if it is missing, and returns its hash.

    Continues an interrupted upload. Raises StoreError.
    """
    sha256 = hashlib.sha256(opportunities_us).digest()
    starts = range(0, len(opportunities_us), _PART_BYTES)
    parts = [opportunities_us[start : start + _PART_BYTES] for start in starts]
    record = len(opportunities_us).to_bytes(_LENGTH_BYTES, "little")
    entry = entry_of(sha256)
    for _ in range(_MAX_ATTEMPTS):
        with suppress(JobExists):
            store.create(entry, Commit(record, parts[:1]))
        try:
            # Acquired even if the upload is complete, to restart the retention time.
            token = store.acquire(entry, "upload")
            revision = store.job(entry).revision
            for part in parts[revision:]:
                revision = store.commit(entry, token, revision, Commit(record, [part]))
        except (Conflict, Fenced, JobMissing):
            # Another upload is in progress, or the entry has just been deleted.
            continue
        return sha256
    raise StoreUnavailable(f"the trace {sha256.hex()} is being changed by others; try again later")


def has_recording(store: CheckpointStore, sha256: bytes) -> bool:
    """Returns whether the complete recording is stored. Raises StoreError."""
    try:
        return _is_complete(store.job(entry_of(sha256)))
    except JobMissing:
        return False


def claim_recording(store: CheckpointStore, sha256: bytes) -> bool:
    """Like `has_recording`, and restarts the retention time. Raises StoreError."""
    if not has_recording(store, sha256):
        return False
    with suppress(JobMissing):
        store.acquire(entry_of(sha256), "claim")
    # The recording may have been deleted just before it was claimed.
    return has_recording(store, sha256)


def _is_complete(entry: StoredJob) -> bool:
    return entry.revision * _PART_BYTES >= int.from_bytes(entry.record, "little")


def read_recording(store: CheckpointStore, sha256: bytes) -> bytes | None:
    """Returns the recording, or None if it is missing, incomplete or damaged. Raises StoreError."""
    entry = entry_of(sha256)
    parts: list[bytes] = []
    try:
        while page := store.events(entry, after=len(parts), limit=_PARTS_PER_READ):
            parts += [part for _, part in page]
    except JobMissing:
        return None
    opportunities_us = b"".join(parts)
    is_intact = hashlib.sha256(opportunities_us).digest() == sha256
    return opportunities_us if is_intact else None


class UnusedRecordings:
    """Deletes recordings that no job references, including interrupted uploads."""

    def __init__(self, store: CheckpointStore, keep_seconds: float) -> None:
        """`keep_seconds` is the retention time of an unreferenced recording."""
        self._store = store
        self._keep_seconds = keep_seconds
        #: Token of each unreferenced entry, and the time at which it was first seen with this
        #: token.
        self._seen: dict[str, tuple[int, float]] = {}
        #: Tokens that this object acquired in order to delete entries.
        self._sweep_tokens: set[int] = set()

    def sweep(self, needed: Collection[bytes], now: float) -> None:
        """Deletes expired recordings. To be called periodically.

        `needed` are the hashes that jobs reference, `now` a time in seconds.

        Raises StoreError.
        """
        named = {entry_of(sha256) for sha256 in needed}
        seen: dict[str, tuple[int, float]] = {}
        for entry in self._store.jobs():
            if not is_recording(entry.job_id) or entry.job_id in named:
                continue
            token, since = self._seen.get(entry.job_id, (entry.token, now))
            if token != entry.token:
                since = now
            # If the entry was claimed since the last sweep, the token of that sweep is outdated and
            # the entry stays.
            with suppress(JobMissing, Fenced):
                if entry.token in self._sweep_tokens:
                    self._store.delete(entry.job_id, entry.token)
                    continue
                token = entry.token
                if now - since >= self._keep_seconds:
                    token = self._store.acquire(entry.job_id, "sweep")
                    self._sweep_tokens.add(token)
                seen[entry.job_id] = (token, since)
        self._seen = seen
        self._sweep_tokens &= {token for token, _ in seen.values()}
