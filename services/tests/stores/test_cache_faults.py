"""Caches that are damaged or cannot be reached: they hold less, and nothing wrong."""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from remy_services.stores import SqliteStore, StoreError
from remy_services.stores.cache import GuardedCache, MemoryCache, open_cache
from remy_services.stores.cache.entry import seal, size_of, unseal
from remy_services.stores.redis.address import parse_address
from remy_services.stores.redis.cache import RedisCache
from remy_services.stores.sqlite.cache import SqliteCache
from services.tests.stores.local_redis import LocalRedis


@pytest.mark.parametrize("position", range(17))
def test_damage_is_found(position: int) -> None:
    sealed = bytearray(seal(b"key", b"v"))
    assert unseal(b"key", bytes(sealed)) == b"v"
    assert unseal(b"other", bytes(sealed)) is None

    sealed[position] ^= 1

    assert unseal(b"key", bytes(sealed)) is None
    assert unseal(b"key", bytes(sealed[:position])) is None


def test_damaged_entries_are_forgotten(tmp_path: Path, shared_redis: LocalRedis) -> None:
    path = tmp_path / "cache.db"
    with closing(SqliteCache(path, max_bytes=1000)) as cache:
        cache.put([(b"a", b"1"), (b"b", b"2")])
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE entries SET sealed = x'00' WHERE key = x'61'")
        assert cache.get([b"a", b"b"]) == {b"b": b"2"}
        cache.put([(b"a", b"1")])
        assert cache.get([b"a"]) == {b"a": b"1"}

    address = parse_address(shared_redis.url)
    with (
        closing(RedisCache(address, max_bytes=1000, prefix="damaged")) as cache,
        shared_redis.admin() as admin,
    ):
        cache.put([(b"a", b"1"), (b"b", b"2")])
        before = admin.hget("{damaged}:counters", "bytes")
        admin.hset("{damaged}:entries", "a", "0")
        assert cache.get([b"a", b"b"]) == {b"b": b"2"}
        assert admin.zrange("{damaged}:order", 0, -1) == [b"b"]
        cache.put([(b"a", b"1")])
        assert cache.get([b"a"]) == {b"a": b"1"}
        assert before is not None


@pytest.mark.parametrize("lost", ["entries", "order", "counters"])
def test_a_server_may_remove_parts_of_it(shared_redis: LocalRedis, lost: str) -> None:
    address = parse_address(shared_redis.url)
    prefix = f"lost-{lost}"
    with (
        closing(RedisCache(address, max_bytes=1000, prefix=prefix)) as cache,
        shared_redis.admin() as admin,
    ):
        cache.put((b"%d" % number, bytes(50)) for number in range(5))
        admin.delete(f"{{{prefix}}}:{lost}")
        cache.put([(b"a", bytes(50))])
        cache.put([(b"b", bytes(50))])

        assert set(cache.get([b"a", b"b"])) == {b"a", b"b"}
        total = admin.hget(f"{{{prefix}}}:counters", "bytes")
        assert total is not None
        assert int(total) == 2 * (size_of(b"a", bytes(50)) + 16)


class _Failing:
    """A cache that raises while it is told to."""

    def __init__(self) -> None:
        self.fails = True
        self.tries = 0
        self.inner = MemoryCache(max_bytes=1000)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        self._try()
        return self.inner.get(keys)

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        self._try()
        self.inner.put(entries)

    def close(self) -> None:
        self.inner.close()

    def _try(self) -> None:
        self.tries += 1
        if self.fails:
            raise StoreError("it is gone")


def test_a_cache_that_fails_holds_nothing_and_is_left_alone_for_a_while() -> None:
    now = 0.0
    inner = _Failing()
    cache = GuardedCache(lambda: inner, pause_seconds=5, now=lambda: now)

    cache.put([(b"a", b"1")])
    assert cache.get([b"a"]) == {}
    assert (cache.problem, inner.tries) == ("it is gone", 1)

    inner.fails = False
    now = 4.9
    assert cache.get([b"a"]) == {}
    assert (cache.problem, inner.tries) == ("it is gone", 1)

    now = 5.0
    cache.put([(b"a", b"1")])
    assert cache.get([b"a"]) == {b"a": b"1"}
    assert cache.problem is None

    cache.close()
    assert cache.get([b"a"]) == {}


def test_caches_by_url(tmp_path: Path, own_redis: LocalRedis) -> None:
    for url in ("memory:", f"sqlite://{tmp_path}/cache.db", own_redis.url):
        with closing(open_cache(url, max_bytes=1000, environment={})) as cache:
            cache.put([(b"a", b"1")])
            assert cache.get([b"a"]) == {b"a": b"1"}

    for url in (f"sqlite://{tmp_path}", f"unix://{tmp_path}/none.sock"):
        with closing(open_cache(url, max_bytes=1000, environment={})) as cache:
            cache.put([(b"a", b"1")])
            assert cache.get([b"a"]) == {}
            assert isinstance(cache, GuardedCache)
            assert cache.problem is not None
            assert "cannot be" in cache.problem

    for url in ("", "cache.db", "ftp://farm"):
        with pytest.raises(StoreError, match="is none of memory:, sqlite:///PATH"):
            open_cache(url, max_bytes=1000)


def test_a_server_that_comes_and_goes(own_redis: LocalRedis) -> None:
    address = parse_address(own_redis.url)
    now = 0.0
    with closing(
        GuardedCache(
            lambda: RedisCache(address, max_bytes=1000, answer_seconds=120), now=lambda: now
        )
    ) as cache:
        cache.put([(b"a", b"1")])
        own_redis.kill()
        assert cache.get([b"a"]) == {}
        own_redis.start()
        now = 60.0
        assert cache.get([b"a"]) == {b"a": b"1"}


def test_a_store_is_not_taken_for_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with closing(SqliteStore(path)):
        pass

    with pytest.raises(StoreError, match="is not a cache of evaluations of remy-farm"):
        SqliteCache(path, max_bytes=1000)
