"""Tests the message sizes of tasks and results of a joint search."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import remy_simulator
from remy_farm.designer import Designer
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import Assignment
from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_spec
from remy_proto.v1 import evaluation_pb2, worker_service_pb2
from remy_services.transport.grpc import Traffic, WorkerFleet, WorkerStream
from remy_simulator import PreparedRequest, RuleTable
from remy_simulator.columns import Slice, Slicing, packed, slice_request

_DESIGN = Path(__file__).parents[3] / "tests/data/remyccs-absolute/general-purpose-delta1"
# Realistic maxima: a job id, a trace context, a large lease id.
_SHARE = Share("general-purpose-delta1-5f2c9a", trace_parent=f"00-{'a' * 32}-{'b' * 16}-01")
_LEASE_ID = 1 << 48


_MOST_BYTES_PER_PAIR = 200


def _step(table: RuleTable | None) -> evaluation_pb2.EvaluationRequest:
    """Returns a step's request, with antithetic pairs of perturbations."""
    designer = Designer(load_spec(_DESIGN / "spec.yaml"), first_table=table)
    scores = designer.next_request()
    assert scores is not None
    scores.duration_ms = 100
    designer.receive(remy_simulator.evaluate_columns(scores))
    step = designer.next_request()
    assert step is not None
    assert [each.perturbation.scale > 0 for each in step.candidates] == [True, False]
    return packed(step)


async def _messages(step: evaluation_pb2.EvaluationRequest, pairs: int) -> Traffic:
    """Returns the traffic of a worker's first task with this many pairs."""
    fleet = WorkerFleet()
    stream = WorkerStream(WorkerFacts("worker", 1), False, fleet.traffic)
    part = Slice(range(2), range(pairs))
    fleet._send_tasks(stream, [Assignment("worker", _LEASE_ID, _SHARE, 1, part, Slicing(step))])
    return fleet.traffic


def _result_bytes(step: evaluation_pb2.EvaluationRequest, pairs: int) -> int:
    part = slice_request(step, Slice(range(2), range(pairs)))
    outcome = PreparedRequest(step).evaluate(part).SerializeToString()
    result = worker_service_pb2.TaskResult(
        lease_id=_LEASE_ID, outcome=outcome, sha256=bytes(32), cpu_seconds=0.1, wall_seconds=0.1
    )
    return worker_service_pb2.WorkRequest(result=result).ByteSize()


def _bytes_per_pair(step: evaluation_pb2.EvaluationRequest, pairs: int) -> float:
    """Returns the bytes of task and result per pair."""
    traffic = asyncio.run(_messages(step, pairs))
    return (traffic.task_bytes + _result_bytes(step, pairs)) / pairs


@pytest.mark.parametrize("pairs", [4, 16])
def test_messages_per_perturbation_pair_are_small(pairs: int) -> None:
    assert _bytes_per_pair(_step(None), pairs) < _MOST_BYTES_PER_PAIR


def test_message_size_hardly_depends_on_the_number_of_rules() -> None:
    large = read_remycc(_DESIGN / "remycc.json").table
    one, many = _step(None), _step(large)
    assert len(many.tables[0].nodes) > 50 * len(one.tables[0].nodes)
    # The result has one bit per rule for its use.
    masks = len(many.tables[0].nodes) / 8
    assert _bytes_per_pair(many, 16) < _bytes_per_pair(one, 16) + masks
    assert _bytes_per_pair(many, 16) < _MOST_BYTES_PER_PAIR
