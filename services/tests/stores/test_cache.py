"""What every cache of evaluations promises."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from remy_services.stores import EvaluationCache
from remy_services.stores.cache import MemoryCache
from remy_services.stores.cache.entry import size_of
from remy_services.stores.redis.address import parse_address
from remy_services.stores.redis.cache import RedisCache
from remy_services.stores.sqlite.cache import SqliteCache
from services.tests.stores.local_redis import LocalRedis

NewCache = Callable[[int], EvaluationCache]

_numbers = count()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def new_cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewCache]:
    """Opens an empty cache of so many bytes at every call. It raises what goes wrong."""
    with ExitStack() as stack:

        def new(max_bytes: int) -> EvaluationCache:
            name = f"cache-{next(_numbers)}"
            cache: EvaluationCache
            if request.param == "memory":
                cache = MemoryCache(max_bytes=max_bytes)
            elif request.param == "sqlite":
                cache = SqliteCache(tmp_path / name, max_bytes=max_bytes, busy_seconds=120)
            else:
                server: LocalRedis = request.getfixturevalue("shared_redis")
                cache = RedisCache(
                    parse_address(server.url), max_bytes=max_bytes, prefix=name, answer_seconds=120
                )
            return stack.enter_context(closing(cache))

        yield new


def test_what_was_put_is_found(new_cache: NewCache) -> None:
    cache = new_cache(10_000)

    cache.put([(b"a", b"1"), (b"b", b""), (b"", b"\x00\xff")])

    assert cache.get([b"b", b"c", b"", b"a", b"a"]) == {b"a": b"1", b"b": b"", b"": b"\x00\xff"}
    assert cache.get([]) == {}
    cache.put([])


def test_large_requests(new_cache: NewCache) -> None:
    cache = new_cache(10_000_000)
    entries = {b"%d" % number: b"v" * (number % 7) for number in range(2000)}

    cache.put(entries.items())

    assert cache.get([*entries, b"none"]) == entries


def test_the_least_recently_used_go(new_cache: NewCache) -> None:
    size = size_of(b"a", bytes(50))
    cache = new_cache(3 * size + 20 * 3)
    for key in (b"a", b"b", b"c"):
        cache.put([(key, bytes(50))])
    assert set(cache.get([b"a"])) == {b"a"}

    cache.put([(b"d", bytes(50))])

    assert set(cache.get([b"a", b"b", b"c", b"d"])) == {b"a", b"c", b"d"}


def test_what_is_larger_than_the_cache_is_not_kept(new_cache: NewCache) -> None:
    cache = new_cache(1000)
    cache.put([(b"a", b"1")])

    cache.put([(b"b", bytes(2000)), (b"c", b"3")])

    assert cache.get([b"a", b"b", b"c"]) == {b"a": b"1", b"c": b"3"}


class _Machine(RuleBasedStateMachine):
    """A cache never holds anything wrong, and never more than it may."""

    keys = st.binary(min_size=1, max_size=2)
    most_bytes = 4000

    def __init__(self, new_cache: NewCache) -> None:
        super().__init__()
        self.cache = new_cache(self.most_bytes)
        self.put_last: dict[bytes, bytes] = {}

    def teardown(self) -> None:
        self.cache.close()

    @rule(entries=st.lists(st.tuples(keys, st.binary(max_size=300)), max_size=5))
    def put(self, entries: list[tuple[bytes, bytes]]) -> None:
        self.cache.put(entries)
        self.put_last |= dict(entries)
        newest = dict(entries)
        if sum(size_of(key, value) + 20 for key, value in newest.items()) <= self.most_bytes:
            assert self.cache.get(list(newest)) == newest

    @rule(keys=st.lists(keys, max_size=4))
    def get(self, keys: list[bytes]) -> None:
        for key, value in self.cache.get(keys).items():
            assert value == self.put_last[key]

    @invariant()
    def bounded(self) -> None:
        found = self.cache.get(list(self.put_last))
        assert sum(size_of(key, value) for key, value in found.items()) <= self.most_bytes


def test_any_calls(new_cache: NewCache) -> None:
    def machine() -> _Machine:
        return _Machine(new_cache)

    run_state_machine_as_test(
        machine,  # type: ignore[arg-type]
        settings=settings(max_examples=20, stateful_step_count=30),
    )


def test_many_threads(new_cache: NewCache) -> None:
    cache = new_cache(20_000)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(30):
                keys = [b"%d" % ((number * 7 + step + offset) % 40) for offset in range(10)]
                cache.put((key, key * 50) for key in keys)
                for key, value in cache.get(keys).items():
                    assert value == key * 50
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_file_outlives_its_process(tmp_path: Path) -> None:
    with closing(SqliteCache(tmp_path / "cache.db", max_bytes=1000)) as cache:
        cache.put([(b"a", b"1"), (b"b", b"2")])
    with closing(SqliteCache(tmp_path / "cache.db", max_bytes=1000)) as cache:
        assert cache.get([b"a"]) == {b"a": b"1"}
    with closing(SqliteCache(tmp_path / "cache.db", max_bytes=300)) as cache:
        cache.put([])
        assert cache.get([b"a", b"b"]) == {b"a": b"1"}
