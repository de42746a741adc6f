"""Outcomes that do not answer the request change nothing."""

from collections.abc import Callable

import pytest

from remy_farm.v1 import evaluation_pb2
from remy_services.designer import Designer, DesignerError, OutcomeError
from services.tests.designer.analytic_evaluator import AnalyticEvaluator
from services.tests.designer.small_spec import small_spec

Damage = Callable[[evaluation_pb2.EvaluationOutcome], object]

_DAMAGE: dict[str, tuple[Damage, str]] = {
    "one result missing": (
        lambda outcome: outcome.outcomes.pop(),
        "holds 15 results; the request asks for 1 candidates on 16 specimens",
    ),
    "one result too many": (
        lambda outcome: outcome.outcomes.add(),
        "holds 17 results",
    ),
    "one sender missing": (
        lambda outcome: outcome.outcomes[3].delay_sum_ms.pop(),
        "result 3 does not hold one entry for each of its specimen's",
    ),
    "no uses": (
        lambda outcome: outcome.outcomes[2].ClearField("rule_uses"),
        "result 2 counts the uses of 0 rules; the table has 1",
    ),
    "uses of another table": (
        lambda outcome: outcome.outcomes[2].rule_uses.append(7),
        "result 2 counts the uses of 2 rules; the table has 1",
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
