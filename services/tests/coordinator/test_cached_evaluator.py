"""A step that is taken up again pays for what had not been done, and comes to the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import remy_simulator
from remy_farm.v1 import design_service_pb2, evaluation_pb2
from remy_services.coordinator.cached_evaluator import CachedEvaluator
from remy_services.designer import Designer
from remy_services.evaluation import Evaluation, EvaluationProgress, OnProgress, Share
from remy_services.fleet import LocalFleet
from remy_services.stores.cache import MemoryCache
from services.tests.designer.small_spec import small_spec

_SHARE = Share("job")


def _request() -> evaluation_pb2.EvaluationRequest:
    """Many candidates on the same specimens, some of which record memory."""
    designer = Designer(small_spec(simulated_seconds=1))
    while True:
        request = designer.next_request()
        assert request is not None
        if len(request.candidates) > 10:
            return request
        designer.receive(remy_simulator.evaluate(request))


_REQUEST = _request()
_OUTCOME = remy_simulator.evaluate(_REQUEST)


class _Counting:
    """Counts simulations, and fails after so many requests."""

    def __init__(self, inner: LocalFleet, requests: int = 1_000_000) -> None:
        self._inner = inner
        self.requests_left = requests
        self.simulations = 0

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        if self.requests_left == 0:
            # Until it is given up.
            await asyncio.Event().wait()
        self.requests_left -= 1
        self.simulations += len(request.candidates) * len(request.specimens)
        return await self._inner.evaluate(share, request, on_progress)

    def info(self) -> design_service_pb2.EvaluatorsInfo:
        return self._inner.info()

    async def close(self) -> None:
        await self._inner.close()


def _run(
    test: Callable[[_Counting, CachedEvaluator], Coroutine[Any, Any, None]],
    *,
    requests: int = 1_000_000,
    packets_per_chunk: float = 2e4,
) -> None:
    async def run() -> None:
        counting = _Counting(LocalFleet(2), requests)
        cached = CachedEvaluator(
            counting, MemoryCache(max_bytes=1 << 26), packets_per_chunk=packets_per_chunk
        )
        try:
            await test(counting, cached)
        finally:
            await cached.close()

    asyncio.run(run())


def test_the_second_time_costs_nothing() -> None:
    async def test(counting: _Counting, cached: CachedEvaluator) -> None:
        first = await cached.evaluate(_SHARE, _REQUEST)
        assert first.outcome == _OUTCOME
        assert first.cpu_seconds > 0
        assert counting.simulations == len(_OUTCOME.outcomes)
        second = await cached.evaluate(_SHARE, _REQUEST)
        assert second.outcome == _OUTCOME
        assert second.cpu_seconds == 0
        assert counting.simulations == len(_OUTCOME.outcomes)

    _run(test)


def test_a_step_that_was_given_up_goes_on_where_it_was() -> None:
    async def test(counting: _Counting, cached: CachedEvaluator) -> None:
        reached: list[EvaluationProgress] = []
        step = asyncio.create_task(cached.evaluate(_SHARE, _REQUEST, reached.append))
        async with asyncio.timeout(60):
            while not reached or reached[-1].simulations_done < counting.simulations:
                await asyncio.sleep(0.01)
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
        paid = counting.simulations
        assert 0 < paid < len(_OUTCOME.outcomes)

        counting.requests_left = 1_000_000
        again = await cached.evaluate(_SHARE, _REQUEST)
        assert again.outcome == _OUTCOME
        assert counting.simulations < paid + len(_OUTCOME.outcomes)

    _run(test, requests=3)


def test_progress_is_that_of_the_whole() -> None:
    async def test(counting: _Counting, cached: CachedEvaluator) -> None:
        for _ in range(2):
            reached: list[EvaluationProgress] = []
            await cached.evaluate(_SHARE, _REQUEST, reached.append)
            assert {each.simulations for each in reached} == {len(_OUTCOME.outcomes)}
            done = [each.simulations_done for each in reached]
            assert done == sorted(done)
            assert done[-1] == len(_OUTCOME.outcomes)
            packets = sum(sum(each.packets_sent) for each in _OUTCOME.outcomes)
            assert reached[-1].simulated_packets == packets

    _run(test)


def test_another_seed_is_another_evaluation() -> None:
    async def test(counting: _Counting, cached: CachedEvaluator) -> None:
        await cached.evaluate(_SHARE, _REQUEST)
        other = evaluation_pb2.EvaluationRequest()
        other.CopyFrom(_REQUEST)
        other.seed += 1
        assert (await cached.evaluate(_SHARE, other)).outcome == remy_simulator.evaluate(other)
        assert counting.simulations == 2 * len(_OUTCOME.outcomes)

    _run(test)


def test_small_requests_are_not_looked_up() -> None:
    async def test(counting: _Counting, cached: CachedEvaluator) -> None:
        for times in (1, 2):
            assert (await cached.evaluate(_SHARE, _REQUEST)).outcome == _OUTCOME
            assert counting.simulations == times * len(_OUTCOME.outcomes)

    _run(test, packets_per_chunk=1e12)


def test_what_is_wrong_with_a_request_is_told_as_without_a_cache() -> None:
    async def test(counting: _Counting, cached: CachedEvaluator) -> None:
        broken = evaluation_pb2.EvaluationRequest()
        broken.CopyFrom(_REQUEST)
        broken.tables[0].nodes[0].action.intersend_ms = float("nan")
        with pytest.raises(remy_simulator.InvalidRequest):
            await cached.evaluate(_SHARE, broken)

    _run(test)
