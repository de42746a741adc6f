from collections.abc import Iterator

import pytest

from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient
from remy_services.client.settings import ConnectionSettings
from services.tests.client.scripted_service import ScriptedService


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    scripted = ScriptedService()
    server = scripted.serve()
    yield scripted
    server.stop(grace=None).wait()


@pytest.fixture
def troubles() -> list[str]:
    """Messages about retries."""
    return []


@pytest.fixture
def connection(service: ScriptedService, troubles: list[str]) -> Iterator[Connection]:
    settings = ConnectionSettings(service.address)
    with Connection(settings, patience_seconds=60, on_trouble=troubles.append) as opened:
        yield opened


@pytest.fixture
def client(connection: Connection) -> DesignClient:
    return DesignClient(connection)
