"""Studies and the league give the same bytes on a farm whose workers are killed as locally."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from laboratory.tests.studies.small_studies import SMALL, write_studies
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client.design_client import DesignClient
from services.tests.cli.service.real_coordinator import REMY_FARM, Coordinator
from services.tests.cli.test_reproduce import RunJson, files_of
from tests.children import killed_with_parent
from tests.observability.local_worker import LocalWorker
from tests.service.watcher import connect
from tests.waiting import wait_until

_TABLE = "general-purpose-delta1"
#: Each row is a part of the job, so that faults can be injected between two parts.
_LARGER = f"""\
title: Several kinds of senders
source: nobody
network: {{rtt_ms: 20, buffer: {{bdp: 1}}, senders: 4,
  traffic: {{exponential_time: {{mean_ms: 500}}, mean_off_ms: 500}}}}
seconds: 30
runs: 8
sweep: {{field: rate_mbps, label: "link rate, Mbit/s", values: [100, 200]}}
rows:
- {{name: NewReno, sender: newreno}}
- {{name: Cubic, sender: "cubic,variant=linux", network: {{queue: codel}}}}
- {{name: Vegas, sender: vegas}}
- {{name: Compound, sender: compound}}
- {{name: BBR, sender: bbr}}
- {{name: Copa, sender: copa}}
- {{name: against each other, sender: [newreno, vegas]}}
- {{name: ours, sender: "remycc:remyccs/{_TABLE}/rules.json"}}
expect:
- {{row: NewReno, measure: utilization, at_least: 0.1, source: nobody, claim: NewReno sends}}
picture: {{drawing: curves, logarithmic_x: true}}
"""


@pytest.fixture(autouse=True)
def no_published_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REMY_REFERENCE_DIR", raising=False)


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    table = Path("data/remyccs") / _TABLE / "rules.json"
    place = tmp_path / "remyccs" / _TABLE
    place.mkdir(parents=True)
    shutil.copy(table, place)
    return write_studies(tmp_path, small=SMALL, larger=_LARGER)


class _Workers:
    """Two worker processes; `kill_one` kills and replaces one."""

    def __init__(self, coordinator: str, folder: Path, stack: ExitStack) -> None:
        self._coordinator = coordinator
        self._folder = folder
        self._stack = stack
        self._workers: list[LocalWorker] = []
        for _ in range(2):
            self._start()

    def kill_one(self) -> None:
        self._workers.pop(0).kill()
        self._start()

    def _start(self) -> None:
        log = self._folder / f"worker-{len(list(self._folder.glob('worker-*')))}"
        self._workers.append(self._stack.enter_context(LocalWorker(self._coordinator, log)))


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[tuple[Coordinator, _Workers]]:
    flags = ("--evaluator", "workers", "--checkpoint-seconds", "0.02")
    coordinator = Coordinator(tmp_path / "farm", *flags)
    with ExitStack() as stack:
        stack.callback(coordinator.close)
        coordinator.start()
        yield coordinator, _Workers(coordinator.address, tmp_path, stack)


def _only_job(address: str) -> job_pb2.Job | None:
    with connect(address) as connection:
        jobs = DesignClient(connection).list(messages.ListJobsRequest()).jobs
    return jobs[0] if jobs else None


def _wait_for_step(address: str, step: int) -> None:
    def is_reached() -> bool:
        job = _only_job(address)
        return job is not None and job.progress.step >= step

    wait_until(is_reached, f"part {step} of the job")


def test_kills_change_nothing_and_no_part_is_simulated_twice(
    studies: Path, tmp_path: Path, farm: tuple[Coordinator, _Workers], run_json: RunJson
) -> None:
    coordinator, workers = farm
    command = ["reproduce", "--quick", "--studies", str(studies), "--quiet"]
    run_json(*command, "--out", tmp_path / "local")
    on_farm = ["--coordinator", coordinator.address, "--patience", "60"]
    process = subprocess.Popen(
        killed_with_parent(REMY_FARM, *command, *on_farm, "--json", "--out", tmp_path / "farmed"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for_step(coordinator.address, 1)
    workers.kill_one()
    _wait_for_step(coordinator.address, 3)
    coordinator.kill()
    coordinator.start()
    workers.kill_one()
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert files_of(tmp_path / "farmed") == files_of(tmp_path / "local")
    job = _only_job(coordinator.address)
    assert job is not None
    assert (job.state, job.progress.recoveries) == (job_pb2.JOB_STATE_SUCCEEDED, 1)

    # The same command is the same job; a command for a part of the figures is another job, which
    # finds all its outcomes.
    again = run_json(*command, *on_farm, "--out", tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(tmp_path / "local")
    assert _only_job(coordinator.address) == job
    assert again["cells_simulated"] == 16 * 8 + 8
    run_json(*command, *on_farm, "small/larger", "--out", tmp_path / "less")
    other = _only_job(coordinator.address)
    assert other is not None
    assert other.id != job.id
    assert other.progress.evaluations == 0


def test_new_job_replaces_a_cancelled_one(
    studies: Path, tmp_path: Path, farm: tuple[Coordinator, _Workers], run_json: RunJson, run: Any
) -> None:
    coordinator, _ = farm
    command = ["reproduce", "--quick", "--studies", str(studies), "--out", str(tmp_path / "out")]
    command += ["--coordinator", coordinator.address]
    process = subprocess.Popen(
        killed_with_parent(REMY_FARM, *command), stderr=subprocess.PIPE, text=True
    )
    _wait_for_step(coordinator.address, 1)
    process.kill()
    process.communicate()
    first = _only_job(coordinator.address)
    assert first is not None
    run_json("cancel", first.id, "--coordinator", coordinator.address)
    result = run(*command, "--priority", "2")
    assert result.exit_code == 0, result.stderr
    job = _only_job(coordinator.address)
    assert job is not None
    assert job.id != first.id
    assert job.priority == 2
    shown = run("status", job.id, "--coordinator", coordinator.address)
    assert "parts evaluated" in shown.stdout
    assert "succeeded: everything was evaluated" in shown.stdout


def test_league_is_the_same_on_a_farm(
    tmp_path: Path, farm: tuple[Coordinator, _Workers], run_json: RunJson
) -> None:
    coordinator, _ = farm
    command = ("league", "newreno", "cubic", "--quick", "--alone", "--quiet", "--set", "ccbench-1")
    run_json(*command, "--out", tmp_path / "local")
    run_json(*command, "--out", tmp_path / "farmed", "--coordinator", coordinator.address)
    assert files_of(tmp_path / "farmed") == files_of(tmp_path / "local")


def test_unreachable_farm_is_reported(studies: Path, tmp_path: Path, run: Any) -> None:
    flags = ("--studies", studies, "--out", tmp_path / "out", "--patience", "0")
    result = run("reproduce", *flags, "--coordinator", "127.0.0.1:1")
    assert result.exit_code == 3
    assert "127.0.0.1:1" in result.stderr
