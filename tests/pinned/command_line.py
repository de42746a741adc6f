"""The command line, called within this process and as processes of its own."""

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

_DEADLINE_SECONDS: Final = 120.0
_REMY_FARM: Final = Path(sys.executable).with_name("remy-farm")
# Empty, and ours: libraries make folders where they find none.
_CONFIGURATION: Final = TemporaryDirectory(prefix="remy-farm-configuration-")


def environment(**settings: str) -> dict[str, str | None]:
    """Nothing of who runs the tests; None takes a variable away."""
    found: dict[str, str | None] = {
        name: None for name in os.environ if name.startswith("REMY_FARM_")
    }
    return {**found, "XDG_CONFIG_HOME": _CONFIGURATION.name, "COLUMNS": "100", **settings}


def environment_of_process(**settings: str) -> dict[str, str]:
    """The same for a process, complete."""
    changes = environment(**settings)
    found = {name: value for name, value in os.environ.items() if name not in changes}
    return found | {name: value for name, value in changes.items() if value is not None}


def call(*words: object, **settings: str) -> Result:
    """Calls `remy-farm` with these words, and these variables in its environment."""
    return CliRunner(env=environment(**settings)).invoke(main, [str(word) for word in words])


def call_json(*words: object, **settings: str) -> dict[str, Any]:
    """The one JSON object that a call prints which is to succeed."""
    result = call(*words, "--json", **settings)
    assert result.exit_code == 0, result.output
    tree = json.loads(result.stdout)
    assert isinstance(tree, dict)
    return tree


def run(*words: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs `remy-farm` in a process of its own."""
    return subprocess.run(
        [_REMY_FARM, *map(str, words)],
        env=environment_of_process(**settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_SECONDS,
        check=False,
    )


@contextmanager
def started(log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs as a process while this lasts, and writes this log."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [_REMY_FARM, *words],
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
    """A coordinator on the store in the folder, until it is told to end; its address."""
    ready, log = folder / "ready", folder / "log"
    ready.unlink(missing_ok=True)
    listen = ("--listen", "127.0.0.1:0", "--threads", "1", "--ready-file", str(ready))
    words = ("coordinator", *listen, "--store", f"sqlite://{folder / 'farm.db'}", *flags)
    with started(log, *words) as process:
        wait_until(lambda: ready.exists() or process.poll() is not None)
        assert process.poll() is None, log.read_text(encoding="utf-8")
        yield ready.read_text(encoding="utf-8").strip()
        process.send_signal(signal.SIGTERM)
        assert process.wait(_DEADLINE_SECONDS) == 0, log.read_text(encoding="utf-8")


def exported_metrics(log: Path) -> list[str]:
    """Names and types on the page that the process with this log serves to Prometheus."""
    address = re.compile(r'"address": "([^"]+)"[^\n]*"serving metrics"')
    wait_until(lambda: address.search(log.read_text(encoding="utf-8")) is not None)
    found = address.search(log.read_text(encoding="utf-8"))
    assert found is not None
    with urlopen(f"http://{found[1]}/metrics", timeout=_DEADLINE_SECONDS) as page:
        text = page.read().decode()
    return sorted(re.findall(r"^# TYPE (\w+ \w+)$", text, re.MULTILINE))
