"""What a task of a joint search takes on the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

import remy_simulator
from remy_farm.v1 import evaluation_pb2
from remy_services.designer import Designer
from remy_services.evaluation import Share
from remy_services.evaluation.scheduler import Assignment
from remy_services.evaluation.tasks import Task as Slice
from remy_services.evaluation.transport.messages import task_message
from remy_services.remycc import read_remycc
from remy_services.specification import load_spec
from remy_simulator import RuleTable

_EXAMPLES = Path(__file__).parents[4] / "examples"
_NAME = "general-purpose-delta1"
# As long as they get: a name as jobs have it, a traced step, the largest number.
_SHARE = Share("general-purpose-delta1-5f2c9a", trace_parent=f"00-{'a' * 32}-{'b' * 16}-01")
_LEASE_ID = 1 << 48


_DIGEST = bytes(32)
_MOST_BYTES_PER_PAIR = 200


def _step(table: RuleTable | None) -> evaluation_pb2.EvaluationRequest:
    """A step's antithetic pairs."""
    designer = Designer(load_spec(_EXAMPLES / f"{_NAME}.yaml"), first_table=table)
    scores = designer.next_request()
    assert scores is not None
    scores.duration_ms = 100
    designer.receive(remy_simulator.evaluate(scores))
    step = designer.next_request()
    assert step is not None
    assert [each.perturbation.scale > 0 for each in step.candidates] == [True, False]
    return step


def _bytes_per_pair(step: evaluation_pb2.EvaluationRequest, pairs: int) -> float:
    piece = Slice(range(2), range(pairs))
    assignment = Assignment("worker", _LEASE_ID, _SHARE, 1, piece, step)
    return task_message(assignment, _DIGEST).ByteSize() / pairs


@pytest.mark.parametrize("pairs", [2, 16])
def test_a_perturbation_pair_is_a_short_message(pairs: int) -> None:
    assert _bytes_per_pair(_step(None), pairs) < _MOST_BYTES_PER_PAIR


def test_it_is_as_short_for_a_table_of_many_rules() -> None:
    large = read_remycc(_EXAMPLES / "remyccs" / _NAME / "remycc.dna").table
    one, many = _step(None), _step(large)
    assert len(many.tables[0].nodes) > 50 * len(one.tables[0].nodes)
    assert _bytes_per_pair(many, 4) == pytest.approx(_bytes_per_pair(one, 4), abs=1)
