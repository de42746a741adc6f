"""Evaluations that need not be paid for twice: those of a step that was begun before.

A large request is evaluated in chunks, and each is kept when it is done. A step that is taken up
again, after a pause or a crash, then pays for what had not been done. Small requests are as soon
evaluated as looked up.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import remy_simulator
from remy_farm.v1 import design_service_pb2, evaluation_pb2
from remy_services.evaluation import (
    Evaluation,
    EvaluationProgress,
    OnProgress,
    Share,
    SharedEvaluator,
)
from remy_services.evaluation.partition import Task, assemble, partition
from remy_services.stores import EvaluationCache, request_keys

# A thread simulates so many in a few seconds: what a crash may cost, and long enough that hashes
# and look-ups do not count.
_PACKETS_PER_CHUNK = 1e8


class CachedEvaluator:
    """A SharedEvaluator with a cache of what another has evaluated."""

    def __init__(
        self,
        inner: SharedEvaluator,
        cache: EvaluationCache,
        *,
        packets_per_chunk: float = _PACKETS_PER_CHUNK,
    ) -> None:
        self._inner = inner
        self._cache = cache
        self._packets_per_chunk = packets_per_chunk
        # A cache that is slow must not keep stores and designers waiting. One thread: what was put
        # there is found by whoever looks for it later.
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="cache")
        self._simulator = f"{version('remy-simulator')} {remy_simulator.fingerprint()}"

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        chunk = self._chunk_size(request)
        if chunk >= len(request.candidates) * len(request.specimens):
            return await self._inner.evaluate(share, request, on_progress)
        loop = asyncio.get_running_loop()
        keys = await loop.run_in_executor(self._threads, request_keys, self._simulator, request)
        known = await loop.run_in_executor(self._threads, self._cache.get, keys)
        whole = _Whole(self, share, request, keys, known, on_progress)
        chunks = [asyncio.create_task(whole.chunk(task)) for task in partition(request, chunk)]
        try:
            evaluations = await asyncio.gather(*chunks)
        finally:
            for each in chunks:
                each.cancel()
            await asyncio.gather(*chunks, return_exceptions=True)
        return Evaluation(
            assemble(request, [(task, evaluation.outcome) for task, evaluation in evaluations]),
            sum(evaluation.cpu_seconds for _, evaluation in evaluations),
            frozenset(name for _, evaluation in evaluations for name in evaluation.workers),
        )

    def info(self) -> design_service_pb2.EvaluatorsInfo:
        return self._inner.info()

    async def close(self) -> None:
        """Leaves the cache open."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._inner.close()

    def _chunk_size(self, request: evaluation_pb2.EvaluationRequest) -> int:
        """Simulations that make up a chunk."""
        rates = [specimen.link_rate_packets_per_ms for specimen in request.specimens]
        packets = request.duration_ms * sum(rates) / max(len(rates), 1)
        return max(1, int(self._packets_per_chunk / max(packets, 1.0)))

    async def evaluate_and_keep(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        keys: list[bytes],
        on_progress: OnProgress,
    ) -> Evaluation:
        """One chunk, whose outcomes have these keys."""
        evaluation = await self._inner.evaluate(share, request, on_progress)
        entries = [
            (key, outcome.SerializeToString())
            for key, outcome in zip(keys, evaluation.outcome.outcomes, strict=True)
        ]
        # Nobody waits for what is only useful after a crash.
        asyncio.get_running_loop().run_in_executor(self._threads, self._cache.put, entries)
        return evaluation


class _Whole:
    """A request that is evaluated in chunks."""

    def __init__(
        self,
        evaluator: CachedEvaluator,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        keys: list[bytes],
        known: dict[bytes, bytes],
        on_progress: OnProgress | None,
    ) -> None:
        self._evaluator = evaluator
        self._share = share
        self._request = request
        self._keys = keys
        self._known = known
        self._on_progress = on_progress
        self._reached: dict[Task, EvaluationProgress] = {}

    async def chunk(self, task: Task) -> tuple[Task, Evaluation]:
        """The outcome of a part, from the cache if all of it is there."""
        specimens = len(self._request.specimens)
        keys = [
            self._keys[candidate * specimens + specimen]
            for candidate in task.candidates
            for specimen in task.specimens
        ]
        if all(key in self._known for key in keys):
            outcome = evaluation_pb2.EvaluationOutcome(
                outcomes=[
                    evaluation_pb2.SpecimenOutcome.FromString(self._known[key]) for key in keys
                ]
            )
            self._reach(task, _complete(outcome))
            return task, Evaluation(outcome, 0.0, frozenset())
        evaluation = await self._evaluator.evaluate_and_keep(
            self._share,
            task.request(self._request),
            keys,
            lambda progress: self._reach(task, progress),
        )
        return task, evaluation

    def _reach(self, task: Task, progress: EvaluationProgress) -> None:
        self._reached[task] = progress
        if self._on_progress is not None:
            reached = self._reached.values()
            self._on_progress(
                EvaluationProgress(
                    sum(each.simulations_done for each in reached),
                    len(self._keys),
                    sum(each.simulated_packets for each in reached),
                )
            )


def _complete(outcome: evaluation_pb2.EvaluationOutcome) -> EvaluationProgress:
    simulations = len(outcome.outcomes)
    packets = sum(sum(each.packets_sent) for each in outcome.outcomes)
    return EvaluationProgress(simulations, simulations, packets)
