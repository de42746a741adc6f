"""What can go wrong with a Redis server, and that each of it passes."""

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
    """A store with a job at revision 1 that token 1 holds."""
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


def _refuses(store: RedisStore, message: str) -> None:
    """It says so for every kind of write, and nothing has changed."""
    calls: list[Callable[[], object]] = [
        store.check,
        lambda: store.commit("job", 1, 1, _MORE),
        lambda: store.create("other", _MORE, request_key="key"),
        lambda: store.acquire("job", "another"),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable, match=message):
            call()


def _works(store: RedisStore) -> None:
    """Nothing has changed, and it can be written to."""
    job = store.job("job")
    assert (job.record, job.revision, job.token) == (b"old", 1, 1)
    assert [each.job_id for each in store.jobs()] == ["job"]
    assert (store.snapshots("job"), store.epochs("job")) == ([], {})
    store.check()
    assert store.commit("job", 1, 1, _MORE) == 3
    assert len(store.snapshots("job")) == 1


def test_out_of_memory(store: RedisStore, admin: redis.Redis) -> None:
    admin.config_set("maxmemory", "1mb")

    _refuses(store, "is out of memory: it holds as much as its maxmemory allows")
    assert store.job("job").record == b"old"
    store.prune_snapshots("job", 1, keep=1)

    admin.config_set("maxmemory", "0")
    _works(store)


def test_read_only(store: RedisStore, admin: redis.Redis) -> None:
    admin.replicaof("127.0.0.1", "1")

    _refuses(store, "is a read-only replica")

    admin.replicaof("no", "one")
    _works(store)


def test_too_few_replicas(store: RedisStore, admin: redis.Redis) -> None:
    admin.config_set("min-replicas-to-write", "1")

    _refuses(store, "has fewer replicas than min-replicas-to-write")

    admin.config_set("min-replicas-to-write", "0")
    _works(store)


def test_a_disk_that_cannot_be_written_to(tmp_path: Path) -> None:
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

        _refuses(store, "refuses writes because it cannot write to its disk")

        admin.config_set("dir", str(tmp_path))
        admin.config_set("save", "")
        admin.bgsave()
        wait_until(lambda: admin.info("persistence")["rdb_last_bgsave_status"] == "ok")
        _works(store)


def test_no_server(store: RedisStore, own_redis: LocalRedis) -> None:
    own_redis.kill()

    _refuses(store, f"Redis at {own_redis.url} cannot be reached")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        store.jobs()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        open_store(own_redis.url)

    own_redis.start()
    _works(store)


def test_a_lost_answer_is_found_out_by_asking_again(own_redis: LocalRedis) -> None:
    with (
        closing(_open(own_redis, answer_seconds=0.1)) as hasty,
        closing(_open(own_redis)) as patient,
    ):
        patient.create("job", Commit(b"old", [b"one"]))
        token = patient.acquire("job", "me")
        own_redis.freeze()
        with pytest.raises(StoreUnavailable, match=f"{own_redis.url} does not answer in time"):
            hasty.commit("job", token, 1, _MORE)
        own_redis.thaw()

        # The server reads what was sent to it before it was thawed.
        wait_until(lambda: patient.job("job").revision == 3)
        with pytest.raises(Conflict) as raised:
            patient.commit("job", token, 1, _MORE)

    assert raised.value.revision == 1 + len(_MORE.events)


def test_nothing_is_sent_twice(own_redis: LocalRedis) -> None:
    with (
        closing(_open(own_redis, answer_seconds=0.1)) as hasty,
        closing(_open(own_redis)) as patient,
    ):
        patient.create("job", Commit(b"old", [b"one"]))
        own_redis.freeze()
        with pytest.raises(StoreUnavailable):
            hasty.acquire("job", "me")
        own_redis.thaw()
        wait_until(lambda: patient.job("job").token > 0)

        # Every request for a token gets the next one.
        assert patient.acquire("job", "me") == 2


def test_a_wrong_password_is_not_shown(tmp_path: Path) -> None:
    with LocalRedis(
        tmp_path, "--requirepass", "right-secret", "--appendonly", "yes", "--appendfsync", "always"
    ) as server:
        for environment in ({}, {"REMY_FARM_REDIS_PASSWORD": "wrong-secret"}):
            with pytest.raises(StoreUnavailable) as raised:
                open_store(server.url, environment=environment)
            assert "secret" not in "".join(traceback.format_exception(raised.value))
            assert str(raised.value) == f"Redis at {server.url} refuses this user and password"

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
        StoreError, match="schema version 1, and this program reads version 2 only; finish"
    ):
        _open(own_redis)


def test_stores_under_other_prefixes_do_not_meet(own_redis: LocalRedis) -> None:
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
