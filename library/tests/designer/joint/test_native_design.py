"""Tests small designs with the simulator, evaluated in different ways with the same result."""

from functools import cache
from random import Random

import pytest

import remy_simulator
from library.tests.designer.recorded_design import Evaluate, RecordedDesign
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.designer import Designer
from remy_farm.designer.actions import START_RULE, has_start_rule
from remy_farm.evaluation.local import LocalEvaluator
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator.columns import Slice, assemble, shared_part, slice_request, whole

_SPLITS = ["orthants", "disagreement"]


def _spec(splits: str) -> spec_pb2.DesignSpec:
    return small_joint_spec(
        signals="send_ewma, rec_ewma, rtt_ratio",
        simulated_seconds=10,
        steps=40,
        first_split=10,
        steps_per_split=20,
        maximum_rules=8,
        steps_per_epoch=20,
        step_size=0.06,
        validation_specimens=32,
        splits=splits,
    )


def _recorded(spec: spec_pb2.DesignSpec) -> RecordedDesign:
    evaluator = LocalEvaluator(1)
    try:
        return RecordedDesign(spec, evaluator.evaluate)
    finally:
        evaluator.close()


@cache
def _reference(splits: str) -> RecordedDesign:
    return _recorded(_spec(splits))


@pytest.mark.parametrize("splits", _SPLITS)
def test_a_design_gains_on_the_validation_specimens(splits: str) -> None:
    recorded = _reference(splits)
    before = recorded.designer.epochs[0].comparison.before
    best = [r.comparison.after for r in recorded.designer.epochs if r.comparison.accepted][-1]
    assert recorded.designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    # All rules but the start rule were split, within the limit of 8 rules.
    assert 2 < recorded.designer.table.rule_count <= 8
    assert best.mean > before.mean + 0.02


class _Parts:
    """An evaluator that cuts every request into random parts, evaluated in random order."""

    def __init__(self, seed: int) -> None:
        self._order = Random(seed)

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> evaluation_pb2.EvaluationOutcome:
        shared = shared_part(request).SerializeToString()
        everything = whole(request)
        slices = [
            Slice(candidates, specimens)
            for candidates in self._cut(everything.candidates)
            for specimens in self._cut(everything.specimens)
        ]
        self._order.shuffle(slices)
        parts = []
        for each in slices:
            wire = shared + slice_request(request, each).SerializeToString()
            part = evaluation_pb2.EvaluationRequest.FromString(wire)
            parts.append((each, remy_simulator.evaluate_columns(part)))
        return assemble(request, parts)

    def _cut(self, numbers: range) -> list[range]:
        """Cuts a range into ranges of a random length."""
        length = self._order.randint(1, len(numbers))
        return [numbers[first : first + length] for first in numbers[::length]]


def _with_threads(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationOutcome:
    evaluator = LocalEvaluator(2)
    try:
        return evaluator.evaluate(request)
    finally:
        evaluator.close()


@pytest.mark.parametrize("splits", _SPLITS)
@pytest.mark.parametrize("evaluate", [_with_threads, _Parts(1).evaluate], ids=["threads", "parts"])
def test_the_design_does_not_depend_on_the_evaluator(evaluate: Evaluate, splits: str) -> None:
    recorded = RecordedDesign(_spec(splits), evaluate)
    reference = _reference(splits)
    assert recorded.table == reference.table
    assert recorded.checkpoints == reference.checkpoints
    assert recorded.events == reference.events


_ABSOLUTE_AND_SCALE_FREE = [
    "send_ewma, rec_ewma, rtt_ratio",
    "send_ratio, rtt_ratio, slow_rec_ratio",
]


def _many_splits(signals: str, overgrowth: float = 1.0) -> spec_pb2.DesignSpec:
    """Returns a specification with many splits.

    Specimens are shorter than an on/off cycle of 10 s, so that steps do not cut them.
    """
    return small_joint_spec(
        edition=2,
        signals=signals,
        simulated_seconds=5,
        steps=30,
        first_split=5,
        steps_per_split=5,
        maximum_rules=12,
        overgrowth=overgrowth,
        steps_per_epoch=15,
        step_size=0.06,
        validation_specimens=16,
    )


@cache
def _many_splits_reference(signals: str) -> RecordedDesign:
    return _recorded(_many_splits(signals))


@pytest.mark.parametrize("signals", _ABSOLUTE_AND_SCALE_FREE)
def test_all_rules_but_the_start_rule_are_split(signals: str) -> None:
    recorded = _many_splits_reference(signals)
    splits = [e.rule_split for e in recorded.events if e.WhichOneof("event") == "rule_split"]
    assert START_RULE not in {split.rule for split in splits}
    # The last split is on as many signals as the limit of 12 rules allows.
    assert splits[-1].rules == 12
    assert has_start_rule(recorded.designer.table)
    # The window multiple of the start rule stays 0.
    assert recorded.designer.table.action(START_RULE)[0] == 0


@pytest.mark.parametrize("signals", _ABSOLUTE_AND_SCALE_FREE)
@pytest.mark.parametrize("evaluate", [_with_threads, _Parts(1).evaluate], ids=["threads", "parts"])
def test_a_design_with_many_splits_does_not_depend_on_the_evaluator(
    evaluate: Evaluate, signals: str
) -> None:
    recorded = RecordedDesign(_many_splits(signals), evaluate)
    reference = _many_splits_reference(signals)
    assert recorded.table == reference.table
    assert recorded.checkpoints == reference.checkpoints
    assert recorded.events == reference.events


@cache
def _small_table() -> RecordedDesign:
    spec = _many_splits(_ABSOLUTE_AND_SCALE_FREE[1], overgrowth=3.0)
    spec.search.maximum_rules = 5
    return _recorded(spec)


def test_a_small_table_is_merged_from_a_larger_one() -> None:
    """The first table has seven rules, two more than the limit."""
    recorded = _small_table()
    sizes = [Designer.resume(recorded.spec, data).table.rule_count for data in recorded.checkpoints]
    merges = [e.rules_merged for e in recorded.events if e.WhichOneof("event") == "rules_merged"]
    splits = [e.rule_split for e in recorded.events if e.WhichOneof("event") == "rule_split"]
    assert max(split.rules for split in splits) > 7
    assert merges[-1].rules == sizes[-1] == 5
    assert set(sizes) == {7, 5}
    assert sizes == sorted(sizes, reverse=True)
    assert has_start_rule(recorded.designer.table)
    # Tables above the limit are not compared.
    assert [record.rules for record in recorded.designer.epochs] == [5]


@pytest.mark.parametrize("evaluate", [_with_threads, _Parts(1).evaluate], ids=["threads", "parts"])
def test_merges_do_not_depend_on_the_evaluator(evaluate: Evaluate) -> None:
    reference = _small_table()
    recorded = RecordedDesign(reference.spec, evaluate)
    assert recorded.checkpoints == reference.checkpoints
    assert recorded.events == reference.events
