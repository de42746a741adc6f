"""Tests failover by Redis Sentinel, with and without TLS."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from remy_services.stores import open_store
from remy_services.stores.contract import Commit, StoreError, StoreUnavailable
from services.tests.stores.certificates import Certificates, make_certificates
from services.tests.stores.contents import contents
from services.tests.stores.local_redis import DURABLE, LocalRedis
from services.tests.stores.local_sentinel import LocalSentinel
from tests.waiting import wait_until


@dataclass(frozen=True)
class _Watched:
    master: LocalRedis
    replica: LocalRedis
    url: str


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[_Watched]:
    """A server and its replica, monitored by a Sentinel."""
    yield from start_watched(tmp_path)


@pytest.fixture
def watched_by_tls(tmp_path: Path) -> Iterator[_Watched]:
    """A server, its replica and a Sentinel that all use TLS only."""
    yield from start_watched(tmp_path, make_certificates(tmp_path))


def start_watched(tmp_path: Path, tls: Certificates | None = None) -> Iterator[_Watched]:
    settings = [*DURABLE, "--repl-diskless-sync-delay", "0"]
    if tls is not None:
        settings += [*tls.settings, "--tls-replication", "yes"]
    listens: Literal["--port", "--tls-port"] = "--port" if tls is None else "--tls-port"
    for name in ("master", "replica"):
        (tmp_path / name).mkdir()
    with ExitStack() as stack:
        master = stack.enter_context(LocalRedis(tmp_path / "master", *settings, listens=listens))
        to_master = ("--replicaof", "127.0.0.1", str(master.port))
        replica = stack.enter_context(
            LocalRedis(tmp_path / "replica", *settings, *to_master, listens=listens)
        )
        sentinel = stack.enter_context(LocalSentinel(tmp_path, master, tls))
        hosts = f"127.0.0.1:1,127.0.0.1:{sentinel.port}"
        url = f"redis+sentinel://{hosts}/farm?replicas=1"
        if tls is not None:
            url = f"{url}&tls_ca={tls.authority}".replace("redis+", "rediss+")
        yield _Watched(master, replica, url)


@pytest.mark.parametrize("by", ["watched", "watched_by_tls"])
def test_acknowledged_commits_survive_a_failover(by: str, request: pytest.FixtureRequest) -> None:
    watched: _Watched = request.getfixturevalue(by)
    with closing(open_store(watched.url)) as store:
        store.create("job", Commit(b"record", [b"one"]))
        token = store.acquire("job", "me")
        store.commit("job", token, 1, Commit(b"new", [b"two"], b"state", 1))
        before = contents(store)

        watched.master.kill()

        def is_back() -> bool:
            try:
                return contents(store) == before
            except StoreUnavailable:
                return False

        wait_until(is_back)
        with watched.replica.admin() as admin:
            assert admin.info("replication")["role"] == "master"


def test_a_failover_that_may_lose_jobs_is_refused(watched: _Watched) -> None:
    with pytest.raises(StoreError, match="a failover loses unreplicated writes"):
        open_store(watched.url.replace("?replicas=1", ""))


def test_an_unknown_service_raises_store_unavailable(watched: _Watched) -> None:
    with pytest.raises(StoreUnavailable, match="no reachable Sentinel knows a master"):
        open_store(watched.url.replace("/farm", "/other"))


def test_tls_sentinels_are_not_reached_without_tls_settings(watched_by_tls: _Watched) -> None:
    with pytest.raises(StoreUnavailable, match="no reachable Sentinel knows a master"):
        open_store(watched_by_tls.url.replace("rediss+", "redis+").partition("&")[0])
    with pytest.raises(StoreUnavailable, match="no reachable Sentinel knows a master"):
        open_store(watched_by_tls.url.partition("&")[0])
