"""Recordings of links in a store: entries beside the jobs, named by their hashes.

An entry's history is the recording, in parts that any store takes in one commit. Whoever lists a
store's jobs passes over them. They are there for the jobs whose specifications name them, and go
with the last of these.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from typing import Final

from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Conflict,
    Fenced,
    JobExists,
    JobMissing,
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
            revision = store.job(entry).revision
            if revision < len(parts):
                token = store.acquire(entry, "upload")
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
        job = store.job(entry_of(sha256))
    except JobMissing:
        return False
    return job.revision * _PART_BYTES >= int.from_bytes(job.record, "little")


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


def delete_recording(store: CheckpointStore, sha256: bytes) -> None:
    """Removes a recording if it is there. Raises StoreError."""
    entry = entry_of(sha256)
    try:
        store.delete(entry, store.acquire(entry, "delete"))
    except JobMissing:
        return
