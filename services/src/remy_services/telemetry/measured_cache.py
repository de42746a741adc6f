"""An evaluation cache that is watched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remy_services.stores import EvaluationCache
from remy_services.telemetry.catalogue import fleet
from remy_services.telemetry.instruments import Instruments


class MeasuredCache:
    """Passes everything on to an EvaluationCache, and answers exactly as it does."""

    def __init__(self, cache: EvaluationCache, instruments: Instruments) -> None:
        self._cache = cache
        self._instruments = instruments
        for result in ("hit", "miss"):
            instruments.prepare(fleet.CACHE_LOOKUPS, result)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        known = self._cache.get(keys)
        self._instruments.count(fleet.CACHE_LOOKUPS, "hit", by=len(known))
        self._instruments.count(fleet.CACHE_LOOKUPS, "miss", by=max(len(keys) - len(known), 0))
        return known

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        self._cache.put(entries)

    def close(self) -> None:
        self._cache.close()
