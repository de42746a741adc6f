"""Every evaluator gives the same outcomes, bit for bit."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

import remy_simulator
from remy_farm.evaluation.interface import EvaluationProgress, Evaluator
from remy_farm.evaluation.local import LocalEvaluator
from remy_proto.v1 import evaluation_pb2
from tests.fleet.designs import SEARCHES, design, requests, short_spec, trace_requests
from tests.fleet.evaluators import EVALUATORS


@pytest.fixture(scope="module", params=[*EVALUATORS, "ray"])
def evaluator(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    if request.param == "ray":
        cluster = request.getfixturevalue("ray_cluster")
        from benchmarks.ray_farm import RayFarm

        with RayFarm(cluster) as farm:
            farm.wait_for_workers(2)
            yield farm
        return
    with EVALUATORS[request.param]() as made:
        yield made


@pytest.mark.parametrize("search", SEARCHES)
def test_outcome_equals_the_simulator_s(evaluator: Evaluator, search: str) -> None:
    for request in requests(search, 6):
        outcome = evaluator.evaluate(request)
        expected = remy_simulator.evaluate_columns(request)
        assert outcome == expected
        assert outcome.SerializeToString(deterministic=True) == expected.SerializeToString(
            deterministic=True
        )


def test_trace_longer_than_a_message_is_followed(evaluator: Evaluator) -> None:
    for request in trace_requests(2):
        assert evaluator.evaluate(request) == remy_simulator.evaluate_columns(request)


def test_unknown_trace_is_refused_with_its_hash(evaluator: Evaluator) -> None:
    request = trace_requests(1)[0]
    for specimen in request.specimens:
        specimen.links[0].trace.sha256 = bytes(32)
    with pytest.raises(remy_simulator.InvalidRequest, match=f"the trace {'00' * 32}, which"):
        evaluator.evaluate(request)


@pytest.mark.parametrize(
    "recording",
    [
        evaluation_pb2.RECORDING_UNSPECIFIED,
        evaluation_pb2.RECORDING_USES,
        evaluation_pb2.RECORDING_MEMORY,
        evaluation_pb2.RECORDING_USED,
    ],
)
def test_recordings_are_complete(evaluator: Evaluator, recording: evaluation_pb2.Recording) -> None:
    request = requests("joint", 3)[2]
    request.recording = recording
    assert evaluator.evaluate(request) == remy_simulator.evaluate_columns(request)


@pytest.mark.parametrize("missing", ["candidates", "specimen_columns"])
def test_request_without_simulations_gives_an_empty_outcome(
    evaluator: Evaluator, missing: str
) -> None:
    request = requests("joint", 1)[0]
    request.ClearField(missing)
    outcome = evaluator.evaluate(request)
    assert outcome == remy_simulator.evaluate_columns(request)
    assert not outcome.packets_sent


def test_invalid_specimen_raises_the_simulator_s_error(evaluator: Evaluator) -> None:
    request = requests("paper", 2)[1]
    columns = request.specimen_columns
    columns.rtts_ms = columns.rtts_ms[:-8] + struct.pack("<d", -5)
    with pytest.raises(remy_simulator.InvalidRequest) as expected:
        remy_simulator.evaluate_columns(request)
    with pytest.raises(remy_simulator.InvalidRequest) as refused:
        evaluator.evaluate(request)
    assert str(refused.value) == str(expected.value)


def test_invalid_table_is_refused(evaluator: Evaluator) -> None:
    request = requests("paper", 2)[1]
    request.tables[0].nodes[0].ClearField("kind")
    with pytest.raises(remy_simulator.InvalidRequest, match="needs an action"):
        evaluator.evaluate(request)


def test_last_progress_report_has_the_counts_of_the_outcome(evaluator: Evaluator) -> None:
    request = requests("paper", 2)[1]
    reports: list[EvaluationProgress] = []
    outcome = evaluator.evaluate(request, reports.append)
    done = [report.simulations_done for report in reports]
    assert done == sorted(done)
    assert reports[-1] == EvaluationProgress(
        simulations_done=len(outcome.packets_sent),
        simulations=len(outcome.packets_sent),
        simulated_packets=sum(outcome.packets_sent),
    )


@pytest.mark.parametrize("search", SEARCHES)
def test_design_gives_the_same_bytes(evaluator: Evaluator, search: str) -> None:
    embedded = LocalEvaluator(1)
    try:
        expected = design(short_spec(search), embedded)
    finally:
        embedded.close()
    assert design(short_spec(search), evaluator) == expected
