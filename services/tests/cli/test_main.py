"""Tests the entry point: help, version, imports, completion, output and errors."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from remy_cli import coordinator, evaluate, failures
from remy_cli.main import main
from remy_rpc.settings import Address
from tests.children import killed_with_parent
from tests.waiting import TIMEOUT_SECONDS

COMMANDS = ("design", "simulate", "evaluate", "inspect", "convert", "validate")
REMY_FARM = Path(sys.executable).with_name("remy-farm")


def start(*arguments: object, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        killed_with_parent(REMY_FARM, *(str(argument) for argument in arguments)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_help_lists_every_command(run: Any) -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert all(f"  {command} " in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, run: Any) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: remy-farm {command} ")


def test_help_imports_no_heavy_package() -> None:
    script = (
        "import sys\n"
        "from remy_cli.main import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'numpy', 'matplotlib', 'google.protobuf', 'remy_simulator', 'rich'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert process.stderr.strip() == "set()"


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "design"])
def test_loading_a_command_imports_no_heavy_package(
    command: str,
) -> None:
    script = (
        "import sys, click\nfrom remy_cli.main import main\n"
        f"assert main.get_command(click.Context(main), '{command}')\n"
        "print({'numpy', 'matplotlib', 'grpc'} & set(sys.modules))\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert process.stdout.strip() == "set()"


def test_version_includes_the_simulator(run: Any) -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("remy-farm ")
    assert "simulator" in result.stdout


def test_completion_of_commands_and_options() -> None:
    def complete(line: str, position: int) -> str:
        process = start(
            _REMY_FARM_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(position)
        )
        return process.communicate(timeout=TIMEOUT_SECONDS)[0]

    assert "simulate" in complete("remy-farm sim", 1)
    assert "--buffer-packets" in complete("remy-farm simulate --buf", 2)


def test_closed_pipe_exits_without_a_message(remycc_file: Path) -> None:
    process = start("inspect", remycc_file, "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=TIMEOUT_SECONDS) == 141
    assert stderr == ""


def test_ascii_output_replaces_other_characters(remycc_file: Path, spec_file: Path) -> None:
    flags = ("--remycc", remycc_file, "--spec", spec_file, "--specimens", 4, "--seed", 1)
    process = start("evaluate", *flags, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, stderr
    assert " ? " in stdout


def test_internal_error_prints_a_traceback(
    monkeypatch: pytest.MonkeyPatch, spec_file: Path
) -> None:
    def fail(_: str) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(evaluate, "load_spec", fail)
    result = CliRunner().invoke(main, ["validate", str(spec_file)])
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith(
        "remy-farm: internal error (ZeroDivisionError)"
    )


def test_default_address_is_the_same_for_clients_and_coordinator() -> None:
    listen = next(each for each in coordinator.command.params if each.name == "listen")
    assert listen.default == str(Address())


def test_remy_farm_without_arguments_prints_help(run: Any) -> None:
    bare, with_help = run(), run("--help")
    assert bare.exit_code == 0
    assert bare.stdout == with_help.stdout
    assert bare.stderr == ""


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("TLS needs both --tls-cert and --tls-key", "TLS needs both"),
        ("Missing option '--out'.", "missing option"),
    ],
)
def test_usage_error_starts_in_lower_case_except_for_an_abbreviation(
    message: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failures.report_error(click.UsageError(message)) == failures.ExitCode.BAD_INPUT
    assert capsys.readouterr().err.startswith(f"remy-farm: {sentence}")
