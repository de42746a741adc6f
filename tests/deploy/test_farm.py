"""`make farm` runs a design, keeps it for the next start, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.programs import REMY_FARM, ROOT, run_json
from dashboards.prometheus import Prometheus
from services.tests.cli.conftest import SMALL_SPEC
from tests.children import killed_with_parent
from tests.waiting import wait_until


class Farm:
    """The script in a process, on free ports."""

    def __init__(self, folder: Path) -> None:
        self._output = folder.with_suffix(".txt")
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                killed_with_parent(
                    *(sys.executable, ROOT / "scripts" / "farm.py", "--folder", folder),
                    *("--port", 0, "--prometheus-port", 0),
                ),
                stdout=output,
                stderr=output,
            )
        wait_until(self._is_ready, "the farm")

    def output(self) -> str:
        return self._output.read_text()

    def programs(self) -> list[int]:
        """Returns the PIDs of all processes that the script has started."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(child) for child in children.split()]

    def environment(self) -> dict[str, str]:
        """Returns the environment with the variables that the script tells users to set."""
        exports = [line.split()[1] for line in self.output().splitlines() if " export " in line]
        return {**os.environ, **dict(each.split("=", 1) for each in exports)}

    def prometheus(self) -> Prometheus:
        (line,) = (each for each in self.output().splitlines() if each.startswith("Prometheus"))
        return Prometheus(line.split()[-1])

    def interrupt(self) -> int:
        """Sends SIGINT and returns the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(timeout=120)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self.output()
        return "\nPrometheus" in self.output()


@contextmanager
def running(folder: Path) -> Iterator[Farm]:
    farm = Farm(folder)
    try:
        yield farm
    finally:
        farm.kill()


def test_farm_runs_a_design_and_keeps_it_for_the_next_start(tmp_path: Path) -> None:
    folder, spec = tmp_path / "farm", tmp_path / "small.yaml"
    spec.write_text(SMALL_SPEC)
    with running(folder) as farm:
        assert len(farm.programs()) == 5
        done = run_json(
            REMY_FARM, "submit", spec, "--watch", "--quiet", environment=farm.environment()
        )
        assert done["state"] == "succeeded", done
        prometheus = farm.prometheus()
        wait_until(lambda: ups(prometheus) == [1.0] * 3, "three targets that are up")
        assert "RemyFarmWorkerQuarantined" in str(prometheus.get("rules"))
        assert readable_by_others(folder) == []

        programs = farm.programs()
        assert farm.interrupt() == 0
        assert not any(Path(f"/proc/{number}").exists() for number in programs)

    with running(folder) as farm:
        (job,) = run_json(REMY_FARM, "list", environment=farm.environment())["jobs"]
        assert job["id"] == done["id"]


def ups(prometheus: Prometheus) -> list[float]:
    result = prometheus.get("query", query='up{farm="local"}')["result"]
    return [float(each["value"][1]) for each in result]


def readable_by_others(folder: Path) -> list[Path]:
    """Returns the files below a directory whose mode gives others any permission."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"tls.key", "submitter", "tokens.yaml"} <= {path.name for path in files}
    return [path for path in files if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
