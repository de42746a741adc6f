"""Measures what metrics cost a coordinator."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.benchmark import Benchmark, Row
from benchmarks.programs import ROOT
from remy_farm.evaluation.interface import (
    Evaluation,
    EvaluatorStatus,
    OnProgress,
    Share,
    SharedEvaluator,
    WorkerLine,
)
from remy_farm.evaluation.scheduler.records import SchedulerSettings, SchedulerSnapshot
from remy_farm.evaluation.scheduler.scheduler import TaskScheduler
from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_farm.specification import load_spec
from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_services.jobs.states import JobObserver
from remy_services.telemetry.telemetry import Telemetry, served

_RUNNING, _FINISHED, _WORKERS = 20, 1000, 200
_SCRAPES = 40
_STEPS = 2000
_STEPS_PER_SECOND = 20
_INTERVAL_SECONDS = 15.0
_CLIENT = """\
import sys, urllib.request
for _ in range(int(sys.argv[2])):
    size = len(urllib.request.urlopen(sys.argv[1]).read())
print(size)
"""


class _Fleet:
    """An evaluator that answers at once and whose scheduler has as many workers as a farm."""

    def __init__(self) -> None:
        self._scheduler = TaskScheduler(SchedulerSettings())
        for number in range(_WORKERS):
            self._scheduler.join(WorkerFacts(f"worker-{number}", 1), 0.0)

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        return Evaluation(evaluation_pb2.EvaluationOutcome(), 0.0, frozenset())

    def status(self) -> EvaluatorStatus:
        return EvaluatorStatus(
            kind="workers",
            workers=_WORKERS,
            busy_workers=0,
            threads=_WORKERS,
            quarantined_workers=0,
            tasks_waiting=0,
            tasks_running=0,
        )

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        return []

    def snapshot(self) -> SchedulerSnapshot:
        return self._scheduler.snapshot()

    async def close(self) -> None:
        pass


def measure() -> list[Row]:
    """Returns two rows: the cost of a scrape, and the cost of instrumenting a step."""
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    telemetry = Telemetry()
    evaluator = telemetry.evaluator(_Fleet())
    jobs = list(_jobs())
    telemetry.watch(asyncio.get_running_loop(), lambda: _as_shown(jobs))
    instrumented = await _cpu_seconds_of_steps(telemetry, evaluator, jobs[0])
    plain = await _cpu_seconds_of_steps(None, _Fleet(), jobs[0])
    step_seconds = max(instrumented - plain, 0.0) / _STEPS
    with served(telemetry.registry, "127.0.0.1", 0) as port:
        address = f"http://127.0.0.1:{port}/metrics"
        await asyncio.to_thread(_scrape, address, 2)
        began = time.process_time()
        size = await asyncio.to_thread(_scrape, address, _SCRAPES)
        scrape_seconds = (time.process_time() - began) / _SCRAPES
    return [
        {
            "what": f"a scrape of {size / 1024:.0f} KiB, every {_INTERVAL_SECONDS:g} s",
            "CPU ms": 1000 * scrape_seconds,
            "% of a core": 100 * scrape_seconds / _INTERVAL_SECONDS,
        },
        {
            "what": f"instrumenting a step, {_STEPS_PER_SECOND} per second",
            "CPU ms": 1000 * step_seconds,
            "% of a core": 100 * step_seconds * _STEPS_PER_SECOND,
        },
    ]


def _scrape(address: str, times: int) -> int:
    """Scrapes `times` times from another process; returns the last response's size in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", _CLIENT, address, str(times)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


async def _cpu_seconds_of_steps(
    telemetry: Telemetry | None, evaluator: SharedEvaluator, job: job_pb2.Job
) -> float:
    """Returns the CPU seconds of empty steps, with instrumentation unless `telemetry` is None."""
    observer = JobObserver() if telemetry is None else telemetry.observer()
    request = evaluation_pb2.EvaluationRequest(duration_ms=1000)
    share = Share(job.id)
    began = time.process_time()
    for _ in range(_STEPS):
        with observer.step(job, request):
            await evaluator.evaluate(share, request)
            observer.computed(job.id, 0.0)
    return time.process_time() - began


def _jobs() -> Iterator[job_pb2.Job]:
    spec = load_spec(ROOT / "examples" / "general-purpose-delta1.yaml")
    estimate = progress_pb2.Estimate(mean=-0.5, standard_error=0.01, specimens=64)
    progress = progress_pb2.JobProgress(
        score=estimate, epoch_gain=estimate, eta_seconds=100, estimated_cost=2.5, share_done=0.5
    )
    for number in range(_RUNNING + _FINISHED):
        is_running = number < _RUNNING
        yield job_pb2.Job(
            id=f"{number:018x}",
            name=f"general-purpose-{number}",
            state=job_pb2.JOB_STATE_RUNNING if is_running else job_pb2.JOB_STATE_SUCCEEDED,
            spec=spec,
            progress=progress,
        )


def _as_shown(jobs: Sequence[job_pb2.Job]) -> Iterator[job_pb2.Job]:
    """Yields the jobs as a coordinator does: running ones are copies."""
    for job in jobs:
        if job.state == job_pb2.JOB_STATE_RUNNING:
            shown = job_pb2.Job()
            shown.CopyFrom(job)
            yield shown
        else:
            yield job


BENCHMARK = Benchmark(
    name="telemetry",
    title="Cost of metrics",
    method=(
        f"CPU time of a process that serves the metrics of a coordinator with {_RUNNING} running "
        f"jobs, {_FINISHED:,} finished ones and {_WORKERS} workers, while another process scrapes "
        f"it {_SCRAPES} times; and CPU time of {_STEPS:,} empty steps with instrumentation minus "
        "that without. The goal is less than 1 % of a core for both together."
    ),
    measure=measure,
)
