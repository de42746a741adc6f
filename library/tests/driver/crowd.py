"""A crowd of threads that comes and goes, and a design whose steps are as wide as it."""

from __future__ import annotations

from dataclasses import replace

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.evaluation.interface import (
    Evaluation,
    EvaluatorStatus,
    OnProgress,
    Share,
    WorkerLine,
)
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_proto.v1 import evaluation_pb2, spec_pb2

#: Threads that are there before each step, as long as they last.
_CROWD = (1, 1, 70, 70, 40, 1, 0, 200, 200, 33)


def following_spec() -> spec_pb2.DesignSpec:
    spec = small_joint_spec(edition=2, simulated_seconds=2, steps=60, steps_per_epoch=20)
    spec.search.follow_workers = True
    return spec


def threads_before(step: int) -> int:
    return _CROWD[min(step, len(_CROWD) - 1)]


class Crowd:
    """A SharedEvaluator of one thread that says that there are others."""

    def __init__(self) -> None:
        self._inner = ThreadPoolEvaluator(1)
        self._step = 0

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self._step += 1
        return await self._inner.evaluate(share, request, on_progress)

    def status(self) -> EvaluatorStatus:
        return replace(self._inner.status(), threads=threads_before(self._step))

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        return self._inner.worker_lines(job_id)

    async def close(self) -> None:
        await self._inner.close()
