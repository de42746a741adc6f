"""Tests whole pattern searches with the analytic evaluator, whose best actions are known."""

import itertools
from functools import cache

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.recorded_design import (
    RecordedDesign,
    finish,
    specimen_keys,
    table_bytes,
)
from library.tests.designer.small_pattern_spec import small_pattern_spec
from remy_farm.designer import Designer, scoring
from remy_farm.specification import Networks
from remy_proto.v1 import evaluation_pb2, progress_pb2
from remy_simulator.columns import specimen_count
from remy_simulator.messages import from_native

_SPEC = small_pattern_spec(steps=200, race_specimens=32, maximum_rules=5)


@cache
def _evaluator() -> AnalyticEvaluator:
    return AnalyticEvaluator(noise=2.0)


@cache
def _recorded() -> RecordedDesign:
    return RecordedDesign(_SPEC, _evaluator().evaluate)


def _steps() -> list[tuple[evaluation_pb2.EvaluationRequest, progress_pb2.StepFinished]]:
    """Returns the request and the event of each step."""
    recorded = _recorded()
    finished = [event.step_finished for event in recorded.events if event.HasField("step_finished")]
    return list(zip(_evaluator().requests[: recorded.steps], finished, strict=True))


def test_the_search_ends_after_its_steps() -> None:
    recorded = _recorded()
    assert recorded.steps == 200
    assert recorded.designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    assert recorded.designer.share_done == 1


def test_an_extended_search_has_the_result_of_one_search_of_that_length() -> None:
    designer = Designer(small_pattern_spec(steps=30))
    evaluate = AnalyticEvaluator(noise=2.0).evaluate
    finish(designer, evaluate)
    assert designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE

    longer = Designer.resume(small_pattern_spec(steps=60), designer.checkpoint())
    longer.reconsider()
    finish(longer, evaluate)

    at_once = RecordedDesign(small_pattern_spec(steps=60), evaluate)
    assert longer.steps == 60
    assert table_bytes(longer) == at_once.table


def test_only_validations_share_specimens() -> None:
    validation: set[int] = set()
    others: list[int] = []
    for request, step in _steps():
        keys = specimen_keys(request)
        if step.purpose == progress_pb2.STEP_PURPOSE_VALIDATE:
            validation = validation or set(keys)
            assert validation == set(keys)
        else:
            others += keys
    assert len(set(others)) == len(others)
    assert not validation.intersection(others)


def test_a_race_starts_with_the_unchanged_table_and_every_neighbour() -> None:
    rounds = [
        request for request, step in _steps() if step.purpose == progress_pb2.STEP_PURPOSE_IMPROVE
    ]
    assert all(not request.candidates[0].HasField("actions") for request in rounds)
    # There are at most ten neighbours, fewer at the bounds.
    firsts = [request for request in rounds if len(request.candidates) > 6]
    assert firsts
    assert all(specimen_count(request) == 4 for request in firsts)


def test_every_split_is_on_one_signal() -> None:
    splits = [event.rule_split for event in _recorded().events if event.HasField("rule_split")]
    assert splits
    assert all(len(split.thresholds) == 1 for split in splits)
    assert all(split.rules <= 5 for split in splits)


def test_the_table_stays_within_the_rule_limit() -> None:
    assert 1 < _recorded().designer.table.rule_count <= 5


def test_an_epoch_without_gain_is_rolled_back() -> None:
    """Each accepted epoch starts from the table of the accepted epoch before it."""
    recorded = _recorded()
    accepted = [record for record in recorded.designer.epochs if record.comparison.accepted]
    refused = [record for record in recorded.designer.epochs if not record.comparison.accepted]
    assert accepted
    assert refused
    for before, after in itertools.pairwise(accepted):
        assert after.comparison.before.mean == before.comparison.after.mean


def test_actions_change_only_with_a_significant_gain() -> None:
    improved = [e.rule_improved for e in _recorded().events if e.HasField("rule_improved")]
    assert improved
    for event in improved:
        assert event.before != event.after
        assert event.gain.mean > 1.5 * event.gain.standard_error


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_gain_is_real(seed: int) -> None:
    """Compares scores without noise, on specimens that the design has not used."""
    spec = small_pattern_spec(steps=200, race_specimens=32, maximum_rules=5, seed=seed)
    recorded = RecordedDesign(spec, AnalyticEvaluator(noise=2.0).evaluate)
    first = RecordedDesign(small_pattern_spec(steps=1, seed=seed), AnalyticEvaluator().evaluate)
    assert _true_score(recorded) > _true_score(first) + 1


def _true_score(recorded: RecordedDesign) -> float:
    request = evaluation_pb2.EvaluationRequest(
        tables=[from_native(recorded.designer.table)],
        candidates=[evaluation_pb2.Candidate()],
        specimen_columns=Networks(_SPEC).draw(seed=1234, count=100),
        duration_ms=10_000,
        objective=_SPEC.objective,
    )
    outcome = AnalyticEvaluator().evaluate(request)
    (scores,) = scoring.paired(scoring.scores(request, outcome, _SPEC.objective))
    return scoring.mean(scores)
