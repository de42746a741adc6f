"""Many threads and several processes' worth of connections on one job."""

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


def _together(work: Callable[[int], None]) -> None:
    """Runs it in all threads at once, by their number, and raises what they do."""
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
    """All threads commit to one job, and repeat those commits that another one was before."""
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

    _together(work)

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


def test_each_revision_is_won_by_exactly_one(store: CheckpointStore) -> None:
    _race([store])


def test_each_revision_is_won_by_exactly_one_of_two_programs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with (
        closing(SqliteStore(path, busy_seconds=120)) as one,
        closing(SqliteStore(path, busy_seconds=120)) as two,
    ):
        _race([one, two])


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    def work(number: int) -> None:
        with closing(SqliteStore(path, busy_seconds=120)) as store:
            store.create(f"job-{number}", Commit(b"", [b"one"]))

    _together(work)

    with closing(SqliteStore(path)) as store:
        assert len(store.jobs()) == _THREADS


def test_a_new_file_that_another_program_prepares_is_waited_for(tmp_path: Path) -> None:
    """SQLite itself does not wait here: it would turn on its write-ahead log at once or never."""
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


def test_every_holder_gets_another_token(store: CheckpointStore) -> None:
    store.create("job", Commit(b"", [b"one"]))
    tokens: list[int] = []

    _together(lambda number: tokens.extend(store.acquire("job", f"{number}") for _ in range(5)))

    assert len(set(tokens)) == 5 * _THREADS
    assert store.job("job").token == max(tokens)


def test_one_request_makes_one_job_however_often_it_comes(store: CheckpointStore) -> None:
    made: list[str] = []

    def work(number: int) -> None:
        made.append(store.create(f"{number}", Commit(b"", [b"one"]), request_key="key"))

    _together(work)

    assert len(set(made)) == 1
    assert [job.job_id for job in store.jobs()] == made[:1]
