"""A small RemyCC, a small specification, and the command line called within this process."""

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
    """One rule divided at every signal, so that each region's end shows."""
    table = RuleTable([0, 1, 2], [([], (0.9, 4.0, 1.5))]).split(0, [(0, 2.0), (1, 3.0), (2, 1.25)])
    path = tmp_path / "small.json"
    write_remycc(path, RemyCC(table))
    return path


@pytest.fixture
def run() -> Run:
    """Calls `remy-farm` with these words."""

    def call(*words: object) -> Result:
        return CliRunner().invoke(main, [str(word) for word in words])

    return call


@pytest.fixture
def run_json(run: Run) -> Callable[..., dict[str, Any]]:
    """The one JSON object that a successful call prints."""

    def call(*words: object) -> dict[str, Any]:
        result = run(*words, "--json")
        assert result.exit_code == 0, result.stderr
        tree = json.loads(result.stdout)
        assert isinstance(tree, dict)
        return tree

    return call


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """However wide that is from which the tests are run."""
    monkeypatch.delenv("COLUMNS", raising=False)
