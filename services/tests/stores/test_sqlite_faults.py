"""Tests SqliteStore's file errors."""

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
def database_path(tmp_path: Path) -> Path:
    """An SQLite store with one job."""
    database_path = tmp_path / "jobs.db"
    with closing(SqliteStore(database_path)) as store:
        store.create("job", FIRST)
    return database_path


def test_database_files_are_private(tmp_path: Path) -> None:
    database_path = tmp_path / "new" / "jobs.db"
    database_path.parent.mkdir()
    with closing(SqliteStore(database_path)) as store:
        store.create("job", FIRST)
        modes = {
            each.name: stat.S_IMODE(each.stat().st_mode) for each in database_path.parent.iterdir()
        }

    assert modes == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600}


def test_a_missing_folder_is_a_permanent_error(tmp_path: Path) -> None:
    database_path = tmp_path / "none" / "jobs.db"
    with pytest.raises(
        StoreError, match=r"the folder .*none does not exist; create it, or"
    ) as raised:
        SqliteStore(database_path)
    assert not isinstance(raised.value, StoreUnavailable)
    assert not database_path.parent.exists()


def test_a_job_survives_reopening(database_path: Path) -> None:
    with closing(SqliteStore(database_path)) as store:
        assert store.job("job").record == b"record"


def test_every_commit_is_forced_to_the_disk(database_path: Path) -> None:
    store = SqliteStore(database_path)
    with closing(store), store._database.writing() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        full = 2
        assert connection.execute("PRAGMA synchronous").fetchone() == (full,)


def test_a_full_disk_is_a_temporary_error(tmp_path: Path) -> None:
    database_path = tmp_path / "jobs.db"

    error, after_error, after_retry = run_module(
        "services.tests.stores.full_disk", str(database_path)
    ).splitlines()

    assert error == f"error: {database_path} cannot be read or written: disk full or I/O error"
    assert after_error == "after error: b'old' 1 [] {}"
    assert after_retry == "after retry: b'new' 1"


def test_a_full_database_is_a_temporary_error(database_path: Path) -> None:
    store = SqliteStore(database_path)
    with closing(store):
        token = store.acquire("job", "me")
        with store._database.writing() as connection:
            connection.execute("PRAGMA max_page_count = 20")
        large = Commit(b"new", [b"two"], bytes(200_000), 1)

        with pytest.raises(
            StoreUnavailable, match=f"{database_path} cannot grow: the disk is full"
        ):
            store.commit("job", token, 1, large)

        assert store.job("job").revision == 1
        assert store.commit("job", token, 1, large) == 2


def test_read_only_files_are_temporary_and_read_only_folders_permanent_errors(
    tmp_path: Path,
) -> None:
    database_path = tmp_path / "folder" / "jobs.db"
    database_path.parent.mkdir(mode=0o777)
    database_path.parent.chmod(0o777)

    lines = run_module(
        "services.tests.stores.read_only", str(database_path), unprivileged=True
    ).splitlines()

    assert lines == [
        "read: b'record'",
        f"error: {database_path} is read-only for this user",
        f"error: {database_path} is read-only for this user",
        "after chmod: 2",
        *(
            f"permanent: {database_path.parent / name} cannot be opened: this user may not create "
            f"files in the folder {database_path.parent}; grant that permission or choose another "
            "path"
            for name in ("other.db", "jobs.db")
        ),
    ]


def test_a_locked_database_is_a_temporary_error(database_path: Path) -> None:
    with closing(SqliteStore(database_path, busy_seconds=0)) as store:
        token = store.acquire("job", "me")
        with closing(sqlite3.connect(database_path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(
                StoreUnavailable, match=f"{database_path} is locked by another process"
            ):
                store.commit("job", token, 1, FIRST)
            assert store.job("job").revision == 1
            other.execute("COMMIT")

        assert store.commit("job", token, 1, FIRST) == 2


def test_an_exception_rolls_the_transaction_back(database_path: Path) -> None:
    store = SqliteStore(database_path)
    with closing(store):

        def interrupted_transaction() -> None:
            with store._database.writing() as connection:
                connection.execute("DELETE FROM events")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted_transaction()
        assert store.events("job") == [(1, b"one")]
        assert store.acquire("job", "me") == 1


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("PRAGMA user_version = 1", "has schema version 1, but this program reads version 2 only"),
        ("PRAGMA application_id = 7", "not a remy-farm job store"),
    ],
)
def test_other_schema_versions_are_refused(
    database_path: Path, statements: str, message: str
) -> None:
    with closing(sqlite3.connect(database_path)) as connection:
        connection.execute(statements)

    with pytest.raises(StoreError, match=message) as raised:
        SqliteStore(database_path)
    assert str(database_path) in str(raised.value)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    database_path = tmp_path / "letter.txt"
    database_path.write_text("Dear Sir or Madam, " * 1000)
    before = database_path.read_bytes()
    with pytest.raises(StoreError, match="is not an SQLite database"):
        SqliteStore(database_path)
    assert database_path.read_bytes() == before

    database_path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(database_path)) as connection:
        connection.execute("CREATE TABLE theirs (it)")
    with pytest.raises(StoreError, match="not a remy-farm job store"):
        SqliteStore(database_path)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        SqliteStore(tmp_path)


def test_corruption_is_a_permanent_error(database_path: Path) -> None:
    content = bytearray(database_path.read_bytes())
    content[4096:] = b"\xa5" * len(content[4096:])
    database_path.write_bytes(content)

    with closing(SqliteStore(database_path)) as store, pytest.raises(StoreError) as raised:
        store.jobs()

    assert str(raised.value) == f"{database_path} is corrupt; restore it from a backup"
    assert not isinstance(raised.value, StoreUnavailable)


def test_a_closed_store_raises(database_path: Path) -> None:
    store = SqliteStore(database_path)
    store.close()

    with pytest.raises(StoreError, match=f"{database_path} was closed"):
        store.jobs()
