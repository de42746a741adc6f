"""Tests that acknowledged commits survive kills of writers and servers."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from remy_services.stores import open_store
from remy_services.stores.contract import CheckpointStore, StoreUnavailable
from services.tests.stores import committer
from services.tests.stores.local_redis import LocalRedis
from tests.waiting import TIMEOUT_SECONDS

_KILLS = 10


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/jobs.db"
    server: LocalRedis = request.getfixturevalue("own_redis")
    return server.url


def test_commits_of_a_killed_writer_are_atomic(url: str) -> None:
    moments = random.Random(1)
    with closing(open_store(url)) as store:
        committer.create_job(store)
        acknowledged = store.job(committer.JOB).revision
        tokens = []
        for _ in range(_KILLS):
            process = committer.start(url)
            assert process.stdout is not None
            for _ in range(1 + moments.randrange(8)):
                acknowledged = int(process.stdout.readline())
            # Kill at a random time during later commits.
            time.sleep(moments.random() * 0.02)
            process.kill()
            rest, _ = process.communicate()
            *lines, _ = rest.split("\n")
            acknowledged = committer.check(store, int(lines[-1]) if lines else acknowledged)
            tokens.append(store.job(committer.JOB).token)

        assert tokens == sorted(set(tokens))
        store.check()


def test_a_killed_server_keeps_acknowledged_commits(own_redis: LocalRedis) -> None:
    moments = random.Random(2)
    with closing(open_store(own_redis.url)) as store:
        committer.create_job(store)
        token = store.acquire(committer.JOB, "me")
        writer = _Writer(store, token)
        try:
            for _ in range(_KILLS):
                writer.wait_for(1 + moments.randrange(8))
                time.sleep(moments.random() * 0.01)
                own_redis.kill()
                acknowledged = writer.revision
                with pytest.raises(StoreUnavailable, match="cannot be reached"):
                    store.check()
                own_redis.start()
                with closing(open_store(own_redis.url)) as fresh:
                    assert fresh.job(committer.JOB).revision >= acknowledged
        finally:
            writer.stop()
        committer.check(store, writer.revision)


class _Writer:
    """A thread that commits continuously."""

    def __init__(self, store: CheckpointStore, token: int) -> None:
        #: The last acknowledged revision.
        self.revision = store.job(committer.JOB).revision
        self._store = store
        self._token = token
        self._is_stopping = False
        self._progress = threading.Condition()
        self._pool = ThreadPoolExecutor(1)
        self._running = self._pool.submit(self._run)

    def wait_for(self, commits: int) -> None:
        """Waits until this many more commits are acknowledged."""
        goal = self.revision + 3 * commits
        with self._progress:
            assert self._progress.wait_for(
                lambda: self.revision >= goal or self._running.done(), TIMEOUT_SECONDS
            )

    def stop(self) -> None:
        """Stops the thread, and raises its error."""
        self._is_stopping = True
        self._pool.shutdown()
        self._running.result()

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                revision = committer.commit_once(self._store, self._token, self.revision)
                with self._progress:
                    self.revision = revision
                    self._progress.notify_all()
                committer.prune(self._store, self._token)
        finally:
            with self._progress:
                self._progress.notify_all()
