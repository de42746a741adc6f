"""Tests that outcomes that do not fit the request are refused and change nothing."""

import math
from array import array
from collections.abc import Callable

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer, DesignerError, OutcomeError
from remy_proto.v1 import evaluation_pb2

Damage = Callable[[evaluation_pb2.EvaluationOutcome], object]


def _lengthen(outcome: evaluation_pb2.EvaluationOutcome) -> None:
    outcome.packets_sent.append(1)
    outcome.scores += bytes(8)


def _shorten(outcome: evaluation_pb2.EvaluationOutcome) -> None:
    outcome.packets_sent.pop()
    outcome.scores = outcome.scores[:-8]


def _score_infinity(outcome: evaluation_pb2.EvaluationOutcome) -> None:
    outcome.scores = outcome.scores[:24] + array("d", [math.inf]).tobytes() + outcome.scores[32:]


_DAMAGE: dict[str, tuple[Damage, str]] = {
    "one result missing": (
        _shorten,
        "the packets of 15 simulations; the request asks for 1 candidates on 16 specimens",
    ),
    "one result too many": (_lengthen, "the packets of 17 simulations"),
    "senders in place of scores": (
        lambda outcome: outcome.senders.SetInParent(),
        "scores where 16 simulations were to be scored",
    ),
    "an infinite score": (_score_infinity, "candidate 0 scored inf on specimen 3"),
    "no uses": (
        lambda outcome: outcome.ClearField("rule_uses"),
        "counts the uses of 0 rules, not of 1",
    ),
    "uses of another table": (
        lambda outcome: outcome.rule_uses.append(7),
        "counts the uses of 2 rules, not of 1",
    ),
}


@pytest.mark.parametrize("damage", list(_DAMAGE), ids=str)
def test_an_outcome_of_another_shape_is_refused(damage: str) -> None:
    designer = Designer(small_spec())
    request = designer.next_request()
    assert request is not None
    outcome = AnalyticEvaluator().evaluate(request)
    broken = evaluation_pb2.EvaluationOutcome()
    broken.CopyFrom(outcome)
    change, message = _DAMAGE[damage]
    change(broken)
    before = designer.checkpoint()

    with pytest.raises(OutcomeError, match=message):
        designer.receive(broken)

    assert designer.checkpoint() == before
    assert designer.next_request() == request
    assert designer.receive(outcome)[0].step == 1


def test_an_outcome_is_received_once() -> None:
    designer = Designer(small_spec())
    request = designer.next_request()
    assert request is not None
    outcome = AnalyticEvaluator().evaluate(request)
    designer.receive(outcome)

    with pytest.raises(DesignerError, match="no request"):
        designer.receive(outcome)
