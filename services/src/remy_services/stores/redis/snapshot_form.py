"""A snapshot as one value: its schema version, its hash, and itself."""

from __future__ import annotations

import hashlib
import struct

from remy_services.stores.contract import Snapshot

_HEAD = struct.Struct(">I32s")


def pack(data: bytes, schema_version: int) -> bytes:
    """The value for a snapshot that is being committed."""
    return _HEAD.pack(schema_version, hashlib.sha256(data).digest()) + data


def unpack(revision: int, value: bytes) -> Snapshot:
    """The snapshot that a value was made of; damage shows in its hash."""
    schema_version, sha256 = _HEAD.unpack(value[: _HEAD.size].ljust(_HEAD.size, b"\0"))
    return Snapshot(revision, schema_version, value[_HEAD.size :], sha256)
