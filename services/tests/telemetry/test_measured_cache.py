"""A watched cache answers as the cache does, and counts what it knew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remy_services.telemetry.telemetry import Telemetry
from services.tests.telemetry.exported import value


class _Cache:
    """Keeps everything."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}
        self.is_closed = False

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self.kept[key] for key in keys if key in self.kept}

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        self.kept.update(entries)

    def close(self) -> None:
        self.is_closed = True


def test_hits_and_misses_are_counted() -> None:
    telemetry, inner = Telemetry(), _Cache()
    cache = telemetry.cache(inner)
    cache.put([(b"a", b"1"), (b"b", b"2")])
    assert cache.get([b"a", b"b", b"c"]) == {b"a": b"1", b"b": b"2"}
    cache.close()
    assert inner.is_closed
    name = "remy_farm_evaluation_cache_lookups_total"
    assert value(telemetry.registry, name, result="hit") == 2
    assert value(telemetry.registry, name, result="miss") == 1
