"""Tests open_store: URL schemes and their errors."""

from contextlib import closing
from pathlib import Path

import pytest

from remy_services.stores import open_store
from remy_services.stores.contract import Commit, StoreError, StoreUnavailable
from services.tests.stores.local_redis import LocalRedis


def test_sqlite_urls_are_absolute_or_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_store(f"sqlite://{tmp_path}/a%20b.db")) as store:
        store.create("job", Commit(b"", [b"one"]))
        assert store.durability().kind == "sqlite"

    assert (tmp_path / "a b.db").exists()
    with closing(open_store("sqlite:a%20b.db")) as store:
        assert [job.job_id for job in store.jobs()] == ["job"]


def test_redis_urls_open_a_redis_store(shared_redis: LocalRedis) -> None:
    with closing(open_store(f"{shared_redis.url}?database=1")) as store:
        assert store.durability().kind == "redis"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "has no scheme; use sqlite:///PATH, redis://"),
        ("jobs.db", "has no scheme"),
        ("/var/lib/jobs.db", "has no scheme"),
        ("postgres://farm", "has scheme 'postgres'; use sqlite:///PATH"),
        ("sqlite:", "sqlite: has no valid path"),
        ("sqlite://", "sqlite:// has no valid path"),
        (
            "sqlite://jobs.db",
            "has no valid path; use a form such as sqlite:///var/lib/farm.db or sqlite:farm.db",
        ),
        ("sqlite:///a?b=c", "has no valid path"),
    ],
)
def test_invalid_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(StoreError) as raised:
        open_store(url)

    assert message in str(raised.value)
    assert not isinstance(raised.value, StoreUnavailable)


def test_errors_do_not_show_credentials() -> None:
    with pytest.raises(StoreError) as raised:
        open_store("me:hush@farm")

    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read (no such file"), (b"\xff", "is not UTF-8 text")],
)
def test_an_unreadable_password_file_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(StoreError) as raised:
        open_store("redis://farm", environment={"REMY_FARM_REDIS_PASSWORD_FILE": str(path)})

    assert "Redis password file" in str(raised.value)
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


def test_an_unreachable_server_raises_store_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as raised:
        open_store("redis://127.0.0.1:1")
    assert str(raised.value) == (
        "Redis at redis://127.0.0.1:1 cannot be reached (connection refused)"
    )

    with pytest.raises(StoreUnavailable) as raised:
        open_store(f"unix://{tmp_path}/none.sock")
    assert "cannot be reached (no such file or directory)" in str(raised.value)
