"""All evaluators except Ray's, for the tests that every evaluator must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Final

from benchmarks.worker_farm import Fleet, WorkerFarm
from remy_farm.evaluation.interface import Evaluator
from remy_farm.evaluation.local import LocalEvaluator, ThreadPoolEvaluator


@contextmanager
def _embedded() -> Iterator[Evaluator]:
    with closing(LocalEvaluator(2)) as evaluator:
        yield evaluator


@contextmanager
def _local() -> Iterator[Evaluator]:
    with Fleet(lambda: ThreadPoolEvaluator(2)) as fleet:
        yield fleet


@contextmanager
def _workers() -> Iterator[Evaluator]:
    with WorkerFarm() as farm:
        farm.start_worker(threads=1)
        farm.start_worker(threads=2)
        farm.wait_for_workers(2)
        yield farm


EVALUATORS: Final[dict[str, Callable[[], AbstractContextManager[Evaluator]]]] = {
    "embedded": _embedded,
    "local": _local,
    "workers": _workers,
}
