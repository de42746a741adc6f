"""Compares ThreadPoolEvaluator with direct calls of the simulator."""

from __future__ import annotations

import asyncio
import struct

import pytest

import remy_simulator
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_farm.evaluation.interface import EvaluationProgress, Share
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import packed, specimen_count


def _request() -> evaluation_pb2.EvaluationRequest:
    designer = Designer(small_spec(grid_steps=2))
    count = designer.next_request()
    assert count is not None
    designer.receive(remy_simulator.evaluate_columns(count))
    improve = designer.next_request()
    assert improve is not None
    return improve


def test_concurrent_evaluations_get_the_simulator_s_outcome() -> None:
    request = _request()

    async def three_at_once() -> None:
        fleet = ThreadPoolEvaluator(2)
        try:
            evaluations = await asyncio.gather(
                *(fleet.evaluate(Share(f"job-{number}"), request) for number in range(3))
            )
        finally:
            await fleet.close()
        for evaluation in evaluations:
            assert evaluation.outcome == remy_simulator.evaluate_columns(request)
            assert evaluation.cpu_seconds > 0
            assert evaluation.workers

    asyncio.run(three_at_once())


def test_progress_ends_with_all_simulations_done() -> None:
    request = _request()
    reports: list[EvaluationProgress] = []

    async def evaluate() -> None:
        fleet = ThreadPoolEvaluator(2)
        try:
            await fleet.evaluate(Share("job"), request, reports.append)
        finally:
            await fleet.close()

    asyncio.run(evaluate())
    done = [report.simulations_done for report in reports]
    assert done == sorted(done)
    assert done[-1] == len(request.candidates) * specimen_count(request)


def test_an_invalid_request_is_refused() -> None:
    request = packed(_request())
    columns = request.specimen_columns
    columns.link_rates_packets_per_ms = (
        struct.pack("<d", -1) + columns.link_rates_packets_per_ms[8:]
    )

    async def evaluate() -> None:
        fleet = ThreadPoolEvaluator(2)
        try:
            with pytest.raises(remy_simulator.InvalidRequest):
                await fleet.evaluate(Share("job"), request)
        finally:
            await fleet.close()

    asyncio.run(evaluate())


def test_zero_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="threads is 0, but must be at least 1"):
        ThreadPoolEvaluator(0)
