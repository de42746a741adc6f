"""Tests that MeasuredEvaluator passes results through and counts each simulation once."""

from __future__ import annotations

import asyncio

import pytest

import remy_simulator
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_farm.evaluation.interface import EvaluationProgress, Share
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_proto.v1 import evaluation_pb2
from remy_services.telemetry.telemetry import Telemetry
from remy_simulator.columns import specimen_count
from services.tests.telemetry.exported import value


def small_request() -> evaluation_pb2.EvaluationRequest:
    designer = Designer(small_spec(grid_steps=2))
    count = designer.next_request()
    assert count is not None
    designer.receive(remy_simulator.evaluate_columns(count))
    request = designer.next_request()
    assert request is not None
    return request


def test_every_simulation_is_counted_once() -> None:
    request = small_request()
    telemetry = Telemetry()
    reports: list[EvaluationProgress] = []

    async def twice() -> None:
        evaluator = telemetry.evaluator(ThreadPoolEvaluator(2))
        try:
            for on_progress in (reports.append, None):
                evaluation = await evaluator.evaluate(Share("j"), request, on_progress)
                assert evaluation.outcome == remy_simulator.evaluate_columns(request)
        finally:
            await evaluator.close()

    asyncio.run(twice())
    simulations = len(request.candidates) * specimen_count(request)
    packets = sum(remy_simulator.evaluate_columns(request).packets_sent)
    registry = telemetry.registry
    assert reports[-1].simulations_done == simulations
    assert value(registry, "remy_farm_evaluations_total") == 2 * simulations
    assert value(registry, "remy_farm_simulated_packets_total") == 2 * packets
    assert value(registry, "remy_farm_simulated_seconds_total") == pytest.approx(
        2 * simulations * request.duration_ms / 1000
    )
    assert value(registry, "remy_farm_evaluation_cpu_seconds_total") > 0
    assert telemetry.activity.last_result("j") is not None


def test_failed_requests_are_counted() -> None:
    telemetry = Telemetry()

    async def refused() -> None:
        evaluator = telemetry.evaluator(ThreadPoolEvaluator(1))
        request = small_request()
        request.duration_ms = -1
        try:
            with pytest.raises(remy_simulator.InvalidRequest):
                await evaluator.evaluate(Share("j"), request)
        finally:
            await evaluator.close()

    asyncio.run(refused())
    assert value(telemetry.registry, "remy_farm_evaluation_requests_failed_total") == 1
