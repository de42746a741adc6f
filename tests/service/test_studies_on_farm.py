"""Studies and the league on workers, which are killed, come to the bytes that they come to here."""

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
#: A part a row, so that something can happen between two of them; of tables and protocols.
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
- {{name: ours, sender: "remycc:remyccs/{_TABLE}/remycc.json"}}
expect:
- {{row: NewReno, measure: utilization, at_least: 0.1, source: nobody, claim: NewReno sends}}
picture: {{drawing: curves, logarithmic_x: true}}
"""


@pytest.fixture(autouse=True)
def no_published_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REMY_REFERENCE_DIR", raising=False)


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    table = Path("data/remyccs") / _TABLE / "remycc.json"
    place = tmp_path / "remyccs" / _TABLE
    place.mkdir(parents=True)
    shutil.copy(table, place)
    return write_studies(tmp_path, small=SMALL, larger=_LARGER)


class _Workers:
    """Two workers, one of which may be killed, and another one takes its place."""

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


def _until_step(address: str, step: int) -> None:
    def is_there() -> bool:
        job = _only_job(address)
        return job is not None and job.progress.step >= step

    wait_until(is_there, f"part {step} of the job")


def test_kills_leave_no_trace_and_nothing_is_simulated_twice(
    studies: Path, tmp_path: Path, farm: tuple[Coordinator, _Workers], run_json: RunJson
) -> None:
    coordinator, workers = farm
    words = ["reproduce", "--quick", "--studies", str(studies), "--quiet"]
    run_json(*words, "--out", tmp_path / "here")
    on_farm = ["--coordinator", coordinator.address, "--patience", "60"]
    process = subprocess.Popen(
        killed_with_parent(REMY_FARM, *words, *on_farm, "--json", "--out", tmp_path / "there"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _until_step(coordinator.address, 1)
    workers.kill_one()
    _until_step(coordinator.address, 3)
    coordinator.kill()
    coordinator.start()
    workers.kill_one()
    _, complaints = process.communicate()
    assert process.returncode == 0, complaints
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")
    job = _only_job(coordinator.address)
    assert job is not None
    assert (job.state, job.progress.recoveries) == (job_pb2.JOB_STATE_SUCCEEDED, 1)

    # The same command has the same job; another client, with less to ask for, one of its own.
    again = run_json(*words, *on_farm, "--out", tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(tmp_path / "here")
    assert _only_job(coordinator.address) == job
    assert again["cells_simulated"] == 16 * 8 + 8
    run_json(*words, *on_farm, "small/larger", "--out", tmp_path / "less")
    other = _only_job(coordinator.address)
    assert other is not None
    assert other.id != job.id
    assert other.progress.evaluations == 0


def test_a_client_that_leaves_finds_its_job_again(
    studies: Path, tmp_path: Path, farm: tuple[Coordinator, _Workers], run_json: RunJson, run: Any
) -> None:
    coordinator, _ = farm
    words = ["reproduce", "--quick", "--studies", str(studies), "--out", str(tmp_path / "out")]
    words += ["--coordinator", coordinator.address]
    process = subprocess.Popen(
        killed_with_parent(REMY_FARM, *words), stderr=subprocess.PIPE, text=True
    )
    _until_step(coordinator.address, 1)
    process.kill()
    process.communicate()
    first = _only_job(coordinator.address)
    assert first is not None
    run_json("cancel", first.id, "--coordinator", coordinator.address)
    result = run("reproduce", *words[1:], "--priority", "2")
    assert result.exit_code == 0, result.stderr
    # One that was cancelled is another job's beginning.
    job = _only_job(coordinator.address)
    assert job is not None
    assert job.id != first.id
    assert job.priority == 2
    shown = run("status", job.id, "--coordinator", coordinator.address)
    assert "parts evaluated" in shown.stdout
    assert "succeeded: everything was evaluated" in shown.stdout


def test_the_league_is_the_same_on_a_farm(
    tmp_path: Path, farm: tuple[Coordinator, _Workers], run_json: RunJson
) -> None:
    coordinator, _ = farm
    words = ("league", "newreno", "cubic", "--quick", "--alone", "--quiet", "--set", "ccbench-1")
    run_json(*words, "--out", tmp_path / "here")
    run_json(*words, "--out", tmp_path / "there", "--coordinator", coordinator.address)
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")


def test_a_farm_that_is_not_there_is_told(studies: Path, tmp_path: Path, run: Any) -> None:
    words = ("--studies", studies, "--out", tmp_path / "out", "--patience", "0")
    result = run("reproduce", *words, "--coordinator", "127.0.0.1:1")
    assert result.exit_code == 3
    assert "127.0.0.1:1" in result.stderr
