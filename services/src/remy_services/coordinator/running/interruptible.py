"""An evaluation that may be given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation import Evaluation, OnProgress, Share, SharedEvaluator


async def evaluate_unless(
    given_up: Callable[[], bool],
    bell: asyncio.Event,
    evaluator: SharedEvaluator,
    share: Share,
    request: evaluation_pb2.EvaluationRequest,
    on_progress: OnProgress | None = None,
) -> Evaluation | None:
    """The request's evaluation; None if `given_up` says so, which is asked when the bell rings.

    Raises what the evaluator does.
    """
    evaluation = asyncio.create_task(evaluator.evaluate(share, request, on_progress))
    try:
        while not evaluation.done():
            if given_up():
                return None
            ring = asyncio.create_task(bell.wait())
            await asyncio.wait({evaluation, ring}, return_when=asyncio.FIRST_COMPLETED)
            ring.cancel()
            bell.clear()
        return evaluation.result()
    finally:
        evaluation.cancel()
        await asyncio.gather(evaluation, return_exceptions=True)
