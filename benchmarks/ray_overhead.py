"""What evaluation on a Ray cluster costs beside threads of one process."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figure import Figure, Row, Unavailable
from benchmarks.threads import batch
from benchmarks.worker_farm import Fleet
from remy_farm.v1 import evaluation_pb2
from remy_services.fleet import LocalFleet
from remy_services.fleet.ray import RaySettings

if TYPE_CHECKING:
    from benchmarks.ray_farm import RayFarm

_PAIRS = 7
_THREADS = 2
#: By name: simulations of each step, and steps.
_STEPS = {"short": (16, 40), "long": (192, 4)}
_LAYOUTS = {"2 actors of 1 thread": 1, "1 actor of 2 threads": 2}
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Cost:
    """Seconds of one run."""

    wall: float
    cpu: float


def measure() -> list[Row]:
    """A row for each layout of actors and length of steps."""
    if importlib.util.find_spec("ray") is None:
        raise Unavailable("Ray is not installed (remy-farm-worker with its extra 'ray')")
    from benchmarks.ray_cluster import RayCluster
    from benchmarks.ray_farm import RayFarm

    rows = []
    with RayCluster(cpus=_THREADS) as cluster, Fleet(lambda: LocalFleet(_THREADS)) as local:
        for layout, threads in _LAYOUTS.items():
            settings = RaySettings(cluster.address, threads_per_actor=threads, log_level="warning")
            with RayFarm(cluster, settings) as farm:
                farm.wait_for_workers(_THREADS // threads)
                rows += [
                    _row(layout, steps, local, farm, lambda: _pids(farm) + cluster.processes)
                    for steps in _STEPS
                ]
    return rows


def _row(
    layout: str, steps: str, local: Fleet, farm: RayFarm, pids: Callable[[], list[int]]
) -> Row:
    requests = _requests(steps)
    for fleet in (local, farm):
        fleet.evaluate(requests[0])
    pairs = [(_cost(local, requests, pids), _cost(farm, requests, pids)) for _ in range(_PAIRS)]
    walls = sorted(ray.wall / threads.wall for threads, ray in pairs)
    return {
        "layout": layout,
        "steps": steps,
        "2 threads s per step": statistics.median(cost.wall for cost, _ in pairs) / len(requests),
        "Ray s per step": statistics.median(cost.wall for _, cost in pairs) / len(requests),
        "wall ratio": statistics.median(walls),
        "from": walls[0],
        "to": walls[-1],
        "CPU ratio": statistics.median(ray.cpu / threads.cpu for threads, ray in pairs),
    }


def _requests(steps: str) -> list[evaluation_pb2.EvaluationRequest]:
    """Steps that differ in their seeds."""
    simulations, count = _STEPS[steps]
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
    began, began_cpu = time.monotonic(), _cpu_seconds(pids())
    for request in requests:
        fleet.evaluate(request)
    return _Cost(time.monotonic() - began, _cpu_seconds(pids()) - began_cpu)


def _pids(farm: RayFarm) -> list[int]:
    driver = farm.fleet.driver_pid
    return [os.getpid()] if driver is None else [os.getpid(), driver]


def _cpu_seconds(pids: Sequence[int]) -> float:
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_SECOND


FIGURE = Figure(
    "ray",
    "Evaluation on Ray beside the threads of one process",
    "The same evaluations, one after the other as the steps of a search, on two threads of one "
    "process and on the actors of a Ray cluster of two CPUs on the same machine, in turns. CPU is "
    "that of all processes of the cluster, the driver, and the process that asks. Ratios are "
    "medians of the pairs.",
    measure,
)
