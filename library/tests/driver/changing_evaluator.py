"""A shared evaluator that reports a changing number of threads, and a design that follows it."""

from __future__ import annotations

from dataclasses import replace

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.evaluation.interface import Evaluation, EvaluatorStatus, OnProgress, Share
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_proto.v1 import evaluation_pb2, spec_pb2

#: Number of threads before each step; the last number stays.
_THREADS = (1, 1, 70, 70, 40, 1, 0, 200, 200, 33)


def following_spec() -> spec_pb2.DesignSpec:
    """Returns a specification whose steps follow the number of worker threads."""
    spec = small_joint_spec(edition=2, simulated_seconds=2, steps=60, steps_per_epoch=20)
    spec.search.follow_workers = True
    return spec


def threads_before(step: int) -> int:
    """Returns the number of threads before a step."""
    return _THREADS[min(step, len(_THREADS) - 1)]


class ChangingEvaluator(ThreadPoolEvaluator):
    """A SharedEvaluator on one thread that reports the threads of `threads_before`."""

    def __init__(self) -> None:
        super().__init__(1)
        self._step = 0

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self._step += 1
        return await super().evaluate(share, request, on_progress)

    def status(self) -> EvaluatorStatus:
        return replace(super().status(), threads=threads_before(self._step))
