"""Compares evaluation on a farm with evaluation on threads of this process."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.benchmark import Row
from benchmarks.programs import ROOT
from benchmarks.threads import batch
from benchmarks.worker_farm import Fleet
from remy_farm.designer import Designer
from remy_farm.specification import load_spec
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.columns import pack_specimens, unpack_specimens

_PAIRS = 7
_JOBS = 3
# Antithetic pairs of a design, over all its steps.
_JOB_PAIRS = 2048
#: Simulations per step and the number of steps, by name.
STEPS: Final = {"short": (16, 40), "long": (192, 4), "longer": (768, 2)}
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Cost:
    """The wall and CPU seconds of one run, and the steps that it made."""

    steps: int
    wall: float
    cpu: float


def job_row(
    name: str, layout: str, pairs: int, local: Fleet, farm: Fleet, pids: Callable[[], list[int]]
) -> Row:
    """Compares a farm with local threads on a short joint design of `pairs` pairs per step."""
    spec = load_spec(ROOT / "examples" / "general-purpose-delta1.yaml")
    spec.search.specimens = pairs
    spec.search.joint.steps = _JOB_PAIRS // pairs
    return _row(
        name,
        layout,
        f"a design, {pairs} pairs per step",
        [(_job_cost(local, spec, pids), _job_cost(farm, spec, pids)) for _ in range(_JOBS)],
    )


def overhead_row(
    name: str, layout: str, steps: str, local: Fleet, farm: Fleet, pids: Callable[[], list[int]]
) -> Row:
    """Evaluates the same steps alternately on local threads and on a farm called `name`.

    CPU time is that of this process and of the processes that `pids` returns.
    """
    requests = _requests(steps)
    for fleet in (local, farm):
        fleet.evaluate(requests[0])
    pairs = [(_cost(local, requests, pids), _cost(farm, requests, pids)) for _ in range(_PAIRS)]
    return _row(name, layout, steps, pairs)


def _row(name: str, layout: str, steps: str, pairs: Sequence[tuple[_Cost, _Cost]]) -> Row:
    """Formats pairs of costs, on local threads and on the farm."""
    walls = sorted(remote.wall / threads.wall for threads, remote in pairs)
    return {
        "layout": layout,
        "steps": steps,
        "2 threads s per step": statistics.median(cost.wall / cost.steps for cost, _ in pairs),
        f"{name} s per step": statistics.median(cost.wall / cost.steps for _, cost in pairs),
        "wall ratio": statistics.median(walls),
        "from": walls[0],
        "to": walls[-1],
        "CPU ratio": statistics.median(remote.cpu / threads.cpu for threads, remote in pairs),
    }


def _requests(steps: str) -> list[evaluation_pb2.EvaluationRequest]:
    """Returns requests that differ in their seeds."""
    simulations, count = STEPS[steps]
    requests = []
    for seed in range(1, count + 1):
        request = batch()
        batch_specimens = unpack_specimens(request.specimen_columns)
        specimens = [batch_specimens[number % 64] for number in range(simulations)]
        request.seed = seed
        request.specimen_columns.CopyFrom(pack_specimens(specimens))
        requests.append(request)
    return requests


def _cost(
    fleet: Fleet,
    requests: Sequence[evaluation_pb2.EvaluationRequest],
    pids: Callable[[], list[int]],
) -> _Cost:
    def evaluate_all() -> int:
        for request in requests:
            fleet.evaluate(request)
        return len(requests)

    return _measure(evaluate_all, pids)


def _job_cost(fleet: Fleet, spec: spec_pb2.DesignSpec, pids: Callable[[], list[int]]) -> _Cost:
    def design() -> int:
        designer, steps = Designer(spec), 0
        while (request := designer.next_request()) is not None:
            designer.receive(fleet.evaluate(request))
            steps += 1
        return steps

    return _measure(design, pids)


def _measure(run: Callable[[], int], pids: Callable[[], list[int]]) -> _Cost:
    """Measures a function that returns the number of steps it made."""
    began, began_cpu = time.monotonic(), _cpu_seconds([os.getpid(), *pids()])
    steps = run()
    cpu = _cpu_seconds([os.getpid(), *pids()]) - began_cpu
    return _Cost(steps, time.monotonic() - began, cpu)


def _cpu_seconds(pids: Sequence[int]) -> float:
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_SECOND
