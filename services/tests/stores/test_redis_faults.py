"""Tests faults of a Redis server, and recovery from them."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from remy_services.stores import open_store
from remy_services.stores.contract import Commit, Conflict, StoreError, StoreUnavailable
from remy_services.stores.redis.connection import parse_address
from remy_services.stores.redis.store import RedisStore
from services.tests.stores.local_redis import LocalRedis
from tests.waiting import wait_until

_MORE = Commit(b"new", [b"two", b"three"], b"state", 1, epochs={0: b"epoch"})


@pytest.fixture
def store(own_redis: LocalRedis) -> Iterator[RedisStore]:
    """A store with a job at revision 1, held by token 1."""
    with closing(_open(own_redis)) as store:
        store.create("job", Commit(b"old", [b"one"]))
        assert store.acquire("job", "me") == 1
        yield store


@pytest.fixture
def admin(own_redis: LocalRedis) -> Iterator[redis.Redis]:
    with own_redis.admin() as client:
        yield client


def _open(server: LocalRedis, *, answer_seconds: float = 120) -> RedisStore:
    return RedisStore(parse_address(server.url), answer_seconds=answer_seconds)


def _assert_refuses_writes(store: RedisStore, message: str) -> None:
    """Asserts that every kind of write fails with this message."""
    calls: list[Callable[[], object]] = [
        store.check,
        lambda: store.commit("job", 1, 1, _MORE),
        lambda: store.create("other", _MORE, request_key="key"),
        lambda: store.acquire("job", "another"),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable, match=message):
            call()


def _assert_unchanged_and_writable(store: RedisStore) -> None:
    """Asserts that the failed writes had no effect, and that new ones succeed."""
    job = store.job("job")
    assert (job.record, job.revision, job.token) == (b"old", 1, 1)
    assert [each.job_id for each in store.jobs()] == ["job"]
    assert (store.snapshots("job"), store.epochs("job")) == ([], {})
    store.check()
    assert store.commit("job", 1, 1, _MORE) == 3
    assert len(store.snapshots("job")) == 1


def test_out_of_memory_is_temporary(store: RedisStore, admin: redis.Redis) -> None:
    admin.config_set("maxmemory", "1mb")

    _assert_refuses_writes(store, "is out of memory: it has reached its maxmemory limit")
    assert store.job("job").record == b"old"
    store.prune_snapshots("job", 1, keep=1)

    admin.config_set("maxmemory", "0")
    _assert_unchanged_and_writable(store)


def test_a_read_only_replica_is_temporary(store: RedisStore, admin: redis.Redis) -> None:
    admin.replicaof("127.0.0.1", "1")

    _assert_refuses_writes(store, "is a read-only replica")

    admin.replicaof("no", "one")
    _assert_unchanged_and_writable(store)


def test_too_few_replicas_are_temporary(store: RedisStore, admin: redis.Redis) -> None:
    admin.config_set("min-replicas-to-write", "1")

    _assert_refuses_writes(store, "has fewer replicas than min-replicas-to-write")

    admin.config_set("min-replicas-to-write", "0")
    _assert_unchanged_and_writable(store)


def test_an_unwritable_disk_is_temporary(tmp_path: Path) -> None:
    with (
        LocalRedis(
            tmp_path,
            *("--enable-protected-configs", "yes"),
            *("--appendonly", "yes"),
            *("--appendfsync", "always"),
        ) as server,
        closing(_open(server)) as store,
        server.admin() as admin,
    ):
        store.create("job", Commit(b"old", [b"one"]))
        store.acquire("job", "me")
        admin.config_set("save", "3600 1")
        admin.config_set("dir", "/proc")
        admin.bgsave()
        wait_until(lambda: admin.info("persistence")["rdb_last_bgsave_status"] == "err")

        _assert_refuses_writes(store, "refuses writes because it cannot write to its disk")

        admin.config_set("dir", str(tmp_path))
        admin.config_set("save", "")
        admin.bgsave()
        wait_until(lambda: admin.info("persistence")["rdb_last_bgsave_status"] == "ok")
        _assert_unchanged_and_writable(store)


def test_a_stopped_server_is_temporary(store: RedisStore, own_redis: LocalRedis) -> None:
    own_redis.kill()

    _assert_refuses_writes(store, f"Redis at {own_redis.url} cannot be reached")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        store.jobs()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        open_store(own_redis.url)

    own_redis.start()
    _assert_unchanged_and_writable(store)


def test_a_commit_with_lost_reply_is_detected_by_a_retry(own_redis: LocalRedis) -> None:
    with (
        closing(_open(own_redis, answer_seconds=0.1)) as impatient,
        closing(_open(own_redis)) as patient,
    ):
        patient.create("job", Commit(b"old", [b"one"]))
        token = patient.acquire("job", "me")
        own_redis.freeze()
        with pytest.raises(StoreUnavailable, match=f"{own_redis.url} does not answer in time"):
            impatient.commit("job", token, 1, _MORE)
        own_redis.thaw()

        # The server executes the request that was sent while it was frozen.
        wait_until(lambda: patient.job("job").revision == 3)
        with pytest.raises(Conflict) as raised:
            patient.commit("job", token, 1, _MORE)

    assert raised.value.revision == 1 + len(_MORE.events)


def test_requests_are_never_retried(own_redis: LocalRedis) -> None:
    with (
        closing(_open(own_redis, answer_seconds=0.1)) as impatient,
        closing(_open(own_redis)) as patient,
    ):
        patient.create("job", Commit(b"old", [b"one"]))
        own_redis.freeze()
        with pytest.raises(StoreUnavailable):
            impatient.acquire("job", "me")
        own_redis.thaw()
        wait_until(lambda: patient.job("job").token > 0)

        # Each request gets the next token, so token 2 shows that the first was sent once.
        assert patient.acquire("job", "me") == 2


def test_a_wrong_password_is_not_shown(tmp_path: Path) -> None:
    with LocalRedis(
        tmp_path, "--requirepass", "right-secret", "--appendonly", "yes", "--appendfsync", "always"
    ) as server:
        for environment in ({}, {"REMY_FARM_REDIS_PASSWORD": "wrong-secret"}):
            with pytest.raises(StoreUnavailable) as raised:
                open_store(server.url, environment=environment)
            assert "secret" not in "".join(traceback.format_exception(raised.value))
            assert str(raised.value) == f"Redis at {server.url} rejects this user and password"

        password_file = tmp_path / "password"
        password_file.write_text("right-secret\n")
        for environment in (
            {"REMY_FARM_REDIS_PASSWORD": "right-secret"},
            {"REMY_FARM_REDIS_PASSWORD_FILE": str(password_file)},
        ):
            with closing(open_store(server.url, environment=environment)) as store:
                store.check()
                assert "secret" not in repr(store)


def test_another_schema_version_is_refused(own_redis: LocalRedis, admin: redis.Redis) -> None:
    admin.set("{remy-farm}:schema", "1")

    with pytest.raises(
        StoreError, match="schema version 1, but this program reads version 2 only; finish"
    ):
        _open(own_redis)


def test_prefixes_isolate_stores(own_redis: LocalRedis) -> None:
    address = parse_address(own_redis.url)
    with (
        closing(RedisStore(address, prefix="one")) as one,
        closing(RedisStore(address, prefix="two")) as two,
    ):
        one.create("job", Commit(b"", [b"one"]), request_key="key")
        two.create("job", Commit(b"", [b"two"]), request_key="key")

        assert one.events("job") == [(1, b"one")]
        assert two.events("job") == [(1, b"two")]
    for prefix in ("", "a b", "a{b}", "x" * 65):
        with pytest.raises(ValueError, match="1 to 64 letters, digits"):
            RedisStore(address, prefix=prefix)
