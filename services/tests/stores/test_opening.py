"""Stores by their URLs."""

from contextlib import closing
from pathlib import Path

import pytest

from remy_services.stores import open_store
from remy_services.stores.contract import Commit, StoreError, StoreUnavailable
from services.tests.stores.local_redis import LocalRedis


def test_sqlite_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_store(f"sqlite://{tmp_path}/a%20b.db")) as store:
        store.create("job", Commit(b"", [b"one"]))
        assert store.durability().kind == "sqlite"

    assert (tmp_path / "a b.db").exists()
    with closing(open_store("sqlite:a%20b.db")) as store:
        assert [job.job_id for job in store.jobs()] == ["job"]


def test_redis_servers(shared_redis: LocalRedis) -> None:
    with closing(open_store(f"{shared_redis.url}?database=1")) as store:
        assert store.durability().kind == "redis"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "has no scheme; sqlite:///PATH, redis://"),
        ("jobs.db", "has no scheme"),
        ("/var/lib/jobs.db", "has no scheme"),
        ("postgres://farm", "has scheme 'postgres'; sqlite:///PATH"),
        ("sqlite:", "sqlite: does not name a file"),
        ("sqlite://", "sqlite:// does not name a file"),
        ("sqlite://jobs.db", "does not name a file; sqlite:///var/lib/farm.db or sqlite:farm.db"),
        ("sqlite:///a?b=c", "does not name a file"),
    ],
)
def test_other_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(StoreError) as raised:
        open_store(url)

    assert message in str(raised.value)
    assert not isinstance(raised.value, StoreUnavailable)


def test_what_may_be_a_secret_is_not_repeated() -> None:
    with pytest.raises(StoreError) as raised:
        open_store("me:hush@farm")

    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read (no such file"), (b"\xff", "is not text in UTF-8")],
)
def test_a_password_file_must_be_one(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(StoreError) as raised:
        open_store("redis://farm", environment={"REMY_FARM_REDIS_PASSWORD_FILE": str(path)})

    assert f"the file of the Redis password {path}" in str(raised.value)
    assert message in str(raised.value)


def test_a_server_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as raised:
        open_store("redis://127.0.0.1:1")
    assert str(raised.value) == (
        "Redis at redis://127.0.0.1:1 cannot be reached (connection refused)"
    )

    with pytest.raises(StoreUnavailable) as raised:
        open_store(f"unix://{tmp_path}/none.sock")
    assert "cannot be reached (no such file or directory)" in str(raised.value)
