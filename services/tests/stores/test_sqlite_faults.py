"""What can go wrong with a file."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from remy_services.stores.contract import Commit, StoreError, StoreUnavailable
from remy_services.stores.sqlite import SqliteStore
from services.tests.stores.running import run_module

FIRST = Commit(b"record", [b"one"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that holds a job."""
    path = tmp_path / "jobs.db"
    with closing(SqliteStore(path)) as store:
        store.create("job", FIRST)
    return path


def test_only_its_user_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "jobs.db"
    path.parent.mkdir()
    with closing(SqliteStore(path)) as store:
        store.create("job", FIRST)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert modes == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600}


def test_a_folder_that_is_not_there_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "none" / "jobs.db"
    with pytest.raises(StoreError, match=r"there is no folder .*none; make it, or") as raised:
        SqliteStore(path)
    assert not isinstance(raised.value, StoreUnavailable)
    assert not path.parent.exists()


def test_it_is_kept(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        assert store.job("job").record == b"record"


def test_every_commit_is_forced_to_the_disk(path: Path) -> None:
    store = SqliteStore(path)
    with closing(store), store._database.writing() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        full = 2
        assert connection.execute("PRAGMA synchronous").fetchone() == (full,)


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    refused, then, later = run_module("services.tests.stores.full_disk", str(path)).splitlines()

    assert refused == f"refused: {path} cannot be read or written: its disk is full or fails"
    assert then == "then: b'old' 1 [] {}"
    assert later == "later: b'new' 1"


def test_a_file_that_may_not_grow_is_waited_for(path: Path) -> None:
    store = SqliteStore(path)
    with closing(store):
        token = store.acquire("job", "me")
        with store._database.writing() as connection:
            connection.execute("PRAGMA max_page_count = 20")
        large = Commit(b"new", [b"two"], bytes(200_000), 1)

        with pytest.raises(StoreUnavailable, match=f"{path} cannot grow: the disk is full"):
            store.commit("job", token, 1, large)

        assert store.job("job").revision == 1
        assert store.commit("job", token, 1, large) == 2


def test_read_only_files_are_waited_for_and_read_only_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "jobs.db"
    path.parent.mkdir(mode=0o777)
    path.parent.chmod(0o777)

    lines = run_module("services.tests.stores.read_only", str(path), as_anybody=True).splitlines()

    assert lines == [
        "read: b'record'",
        f"refused: {path} is read-only for this user",
        f"refused: {path} is read-only for this user",
        "later: 2",
        *(
            f"other: {path.parent / name} cannot be opened: this user may not make files in the "
            f"folder {path.parent}; permit that, or name a file elsewhere"
            for name in ("other.db", "jobs.db")
        ),
    ]


def test_a_writer_that_holds_on_is_waited_for(path: Path) -> None:
    with closing(SqliteStore(path, busy_seconds=0)) as store:
        token = store.acquire("job", "me")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match=f"{path} is locked by another process"):
                store.commit("job", token, 1, FIRST)
            assert store.job("job").revision == 1
            other.execute("COMMIT")

        assert store.commit("job", token, 1, FIRST) == 2


def test_an_error_in_a_transaction_undoes_it(path: Path) -> None:
    store = SqliteStore(path)
    with closing(store):

        def half() -> None:
            with store._database.writing() as connection:
                connection.execute("DELETE FROM events")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            half()
        assert store.events("job") == [(1, b"one")]
        assert store.acquire("job", "me") == 1


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("PRAGMA user_version = 1", "has schema version 1, and this program reads version 2 only"),
        ("PRAGMA application_id = 7", "is not a store of jobs of remy-farm"),
    ],
)
def test_another_layout_is_refused(path: Path, statements: str, message: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statements)

    with pytest.raises(StoreError, match=message) as raised:
        SqliteStore(path)
    assert str(path) in str(raised.value)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, " * 1000)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not an SQLite database"):
        SqliteStore(path)
    assert path.read_bytes() == before

    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (it)")
    with pytest.raises(StoreError, match="is not a store of jobs of remy-farm"):
        SqliteStore(path)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        SqliteStore(tmp_path)


def test_damage_is_told_from_what_will_pass(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * len(content[4096:])
    path.write_bytes(content)

    with closing(SqliteStore(path)) as store, pytest.raises(StoreError) as raised:
        store.jobs()

    assert str(raised.value) == f"{path} is damaged; restore it from a copy"
    assert not isinstance(raised.value, StoreUnavailable)


def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteStore(path)
    store.close()

    with pytest.raises(StoreError, match=f"{path} was closed"):
        store.jobs()
