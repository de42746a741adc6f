"""Compares evaluation on gRPC workers with threads of one process."""

from __future__ import annotations

from typing import Final

from benchmarks.benchmark import Benchmark, Row
from benchmarks.overhead import STEPS, job_row, overhead_row
from benchmarks.worker_farm import Fleet, WorkerFarm
from remy_farm.evaluation.local import ThreadPoolEvaluator

_THREADS = 2
_PAIRS_PER_STEP: Final = (16, 128)
#: Threads per worker, by layout.
_LAYOUTS: Final = {"2 workers of 1 thread": 1, "1 worker of 2 threads": 2}


def measure() -> list[Row]:
    """Returns one row per layout of workers and length of steps."""
    rows = []
    with Fleet(lambda: ThreadPoolEvaluator(_THREADS)) as local:
        for layout, threads in _LAYOUTS.items():
            with WorkerFarm() as farm:
                count = _THREADS // threads
                pids = [farm.start_worker(threads=threads).pid for _ in range(count)]
                farm.wait_for_workers(count)
                rows += [
                    overhead_row("workers", layout, steps, local, farm, pids.copy)
                    for steps in STEPS
                ]
                rows += [
                    job_row("workers", layout, pairs, local, farm, pids.copy)
                    for pairs in _PAIRS_PER_STEP
                ]
    return rows


BENCHMARK = Benchmark(
    "workers",
    "Evaluation on workers and on the threads of one process",
    "The same evaluations, one after another like the steps of a search, and the same short joint "
    "designs of examples/general-purpose-delta1.yaml run alternately on two threads of one process "
    "and on workers that have two threads together, on the same machine. CPU time is that of the "
    "workers and of the calling process. Ratios are medians of the pairs.",
    measure,
)
