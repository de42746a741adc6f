"""A cache that ends with its process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from remy_services.stores.cache.entry import fitting, size_of


class MemoryCache:
    """Keeps entries in memory. See `EvaluationCache`."""

    def __init__(self, *, max_bytes: int) -> None:
        """Holds at most `max_bytes`, an overhead for each entry included."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        #: The least recently used first.
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found = {}
        with self._lock:
            for key in keys:
                value = self._entries.get(key)
                if value is not None:
                    self._entries.move_to_end(key)
                    found[key] = value
        return found

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        with self._lock:
            for key, value in fitting(entries, self._max_bytes):
                self._remove(key)
                self._entries[key] = value
                self._bytes += size_of(key, value)
            while self._bytes > self._max_bytes:
                self._remove(next(iter(self._entries)))

    def close(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _remove(self, key: bytes) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self._bytes -= size_of(key, value)
