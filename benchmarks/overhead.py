"""What it costs to evaluate elsewhere, beside threads of this process."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.figure import Row
from benchmarks.threads import batch
from benchmarks.worker_farm import Fleet
from remy_farm.v1 import evaluation_pb2

_PAIRS = 7
#: By name: simulations of each step, and steps.
STEPS: Final = {"short": (16, 40), "long": (192, 4)}
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Cost:
    """Seconds of one run."""

    wall: float
    cpu: float


def overhead_row(
    name: str, layout: str, steps: str, local: Fleet, farm: Fleet, pids: Callable[[], list[int]]
) -> Row:
    """The same steps on local threads and on a farm called `name`, in turns.

    CPU is that of this process and of those that `pids` names.
    """
    requests = _requests(steps)
    for fleet in (local, farm):
        fleet.evaluate(requests[0])
    pairs = [(_cost(local, requests, pids), _cost(farm, requests, pids)) for _ in range(_PAIRS)]
    walls = sorted(remote.wall / threads.wall for threads, remote in pairs)
    return {
        "layout": layout,
        "steps": steps,
        "2 threads s per step": statistics.median(cost.wall for cost, _ in pairs) / len(requests),
        f"{name} s per step": statistics.median(cost.wall for _, cost in pairs) / len(requests),
        "wall ratio": statistics.median(walls),
        "from": walls[0],
        "to": walls[-1],
        "CPU ratio": statistics.median(remote.cpu / threads.cpu for threads, remote in pairs),
    }


def _requests(steps: str) -> list[evaluation_pb2.EvaluationRequest]:
    """Steps that differ in their seeds."""
    simulations, count = STEPS[steps]
    found = []
    for seed in range(1, count + 1):
        request = batch()
        specimens = [request.specimens[number % 64] for number in range(simulations)]
        request.seed = seed
        del request.specimens[:]
        request.specimens.extend(specimens)
        found.append(request)
    return found


def _cost(
    fleet: Fleet,
    requests: Sequence[evaluation_pb2.EvaluationRequest],
    pids: Callable[[], list[int]],
) -> _Cost:
    began, began_cpu = time.monotonic(), _cpu_seconds([os.getpid(), *pids()])
    for request in requests:
        fleet.evaluate(request)
    cpu = _cpu_seconds([os.getpid(), *pids()]) - began_cpu
    return _Cost(time.monotonic() - began, cpu)


def _cpu_seconds(pids: Sequence[int]) -> float:
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_SECOND
