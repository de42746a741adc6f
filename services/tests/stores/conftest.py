"""Fixtures: stores on SQLite and on a real Redis server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from remy_services.stores.contract import CheckpointStore
from remy_services.stores.redis.connection import parse_address
from remy_services.stores.redis.store import RedisStore
from remy_services.stores.sqlite import SqliteStore
from services.tests.stores.local_redis import LocalRedis

NewStore = Callable[[], CheckpointStore]

_numbers = count()


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRedis]:
    """A server shared by tests that only write keys under their own prefixes."""
    with LocalRedis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[LocalRedis]:
    """A server that a test may kill or reconfigure."""
    folder = tmp_path / "redis"
    folder.mkdir()
    with LocalRedis(folder) as server:
        yield server


@pytest.fixture(params=["sqlite", "redis"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    """A function that opens a new empty store at each call."""
    with ExitStack() as stack:

        def on_sqlite() -> CheckpointStore:
            return stack.enter_context(closing(SqliteStore(tmp_path / f"{next(_numbers)}.db")))

        def on_redis() -> CheckpointStore:
            server: LocalRedis = request.getfixturevalue("shared_redis")
            return stack.enter_context(
                closing(
                    RedisStore(
                        parse_address(server.url),
                        prefix=f"test-{next(_numbers)}",
                        answer_seconds=120,
                    )
                )
            )

        yield on_sqlite if request.param == "sqlite" else on_redis


@pytest.fixture
def store(new_store: NewStore) -> CheckpointStore:
    """An empty store."""
    return new_store()
