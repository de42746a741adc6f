"""One entry of a cache, as it is kept where it may be damaged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

_SEAL_BYTES = 16
#: What an entry takes up beside its key and its value, roughly; on Redis it is that much.
OVERHEAD_BYTES = 250
#: So many keys go into one request or statement.
KEYS_AT_ONCE = 500

_Item = TypeVar("_Item")


def seal(key: bytes, value: bytes) -> bytes:
    """The value with a hash in front: a damaged outcome would change a search's result."""
    return _digest(key, value) + value


def unseal(key: bytes, sealed: bytes) -> bytes | None:
    """The value that was sealed under this key; None if it is damaged."""
    value = sealed[_SEAL_BYTES:]
    return value if sealed == _digest(key, value) + value else None


def size_of(key: bytes, value: bytes) -> int:
    """Bytes that an entry counts for."""
    return len(key) + len(value) + OVERHEAD_BYTES


def portions(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """All items, in portions for one request."""
    return (items[first : first + KEYS_AT_ONCE] for first in range(0, len(items), KEYS_AT_ONCE))


def fitting(entries: Iterable[tuple[bytes, bytes]], max_bytes: int) -> list[tuple[bytes, bytes]]:
    """Those entries that a cache of this size could hold, the last one of each key."""
    last = dict(entries)
    return [(key, value) for key, value in last.items() if size_of(key, value) <= max_bytes]


def _digest(key: bytes, value: bytes) -> bytes:
    state = hashlib.sha256(len(key).to_bytes(8, "big"))
    state.update(key)
    state.update(value)
    return state.digest()[:_SEAL_BYTES]
