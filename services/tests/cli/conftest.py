"""Fixtures: a small RemyCC, a small specification, and `remy-farm` called in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from library.tests.small_network import SMALL_NETWORK
from remy_cli.main import main
from remy_farm.remycc import RemyCC, write_remycc
from remy_simulator import RuleTable

SMALL_SPEC = f"""\
name: small
{SMALL_NETWORK}search:
  mode: paper
  simulated_seconds: 1
  paper:
    validation_specimens: 8
    window_increment: {{first_step: 20, steps: 1}}
    window_multiple: {{first_step: 0.3, steps: 1}}
    intersend_ms: {{first_step: 1, steps: 1}}
stop: {{epochs: 2}}
"""

Run = Callable[..., Result]


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL_SPEC)
    return path


@pytest.fixture
def remycc_file(tmp_path: Path) -> Path:
    """A RemyCC with one split at every signal, so that each region has a finite bound."""
    table = RuleTable([0, 1, 2], [([], (0.9, 4.0, 1.5))]).split(0, [(0, 2.0), (1, 3.0), (2, 1.25)])
    path = tmp_path / "small.json"
    write_remycc(path, RemyCC(table))
    return path


@pytest.fixture
def run() -> Run:
    """Calls `remy-farm` with these arguments."""

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def run_json(run: Run) -> Callable[..., dict[str, Any]]:
    """Calls `remy-farm` with --json, and returns the object that it prints."""

    def call(*arguments: object) -> dict[str, Any]:
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        output = json.loads(result.stdout)
        assert isinstance(output, dict)
        return output

    return call


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes COLUMNS, so that output does not depend on the terminal of the test run."""
    monkeypatch.delenv("COLUMNS", raising=False)
