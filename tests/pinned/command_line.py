"""Calls the command line within this process and in new processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.request import urlopen

from click.testing import CliRunner, Result

from remy_cli.main import main
from tests.waiting import wait_until

_TIMEOUT_SECONDS: Final = 120.0
_REMY_FARM: Final = Path(sys.executable).with_name("remy-farm")
# An empty directory for configuration files; libraries would create one in the user's home.
_CONFIGURATION: Final = TemporaryDirectory(prefix="remy-farm-configuration-")


def environment(**settings: str) -> dict[str, str | None]:
    """Returns changes of the environment that hide the user's settings; None removes a variable."""
    removed: dict[str, str | None] = {
        name: None for name in os.environ if name.startswith("REMY_FARM_")
    }
    return {**removed, "XDG_CONFIG_HOME": _CONFIGURATION.name, "COLUMNS": "100", **settings}


def environment_of_process(**settings: str) -> dict[str, str]:
    """Returns the whole environment of a process, with the changes of `environment` applied."""
    changes = environment(**settings)
    unchanged = {name: value for name, value in os.environ.items() if name not in changes}
    return unchanged | {name: value for name, value in changes.items() if value is not None}


def call(*arguments: object, **settings: str) -> Result:
    """Calls `remy-farm` within this process; `settings` are environment variables."""
    return CliRunner(env=environment(**settings)).invoke(
        main, [str(argument) for argument in arguments]
    )


def call_json(*arguments: object, **settings: str) -> dict[str, Any]:
    """Calls `remy-farm` with --json and returns the JSON object; the call must succeed."""
    result = call(*arguments, "--json", **settings)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert isinstance(printed, dict)
    return printed


def run(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs `remy-farm` in a new process."""
    return subprocess.run(
        [_REMY_FARM, *map(str, arguments)],
        env=environment_of_process(**settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )


@contextmanager
def started(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a command in a process that is killed at the end of the context."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [_REMY_FARM, *arguments],
            env=environment_of_process(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def coordinator(folder: Path, *flags: str) -> Iterator[str]:
    """Runs a coordinator with a store in the folder; yields its address."""
    ready, log = folder / "ready", folder / "log"
    ready.unlink(missing_ok=True)
    listen = ("--listen", "127.0.0.1:0", "--threads", "1", "--ready-file", str(ready))
    arguments = ("coordinator", *listen, "--store", f"sqlite://{folder / 'farm.db'}", *flags)
    with started(log, *arguments) as process:
        wait_until(lambda: ready.exists() or process.poll() is not None)
        assert process.poll() is None, log.read_text(encoding="utf-8")
        yield ready.read_text(encoding="utf-8").strip()
        process.send_signal(signal.SIGTERM)
        assert process.wait(_TIMEOUT_SECONDS) == 0, log.read_text(encoding="utf-8")


def exported_metrics(log: Path) -> list[str]:
    """Returns names and types of the metrics that the process with this log serves."""
    pattern = re.compile(r'"address": "([^"]+)"[^\n]*"serving metrics"')
    match = wait_until(lambda: pattern.search(log.read_text(encoding="utf-8")))
    with urlopen(f"http://{match[1]}/metrics", timeout=_TIMEOUT_SECONDS) as page:
        text = page.read().decode()
    return sorted(re.findall(r"^# TYPE (\w+ \w+)$", text, re.MULTILINE))
