"""The evaluator on this machine's threads, against the simulator called directly."""

import pytest

import remy_simulator
from remy_farm.v1 import evaluation_pb2
from remy_services.designer import Designer
from remy_services.evaluation import EvaluationProgress, LocalEvaluator
from services.tests.designer.small_spec import small_spec


def _requests() -> list[evaluation_pb2.EvaluationRequest]:
    """The first two requests of a design: one that counts uses, one with many candidates."""
    designer = Designer(small_spec(grid_steps=2))
    count = designer.next_request()
    assert count is not None
    designer.receive(remy_simulator.evaluate(count))
    improve = designer.next_request()
    assert improve is not None
    return [count, improve]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_number_of_threads_gives_the_simulator_s_outcome(threads: int) -> None:
    evaluator = LocalEvaluator(threads)
    try:
        for request in _requests():
            assert evaluator.evaluate(request) == remy_simulator.evaluate(request)
    finally:
        evaluator.close()


def test_progress_ends_where_the_outcome_is_complete() -> None:
    request = _requests()[1]
    reports: list[EvaluationProgress] = []
    evaluator = LocalEvaluator(2)
    try:
        outcome = evaluator.evaluate(request, reports.append)
    finally:
        evaluator.close()

    simulations = len(request.candidates) * len(request.specimens)
    assert reports
    assert [report.simulations_done for report in reports] == sorted(
        report.simulations_done for report in reports
    )
    assert all(report.simulations == simulations for report in reports)
    assert reports[-1].simulations_done == simulations
    assert reports[-1].simulated_packets == sum(
        sum(result.packets_sent) for result in outcome.outcomes
    )


def test_what_the_report_raises_abandons_the_evaluation() -> None:
    class Enough(Exception):
        pass

    def refuse(_progress: EvaluationProgress) -> None:
        raise Enough

    count, improve = _requests()
    evaluator = LocalEvaluator(2)
    try:
        with pytest.raises(Enough):
            evaluator.evaluate(improve, refuse)
        # It is as good as new.
        assert evaluator.evaluate(count) == remy_simulator.evaluate(count)
    finally:
        evaluator.close()


def test_a_request_that_makes_no_sense_is_refused() -> None:
    request = _requests()[0]
    request.specimens[0].link_rate_packets_per_ms = -1
    evaluator = LocalEvaluator(2)
    try:
        with pytest.raises(remy_simulator.InvalidRequest):
            evaluator.evaluate(request)
    finally:
        evaluator.close()


def test_there_is_at_least_one_thread() -> None:
    with pytest.raises(ValueError, match="threads is 0; at least 1 is needed"):
        LocalEvaluator(0)
