"""Tests concurrent use of stores by threads and connections."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from remy_services.stores.contract import CheckpointStore, Commit, Conflict, StoreUnavailable
from remy_services.stores.sqlite import SqliteStore

_THREADS = 6
_COMMITS = 15


def _run_in_threads(work: Callable[[int], None]) -> None:
    """Runs `work(number)` in all threads at once, and raises their first error."""
    errors: list[BaseException] = []
    gate = threading.Barrier(_THREADS)

    def run(number: int) -> None:
        gate.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _race(stores: list[CheckpointStore]) -> None:
    """Commits to one job from all threads, which retry after conflicts, and checks the history."""
    stores[0].create("job", Commit(b"0", [b"start"], b"0", 1))
    token = stores[0].acquire("job", "all")

    def work(number: int) -> None:
        store = stores[number % len(stores)]
        name = b"%d" % number
        commit = Commit(name, [name, name], name, 1, epochs={number: name})
        made = 0
        while made < _COMMITS:
            revision = store.job("job").revision
            with suppress(Conflict):
                assert store.commit("job", token, revision, commit) == revision + 2
                made += 1

    _run_in_threads(work)

    events = stores[0].events("job")
    assert [revision for revision, _ in events] == list(range(1, 2 + 2 * _THREADS * _COMMITS))
    firsts, seconds = events[1::2], events[2::2]
    winners = [name for _, name in firsts]
    assert winners == [name for _, name in seconds]
    assert Counter(winners) == {b"%d" % number: _COMMITS for number in range(_THREADS)}
    assert stores[0].job("job").record == winners[-1]
    assert {each.revision: each.data for each in stores[0].snapshots("job")} == {
        1: b"0",
        **dict(seconds),
    }


def test_each_revision_is_committed_exactly_once(store: CheckpointStore) -> None:
    _race([store])


def test_each_revision_is_committed_exactly_once_of_two_programs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with (
        closing(SqliteStore(path, busy_seconds=120)) as one,
        closing(SqliteStore(path, busy_seconds=120)) as two,
    ):
        _race([one, two])


def test_a_new_file_can_be_opened_concurrently(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    def work(number: int) -> None:
        with closing(SqliteStore(path, busy_seconds=120)) as store:
            store.create(f"job-{number}", Commit(b"", [b"one"]))

    _run_in_threads(work)

    with closing(SqliteStore(path)) as store:
        assert len(store.jobs()) == _THREADS


def test_opening_waits_for_another_connection_that_creates_the_file(tmp_path: Path) -> None:
    """SQLite's busy timeout does not cover the switch to WAL mode, so the store retries."""
    path = tmp_path / "jobs.db"
    path.touch(mode=0o600)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="is locked by another process"):
            SqliteStore(path, busy_seconds=0.05)
        end = threading.Timer(0.3, other.execute, ["ROLLBACK"])
        end.start()
        with closing(SqliteStore(path, busy_seconds=120)) as store:
            assert store.jobs() == []
        end.join()


def test_tokens_are_unique(store: CheckpointStore) -> None:
    store.create("job", Commit(b"", [b"one"]))
    tokens: list[int] = []

    _run_in_threads(
        lambda number: tokens.extend(store.acquire("job", f"{number}") for _ in range(5))
    )

    assert len(set(tokens)) == 5 * _THREADS
    assert store.job("job").token == max(tokens)


def test_concurrent_requests_with_one_key_create_one_job(store: CheckpointStore) -> None:
    made: list[str] = []

    def work(number: int) -> None:
        made.append(store.create(f"{number}", Commit(b"", [b"one"]), request_key="key"))

    _run_in_threads(work)

    assert len(set(made)) == 1
    assert [job.job_id for job in store.jobs()] == made[:1]
