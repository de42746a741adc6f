"""What evaluation on gRPC workers costs beside threads of one process."""

from __future__ import annotations

from typing import Final

from benchmarks.figure import Figure, Row
from benchmarks.overhead import STEPS, job_row, overhead_row
from benchmarks.worker_farm import Fleet, WorkerFarm
from remy_farm.evaluation.local import ThreadPoolEvaluator

_THREADS = 2
_PAIRS_OF_A_STEP: Final = (16, 128)
#: Threads of each worker.
_LAYOUTS: Final = {"2 workers of 1 thread": 1, "1 worker of 2 threads": 2}


def measure() -> list[Row]:
    """A row for each layout of workers and length of steps."""
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
                    for pairs in _PAIRS_OF_A_STEP
                ]
    return rows


FIGURE = Figure(
    "workers",
    "Evaluation on workers beside the threads of one process",
    "The same evaluations, one after the other as the steps of a search, and the same short joint "
    "designs of examples/general-purpose-delta1.yaml, on two threads of one process and on workers "
    "of two threads together on the same machine, in turns. CPU is that of the workers and of the "
    "process that asks. Ratios are medians of the pairs.",
    measure,
)
