"""Tests the durability guarantee that is derived from a Redis server's settings."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from remy_services.stores import open_store
from remy_services.stores.contract import Commit, Conflict, StoreError, StoreUnavailable
from remy_services.stores.redis.connection import parse_address
from remy_services.stores.redis.server import Guarantee, ServerFacts, guarantee
from remy_services.stores.redis.store import RedisStore
from services.tests.stores.local_redis import DURABLE, LocalRedis

OLD = ServerFacts(
    version="7.0.15",
    appends=True,
    appendfsync="always",
    pauses_fsync=False,
    maxmemory=0,
    maxmemory_policy="noeviction",
)
NEW = replace(OLD, version="7.2.0")


def _of(facts: ServerFacts, *, replicas: int = 0, has_failover: bool = False) -> Guarantee:
    return guarantee(facts, replicas=replicas, has_failover=has_failover)


@pytest.mark.parametrize(
    ("facts", "waits"),
    [
        (OLD, False),
        (NEW, False),
        (replace(NEW, appendfsync="everysec"), True),
        (replace(NEW, appendfsync=None, pauses_fsync=None), True),
        (replace(NEW, pauses_fsync=True), True),
        (replace(NEW, appendfsync="everysec", version="10.0.1"), True),
        (replace(OLD, maxmemory=1, maxmemory_policy="volatile-lru"), False),
        (replace(OLD, maxmemory=0, maxmemory_policy="allkeys-lru"), False),
    ],
)
def test_durable_settings(facts: ServerFacts, waits: bool) -> None:
    found = _of(facts)

    assert found.durability.durable
    assert found.waits_for_disk == waits
    assert ("WAITAOF" in found.durability.description) == waits


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (replace(OLD, appends=False), "appendonly is no; set it to yes"),
        (replace(NEW, appends=False), "appendonly is no; set it to yes"),
        (replace(OLD, appendfsync="everysec"), "appendfsync is everysec; set it to always"),
        (
            replace(OLD, appendfsync=None),
            "appendfsync is unknown; set it to always, or use Redis 7.2",
        ),
        (replace(OLD, version="unstable", appendfsync="everysec"), "appendfsync is everysec"),
        (replace(NEW, appendfsync="no"), "appendfsync is no; set it to always"),
        (replace(OLD, pauses_fsync=True), "no-appendfsync-on-rewrite is yes; set it to no"),
        (replace(OLD, maxmemory=1, maxmemory_policy="allkeys-lru"), "set it to noeviction"),
        (replace(OLD, maxmemory=1, maxmemory_policy="allkeys-random"), "set it to noeviction"),
    ],
)
def test_settings_that_may_lose_writes(facts: ServerFacts, why: str) -> None:
    durability = _of(facts).durability

    assert not durability.durable
    assert why in durability.description


def test_failover_requires_replicated_writes() -> None:
    assert not _of(OLD, has_failover=True).durability.durable
    assert "replicas=1" in _of(OLD, has_failover=True).durability.description

    found = _of(OLD, has_failover=True, replicas=2)
    assert found.durability.durable
    assert found.waits_for_replicas == 2


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (("--appendonly", "no"), "appendonly is no"),
        (("--appendonly", "yes", "--appendfsync", "no"), "appendfsync is no"),
        (
            (
                *("--appendonly", "yes", "--appendfsync", "always"),
                *("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"),
            ),
            "maxmemory-policy is allkeys-lru",
        ),
    ],
)
def test_a_server_that_may_lose_jobs_is_refused(
    tmp_path: Path, settings: tuple[str, ...], why: str
) -> None:
    with LocalRedis(tmp_path, *settings) as server:
        with pytest.raises(StoreError, match=f"{server.url} may lose jobs: .*{why}") as raised:
            open_store(server.url)
        assert not isinstance(raised.value, StoreUnavailable)

        with closing(open_store(server.url, accept_data_loss=True)) as store:
            store.check()
            assert not store.durability().durable
            assert why in store.durability().description


def test_check_detects_changed_settings(own_redis: LocalRedis) -> None:
    with closing(open_store(own_redis.url)) as store, own_redis.admin() as admin:
        admin.config_set("appendonly", "no")

        with pytest.raises(StoreError, match="appendonly is no"):
            store.check()

        admin.config_set("appendonly", "yes")
        store.check()


def test_unreadable_settings_are_assumed_unsafe(tmp_path: Path) -> None:
    with LocalRedis(
        tmp_path,
        *("--appendonly", "yes", "--appendfsync", "everysec"),
        *("--user", *"farm on nopass ~* +@all -config".split()),
    ) as server:
        url = f"unix://farm@{server.socket}"
        with closing(open_store(url, accept_data_loss=True)) as store:
            durability = store.durability()

    numbers = tuple(int(each) for each in durability.version.split(".")[:2])
    assert durability.durable == (numbers >= (7, 2))
    assert ("WAITAOF" if durability.durable else "unknown") in durability.description


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[LocalRedis, LocalRedis]]:
    """A server and its replica."""
    for name in ("master", "replica"):
        (tmp_path / name).mkdir()
    at_once = ("--repl-diskless-sync-delay", "0")
    with LocalRedis(tmp_path / "master", *DURABLE, *at_once, listens="--port") as master:
        to_master = ("--replicaof", "127.0.0.1", str(master.port))
        with LocalRedis(tmp_path / "replica", *DURABLE, *to_master) as replica:
            yield master, replica


def test_writes_wait_for_replicas(pair: tuple[LocalRedis, LocalRedis]) -> None:
    master, replica = pair
    url = f"{master.url}?replicas=1"
    with (
        closing(open_store(url)) as patient,
        closing(RedisStore(parse_address(url), answer_seconds=2)) as one,
        closing(RedisStore(parse_address(url), answer_seconds=2)) as other,
        replica.admin() as admin,
    ):
        patient.create("job", Commit(b"", [b"one"]))
        token = patient.acquire("job", "me")
        assert admin.hget("{remy-farm}:job:job", "token") == str(token).encode()
        assert "once it is on 1 replica" in patient.durability().description

        replica.freeze()
        # The second commit would conflict, but the state that it conflicts with is not yet
        # replicated.
        for impatient in (one, other):
            with pytest.raises(StoreUnavailable) as raised:
                impatient.commit("job", token, 1, Commit(b"", [b"two"]))
            assert str(raised.value) == (
                f"Redis at {master.url} did not have a write on 1 replica within 2 s"
            )
        replica.thaw()

        with pytest.raises(Conflict):
            patient.commit("job", token, 1, Commit(b"", [b"two"]))
        assert admin.hget("{remy-farm}:job:job", "revision") == b"2"
