"""`design` writes the same RemyCC with any interruptions, any number of threads and any CPU."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cpu_features import environment_with_features_off
from benchmarks.programs import REMY_FARM, run_json
from remy_farm.driver.run import DesignResult, DesignRun, with_budget
from remy_farm.specification import load_spec
from remy_proto.v1 import progress_pb2
from tests.fleet.designs import SEARCHES, short_spec_text


class Design:
    """A design in a directory, which can be run in parts."""

    def __init__(self, spec: Path, out: Path) -> None:
        self._spec = spec
        self.out = out

    def run(
        self, *flags: str, threads: int = 1, environment: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Starts or resumes the design in a new process; returns the command's JSON output."""
        return run_json(
            REMY_FARM,
            "design",
            self._spec,
            f"--out={self.out}",
            *(["--resume"] if (self.out / "checkpoint.bin").exists() else []),
            "--quiet",
            f"--threads={threads}",
            *flags,
            environment=environment,
        )

    def resume_here(self, *, threads: int, max_steps: int | None = None) -> DesignResult:
        """Resumes the design in this process, without writing a report."""
        spec = with_budget(load_spec(self._spec), max_steps=max_steps)
        return DesignRun(spec, self.out, threads=threads, resume=True).run()

    def remycc(self) -> bytes:
        """Returns the bytes of all tables that the design has published."""
        return b"".join(path.read_bytes() for path in sorted(self.out.glob("remycc*.json")))

    def copy(self, name: str) -> Design:
        """Copies the design into another directory."""
        shutil.copytree(self.out, self.out.with_name(name))
        return Design(self._spec, self.out.with_name(name))


@pytest.fixture(params=SEARCHES)
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "short.yaml"
    path.write_text(short_spec_text(request.param))
    return path


def test_design_stopped_after_every_step_gives_the_same_table(spec: Path, tmp_path: Path) -> None:
    whole = Design(spec, tmp_path / "whole")
    steps = whole.run()["steps"]
    assert steps >= 8

    by_steps = Design(spec, tmp_path / "by-steps")
    for step in range(1, steps):
        # The number of threads alternates; every third part runs in a new process with its report.
        threads = 1 + step % 2
        if step % 3 == 1:
            stopped = by_steps.run(f"--max-steps={step}", threads=threads)
            assert (stopped["reason"], stopped["steps"]) == ("steps", step)
        else:
            result = by_steps.resume_here(threads=threads, max_steps=step)
            assert (result.reason, result.steps) == (progress_pb2.STOP_REASON_STEPS, step)

        resumed = by_steps.copy(f"from-step-{step}")
        finished = resumed.resume_here(threads=2 - step % 2)
        assert finished.reason not in (None, progress_pb2.STOP_REASON_STEPS)
        assert finished.steps == steps
        assert resumed.remycc() == whole.remycc(), f"stopped after step {step}"

    assert by_steps.run()["steps"] == steps
    assert by_steps.remycc() == whole.remycc()


def test_table_depends_neither_on_threads_nor_on_cpu_features(spec: Path, tmp_path: Path) -> None:
    one, seven, cpu = (Design(spec, tmp_path / name) for name in ("one", "seven", "cpu"))
    one.run()
    seven.run(threads=7)
    cpu.run(threads=2, environment=environment_with_features_off())
    assert one.remycc() == seven.remycc() == cpu.remycc()
