"""Fixtures: a real coordinator, and commands called in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.tests.cli.conftest import SMALL_SPEC
from services.tests.cli.service.real_coordinator import TIMEOUT_SECONDS, Coordinator
from tests.waiting import wait_until

RunJson = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the connection settings of the user who runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("REMY_FARM_TOKEN", "REMY_FARM_TOKEN_FILE", "REMY_FARM_COORDINATOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def shared_coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    """A coordinator for tests that neither stop it nor count its jobs."""
    coordinator = Coordinator(tmp_path_factory.mktemp("coordinator"))
    coordinator.start()
    yield coordinator
    coordinator.close()


@pytest.fixture
def farm(shared_coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    """The shared coordinator, to which the commands of the test connect."""
    monkeypatch.setenv("REMY_FARM_COORDINATOR", shared_coordinator.address)
    monkeypatch.setenv("REMY_FARM_PATIENCE", str(TIMEOUT_SECONDS))
    return shared_coordinator


@pytest.fixture
def endless_spec(spec_file: Path) -> Path:
    """A specification whose design runs until it is cancelled."""
    spec_file.write_text(SMALL_SPEC.replace("epochs: 2", "epochs: 1000000"))
    return spec_file


@pytest.fixture
def until(run_json: RunJson) -> Callable[[str, Callable[[dict[str, Any]], bool]], dict[str, Any]]:
    """Waits until a job meets a condition, and returns the job."""

    def wait(job: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        return wait_until(
            lambda: current if condition(current := run_json("status", job)) else None, f"job {job}"
        )

    return wait
