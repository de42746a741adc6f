"""Tests step 5 of the paper's search if the most-used rule is too small to be split."""

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.small_spec import small_spec
from remy_farm.designer.paper import PaperState, PaperStrategy, SplitRule
from remy_proto.v1 import evaluation_pb2, progress_pb2
from remy_simulator import RuleTable

_ACTION = (1.0, 1.0, 3.0)
_NODE = (0.0, 0.0, 0.0)
SPEC = small_spec(signals="send_ewma")
STRATEGY = PaperStrategy(SPEC)


def _split(table: RuleTable, uses: list[int]) -> tuple[PaperState, list[str | None]]:
    """Returns the state after the split of a table with these uses, and the events."""
    state = PaperState.first(table, 1, progress_pb2.STEP_PURPOSE_SPLIT)
    request = SplitRule().request(STRATEGY, state)
    outcome = evaluation_pb2.EvaluationOutcome()
    outcome.CopyFrom(AnalyticEvaluator().evaluate(request))
    outcome.rule_uses[:] = uses
    after, report = SplitRule().receive(STRATEGY, state, request, outcome)
    return after, [event.WhichOneof("event") for event in report.events]


def test_the_next_most_used_rule_is_split_instead() -> None:
    # Rule 1 has no double strictly inside its region.
    nodes = [
        ([(0, 1.0)], _NODE),
        ([], _ACTION),
        ([(0, 1.0 + 2**-52)], _NODE),
        ([], _ACTION),
        ([], _ACTION),
    ]
    table = RuleTable([0], nodes)

    state, events = _split(table, [5, 9, 7])

    assert events == ["rule_split"]
    assert state.table.rule_count == 4
    assert [state.table.region(rule) for rule in (0, 1)] == [table.region(0), table.region(1)]
    assert state.rule_epochs == (1, 1, 1, 1)
    assert state.purpose == progress_pb2.STEP_PURPOSE_COUNT_USES


def test_a_table_that_cannot_be_split_is_unchanged() -> None:
    table = RuleTable([0], [([], _ACTION)], 5e-324)

    state, events = _split(table, [5])

    assert events == []
    assert state.table == table
    assert state.purpose == progress_pb2.STEP_PURPOSE_COUNT_USES
