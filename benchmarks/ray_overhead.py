"""Compares evaluation on a Ray cluster with threads of one process."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from benchmarks.benchmark import Benchmark, Row, Unavailable
from benchmarks.overhead import STEPS, overhead_row
from benchmarks.worker_farm import Fleet
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_services.transport.ray import RaySettings

if TYPE_CHECKING:
    from benchmarks.ray_farm import RayFarm

_THREADS = 2
_LAYOUTS = {"2 actors of 1 thread": 1, "1 actor of 2 threads": 2}


def measure() -> list[Row]:
    """Returns one row per layout of actors and length of steps."""
    if importlib.util.find_spec("ray") is None:
        raise Unavailable("Ray is not installed (remy-farm-worker with its extra 'ray').")
    from benchmarks.ray_cluster import RayCluster
    from benchmarks.ray_farm import RayFarm

    rows = []
    with (
        RayCluster(cpus=_THREADS) as cluster,
        Fleet(lambda: ThreadPoolEvaluator(_THREADS)) as local,
    ):
        for layout, threads in _LAYOUTS.items():
            settings = RaySettings(cluster.address, threads_per_actor=threads, log_level="warning")
            with RayFarm(cluster, settings) as farm:
                farm.wait_for_workers(_THREADS // threads)
                rows += [
                    overhead_row(
                        "Ray", layout, steps, local, farm, lambda: _pids(farm) + cluster.processes
                    )
                    for steps in STEPS
                ]
    return rows


def _pids(farm: RayFarm) -> list[int]:
    driver = farm.fleet.driver_pid
    return [] if driver is None else [driver]


BENCHMARK = Benchmark(
    "ray",
    "Evaluation on Ray and on the threads of one process",
    "The same evaluations run one after another, like the steps of a search, alternately on two "
    "threads of one process and on the actors of a Ray cluster of two CPUs on the same machine. "
    "CPU time is that of all processes of the cluster, of the driver and of the calling process. "
    "Ratios are medians of the pairs.",
    measure,
)
