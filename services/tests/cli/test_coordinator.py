"""Tests the settings of `remy-farm coordinator`, its start and its shutdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from remy_cli import coordinator as coordinator_command
from remy_cli.coordinator import command
from remy_services.coordinator.server import ServerSettings
from services.tests.cli.service.real_coordinator import Coordinator

ROOT = Path(__file__).resolve().parents[3]

_FLAGS = [
    name
    for option in command.params
    if isinstance(option, click.Option)
    for name in option.opts
    if name != "--help"
]


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> list[ServerSettings]:
    """Collects the settings of coordinators instead of serving."""
    collected: list[ServerSettings] = []
    original = coordinator_command._settings

    def collect(**options: Any) -> ServerSettings:
        collected.append(original(**options))
        raise click.ClickException("enough")

    monkeypatch.setattr(coordinator_command, "_settings", collect)
    return collected


def _call(*flags: str, **environment: str) -> str:
    result = CliRunner().invoke(command, flags, env=environment)
    return result.output


def test_operations_page_lists_exactly_the_settings() -> None:
    text = (ROOT / "docs" / "how-to" / "operations.md").read_text(encoding="utf-8")
    table = text.split("## Settings")[1].split("\n## ")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    assert sorted(re.findall(r"`(--[a-z-]+)`", " ".join(rows))) == sorted(_FLAGS)


def test_help_has_flags_variables_and_defaults() -> None:
    text = " ".join(_call("--help").split())
    for flag in _FLAGS:
        assert flag in text
    assert "REMY_FARM_COORDINATOR_LISTEN; default: 127.0.0.1:50051" in text


def test_flag_overrides_environment_which_overrides_file(
    settings: list[ServerSettings], tmp_path: Path
) -> None:
    config = tmp_path / "coordinator.yaml"
    config.write_text(
        "name: file\nstore: sqlite:file.db\ngrace-seconds: 7\nreflection: false\n"
        "maximum-running-jobs: 3\ninsecure: true\ncheckpoint-seconds: 0.5\n"
    )
    _call(
        *("--config", str(config), "--name", "flag"),
        REMY_FARM_COORDINATOR_NAME="environment",
        REMY_FARM_COORDINATOR_STORE="sqlite:environment.db",
    )
    (server_settings,) = settings
    assert server_settings.name == "flag"
    assert server_settings.store_url == "sqlite:environment.db"
    assert server_settings.grace_seconds == 7
    assert server_settings.has_reflection is False
    assert server_settings.is_insecure is True
    assert server_settings.farm.jobs.running_jobs == 3
    assert server_settings.farm.runs.checkpoint_seconds == 0.5
    assert server_settings.maximum_streams == 1000


def test_every_flag_has_an_environment_variable(
    settings: list[ServerSettings],
) -> None:
    _call(REMY_FARM_COORDINATOR_MIRROR="file:///backup")
    assert settings[0].mirror_url == "file:///backup"
    text = "".join(_call("--help").split())
    for flag in {name for name in _FLAGS if not name.startswith("--no-")}:
        assert f"REMY_FARM_COORDINATOR_{flag[2:].replace('-', '_').upper()}" in text


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("REMY_FARM_COORDINATOR_MIRROR_URL", "; did you mean REMY_FARM_COORDINATOR_MIRROR?"),
        ("REMY_FARM_COORDINATOR_STOER", "; did you mean REMY_FARM_COORDINATOR_STORE?"),
        ("REMY_FARM_REDIS_PASWORD", "; did you mean REMY_FARM_REDIS_PASSWORD?"),
        ("REMY_FARM_X", ""),
    ],
)
def test_unknown_variable_is_refused(name: str, suggestion: str) -> None:
    text = " ".join(_call(**{name: "x"}).split())
    assert f"the environment has {name}, which is not a setting{suggestion}" in text


def test_variables_of_other_programs_are_ignored(settings: list[ServerSettings]) -> None:
    _call(
        REMY_FARM_COORDINATOR="farm.example.org:50051",
        REMY_FARM_WORKER_THREADS="2",
        REMY_FARM_TOKEN_FILE="token",
        REMY_FARM_COORDINATOR_SERVICE_PORT_GRPC="50051",
        REMY_FARM_COORDINATOR_PORT_50051_TCP_ADDR="10.0.0.1",
    )
    assert settings


def test_environment_may_name_the_configuration_file(
    settings: list[ServerSettings], tmp_path: Path
) -> None:
    config = tmp_path / "coordinator.yaml"
    config.write_text("name: file\n")
    _call(REMY_FARM_COORDINATOR_CONFIG=str(config))
    assert settings[0].name == "file"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- listen", "must be a mapping of settings"),
        ("lisstem: 1", "'lisstem' is not a setting; the settings are accept-data-loss,"),
        ("listen: [a, b]", "listen must be a single value"),
        ("listen:", "listen must be a single value"),
        ("threads: many", "'many' is not a valid integer"),
        ("config: other.yaml", "'config' is not a setting"),
        ("cache: 'memory:'", "'cache' is not a setting"),
    ],
)
def test_invalid_configuration_file_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    config = tmp_path / "coordinator.yaml"
    config.write_text(text)
    assert problem in _call("--config", str(config))


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--listen", "nowhere"], "must be HOST:PORT"),
        (["--listen", "0.0.0.0:0"], "--tls-cert and --tls-key and --tokens-file are missing"),
        (["--tls-cert", "a.pem"], "TLS needs both --tls-cert and --tls-key"),
        (["--store", "nothing"], "no scheme"),
        (["--listen", "127.0.0.1:0", "--mirror", "ftp://x"], "the mirror URL has scheme"),
        (["--listen", "127.0.0.1:0", "--cache", "x"], "such option '--cache'"),
        (["--tokens-file", "none.yaml"], "none.yaml: cannot be read"),
    ],
)
def test_invalid_settings_are_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, flags)
    assert problem in f"{result.output} {result.exception}"
    assert result.exit_code != 0


def test_coordinator_exits_with_0_after_sigterm(tmp_path: Path) -> None:
    coordinator = Coordinator(tmp_path / "coordinator", "--health-listen", "127.0.0.1:0")
    try:
        coordinator.start()
        coordinator.stop()
        assert '"message": "ended"' in coordinator.log()
        assert "Traceback" not in coordinator.log()
    finally:
        coordinator.close()


def test_second_coordinator_on_an_address_is_refused(tmp_path: Path) -> None:
    first = Coordinator(tmp_path / "first")
    second = Coordinator(tmp_path / "second")
    try:
        first.start()
        second.address = first.address
        with pytest.raises(AssertionError, match="cannot listen on"):
            second.start()
    finally:
        first.close()
        second.close()
