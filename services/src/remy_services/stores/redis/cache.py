"""A cache on a Redis server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remy_services.stores.cache.entry import OVERHEAD_BYTES, fitting, portions, seal, unseal
from remy_services.stores.redis import scripts
from remy_services.stores.redis.address import RedisAddress
from remy_services.stores.redis.connection import Argument, RedisConnection, script_call
from remy_services.stores.redis.keys import Keys


class RedisCache:
    """Keeps entries under a prefix of their own. See `EvaluationCache`; but it raises StoreError.

    Nothing here waits for a disk, and a server that removes keys when it is full will do.
    """

    def __init__(
        self,
        address: RedisAddress,
        *,
        max_bytes: int,
        password: str | None = None,
        prefix: str = "remy-farm-cache",
        connect_seconds: float = 1.0,
        answer_seconds: float = 2.0,
    ) -> None:
        """Holds at most `max_bytes`, an overhead for each entry included."""
        self._max_bytes = max_bytes
        self._keys = Keys(prefix)
        self._connection = RedisConnection(
            address, password, connect_seconds=connect_seconds, answer_seconds=answer_seconds
        )

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        entries, order, counters = self._keys.cache
        found: dict[bytes, bytes] = {}
        for portion in portions(keys):
            values = self._connection.ask("HMGET", entries, *portion)
            kept = [(key, value) for key, value in zip(portion, values, strict=True) if value]
            intact = {key: unseal(key, value) for key, value in kept}
            damaged = [key for key, value in intact.items() if value is None]
            portion_found = {key: value for key, value in intact.items() if value is not None}
            if portion_found:
                self._run(scripts.CACHE_TOUCH, [order, counters], list(portion_found))
            if damaged:
                self._run(scripts.CACHE_REMOVE, self._keys.cache, [OVERHEAD_BYTES, *damaged])
            found |= portion_found
        return found

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        for portion in portions(fitting(entries, self._max_bytes)):
            parts = [part for key, value in portion for part in (key, seal(key, value))]
            self._run(
                scripts.CACHE_PUT, self._keys.cache, [self._max_bytes, OVERHEAD_BYTES, *parts]
            )

    def close(self) -> None:
        self._connection.close()

    def _run(self, script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> None:
        self._connection.ask(*script_call(script, keys, arguments))
