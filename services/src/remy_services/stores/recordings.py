"""Recordings of links in a store: entries beside the jobs, named by their hashes.

An entry's history is the recording, in parts that any store takes in one commit. Whoever lists a
store's jobs passes over them. They are there for the jobs whose specifications name them. One that
no job names goes after a while, so that a recording can be uploaded before the job that needs it:
whoever brings it, or is about to name it, takes a new token of its entry, and with that the while
begins anew (`UnusedRecordings`).
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

#: The longest recording that is kept, bytes: eight million opportunities.
MOST_RECORDING_BYTES: Final = 64 << 20

_PART_BYTES = 1 << 20
_PARTS_AT_ONCE = 4
_ENTRY = re.compile(r"trace-[0-9a-f]{64}")
_LENGTH_BYTES = 8
_TRIES = 5


def entry_of(sha256: bytes) -> str:
    """What a store knows the recording of a hash by."""
    return f"trace-{sha256.hex()}"


def is_recording(job_id: str) -> bool:
    """Whether an entry of a store is a recording, and no job."""
    return _ENTRY.fullmatch(job_id) is not None


def put_recording(store: CheckpointStore, opportunities_us: bytes) -> bytes:
    """Keeps a recording, unless it is there; returns its hash.

    What an earlier call began is gone on with. Raises StoreError.
    """
    sha256 = hashlib.sha256(opportunities_us).digest()
    starts = range(0, len(opportunities_us), _PART_BYTES)
    parts = [opportunities_us[start : start + _PART_BYTES] for start in starts]
    record = len(opportunities_us).to_bytes(_LENGTH_BYTES, "little")
    entry = entry_of(sha256)
    for _ in range(_TRIES):
        with suppress(JobExists):
            store.create(entry, Commit(record, parts[:1]))
        try:
            # Also of one that is whole: it is of use again.
            token = store.acquire(entry, "upload")
            revision = store.job(entry).revision
            for part in parts[revision:]:
                revision = store.commit(entry, token, revision, Commit(record, [part]))
        except (Conflict, Fenced, JobMissing):
            # Somebody else has it here, or has just removed it.
            continue
        return sha256
    raise StoreUnavailable(f"the trace {sha256.hex()} is being changed by others; try again later")


def has_recording(store: CheckpointStore, sha256: bytes) -> bool:
    """Whether the recording is there, whole. Raises StoreError."""
    try:
        return _is_whole(store.job(entry_of(sha256)))
    except JobMissing:
        return False


def claim_recording(store: CheckpointStore, sha256: bytes) -> bool:
    """The same for one that a job is about to name: it is not removed for a while. Raises
    StoreError."""
    if not has_recording(store, sha256):
        return False
    with suppress(JobMissing):
        store.acquire(entry_of(sha256), "claim")
    # Somebody may have removed it before it was claimed.
    return has_recording(store, sha256)


def _is_whole(entry: StoredJob) -> bool:
    return entry.revision * _PART_BYTES >= int.from_bytes(entry.record, "little")


def read_recording(store: CheckpointStore, sha256: bytes) -> bytes | None:
    """The recording's opportunities; None if it is not there as it was put. Raises StoreError."""
    entry = entry_of(sha256)
    parts: list[bytes] = []
    try:
        while page := store.events(entry, after=len(parts), limit=_PARTS_AT_ONCE):
            parts += [part for _, part in page]
    except JobMissing:
        return None
    opportunities_us = b"".join(parts)
    is_whole = hashlib.sha256(opportunities_us).digest() == sha256
    return opportunities_us if is_whole else None


class UnusedRecordings:
    """What no job names of a store's recordings, uploads that broke off among it."""

    def __init__(self, store: CheckpointStore, keep_seconds: float) -> None:
        """They stay for so long."""
        self._store = store
        self._keep_seconds = keep_seconds
        #: By entry: its token, and when it was first seen with that.
        self._seen: dict[str, tuple[int, float]] = {}
        #: Tokens that were taken here to remove entries with.
        self._taken: set[int] = set()

    def sweep(self, needed: Collection[bytes], now: float) -> None:
        """To be called now and then, with the hashes that jobs name and a time in seconds.

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
            # A token that the last sweep took is worth nothing once somebody has claimed the entry.
            with suppress(JobMissing, Fenced):
                if entry.token in self._taken:
                    self._store.delete(entry.job_id, entry.token)
                    continue
                token = entry.token
                if now - since >= self._keep_seconds:
                    token = self._store.acquire(entry.job_id, "sweep")
                    self._taken.add(token)
                seen[entry.job_id] = (token, since)
        self._seen = seen
        self._taken &= {token for token, _ in seen.values()}
