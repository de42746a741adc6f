"""Fixtures: a running coordinator and a client."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.tests.coordinator.running_server import Client, RunningServer, settings_for


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A running coordinator."""
    with RunningServer(settings_for(tmp_path)) as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Client:
    """A client of the coordinator."""
    return server.client()
