"""Compares LocalEvaluator with direct calls of the simulator."""

import os
import signal
import struct
import threading
from contextlib import closing

import pytest

import remy_simulator
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_farm.evaluation.interface import EvaluationProgress, PacketLimitReached
from remy_farm.evaluation.local import LocalEvaluator
from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import packed, specimen_count


def _requests() -> list[evaluation_pb2.EvaluationRequest]:
    """The first two requests of a design: one counts rule uses, one has many candidates."""
    designer = Designer(small_spec(grid_steps=2))
    count = designer.next_request()
    assert count is not None
    designer.receive(remy_simulator.evaluate_columns(count))
    improve = designer.next_request()
    assert improve is not None
    return [count, improve]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_outcome_equals_the_simulator_s_for_any_number_of_threads(threads: int) -> None:
    evaluator = LocalEvaluator(threads)
    try:
        for request in _requests():
            assert evaluator.evaluate(request) == remy_simulator.evaluate_columns(request)
    finally:
        evaluator.close()


def test_progress_ends_with_all_simulations_done() -> None:
    request = _requests()[1]
    reports: list[EvaluationProgress] = []
    evaluator = LocalEvaluator(2)
    try:
        outcome = evaluator.evaluate(request, reports.append)
    finally:
        evaluator.close()

    simulations = len(request.candidates) * specimen_count(request)
    assert reports
    assert [report.simulations_done for report in reports] == sorted(
        report.simulations_done for report in reports
    )
    assert all(report.simulations == simulations for report in reports)
    assert reports[-1].simulations_done == simulations
    assert reports[-1].simulated_packets == sum(outcome.packets_sent)


def test_an_exception_of_the_progress_callback_abandons_the_evaluation() -> None:
    class Enough(Exception):
        pass

    def refuse(_progress: EvaluationProgress) -> None:
        raise Enough

    count, improve = _requests()
    evaluator = LocalEvaluator(2)
    try:
        with pytest.raises(Enough):
            evaluator.evaluate(improve, refuse)
        # The evaluator can still be used.
        assert evaluator.evaluate(count) == remy_simulator.evaluate_columns(count)
    finally:
        evaluator.close()


def test_an_invalid_request_is_refused() -> None:
    request = packed(_requests()[0])
    columns = request.specimen_columns
    columns.link_rates_packets_per_ms = (
        struct.pack("<d", -1) + columns.link_rates_packets_per_ms[8:]
    )
    evaluator = LocalEvaluator(2)
    try:
        with pytest.raises(remy_simulator.InvalidRequest):
            evaluator.evaluate(request)
    finally:
        evaluator.close()


def test_zero_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="threads is 0, but must be at least 1"):
        LocalEvaluator(0)


def _endless() -> evaluation_pb2.EvaluationRequest:
    """A request whose simulations do not end within the test."""
    request = packed(_requests()[0])
    request.duration_ms = 1e12
    return request


def test_an_exception_of_the_progress_callback_stops_a_running_simulation() -> None:
    class Enough(Exception):
        pass

    reports: list[EvaluationProgress] = []

    def refuse(progress: EvaluationProgress) -> None:
        reports.append(progress)
        raise Enough

    with closing(LocalEvaluator(2)) as evaluator, pytest.raises(Enough):
        evaluator.evaluate(_endless(), refuse)
    # The running simulation was stopped, because `close` would otherwise have waited for it.
    assert [progress.simulations_done for progress in reports] == [0]


def test_a_signal_stops_a_running_simulation() -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with closing(LocalEvaluator(2)) as evaluator, pytest.raises(KeyboardInterrupt):
        evaluator.evaluate(_endless())


def test_an_evaluation_above_its_packet_limit_is_stopped() -> None:
    count = _requests()[0]
    sent = sum(remy_simulator.evaluate_columns(count).packets_sent)
    with closing(LocalEvaluator(2)) as evaluator:
        with pytest.raises(PacketLimitReached, match="more packets than the 1000 that are left"):
            evaluator.evaluate(_endless(), packet_limit=1000)
        with pytest.raises(PacketLimitReached):
            evaluator.evaluate(count, packet_limit=sent - 1)
        assert sum(evaluator.evaluate(count, packet_limit=sent).packets_sent) == sent
