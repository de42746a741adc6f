"""Tests whole joint searches: their steps, short climbs, published tables and ends."""

import math
from itertools import pairwise

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator, best_action
from library.tests.designer.recorded_design import RecordedDesign, finish, make_steps, specimen_keys
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.designer import Designer, scoring
from remy_farm.designer import checkpoint as sealing
from remy_farm.designer.joint.schedule import Schedule
from remy_proto.v1 import (
    checkpoint_pb2,
    evaluation_pb2,
    progress_pb2,
    rule_table_pb2,
    spec_pb2,
)
from remy_simulator.columns import specimen_count
from remy_simulator.messages import from_native, to_native

_NOISY = AnalyticEvaluator(noise=6.0).evaluate
_CLIMB = progress_pb2.STEP_PURPOSE_CLIMB
_SPLIT = progress_pb2.STEP_PURPOSE_SPLIT
_VALIDATE = progress_pb2.STEP_PURPOSE_VALIDATE


def _state(checkpoint: bytes) -> checkpoint_pb2.JointSearchState:
    return sealing.unseal(checkpoint).joint


def test_steps_are_those_of_the_schedule() -> None:
    """There are 18 growing and 6 refining steps, epochs of 6 steps, and splits every 6 steps."""
    recorded = RecordedDesign(small_joint_spec(signals="send_ewma"), AnalyticEvaluator().evaluate)
    expected = [_VALIDATE]
    for step in range(1, 25):
        expected.append(_CLIMB)
        if step in (4, 10, 16):
            expected.append(_SPLIT)
        if step % 6 == 0:
            expected.append(_VALIDATE)
    assert recorded.purposes == expected
    assert recorded.designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    # The start rule, and four rules after three splits on one signal.
    assert recorded.designer.table.rule_count == 5


def test_with_disagreement_splits_are_put_on_trial() -> None:
    """A trial follows each record of memory values. It has four times the specimens of a step, and
    a table in which every used rule is split on both signals."""
    evaluator = AnalyticEvaluator()
    recorded = RecordedDesign(small_joint_spec(splits="disagreement"), evaluator.evaluate)
    trials = [
        (before, now)
        for (before, now) in pairwise(zip(recorded.purposes, evaluator.requests, strict=True))
        if now[0] == progress_pb2.STEP_PURPOSE_TRY_SPLITS
    ]
    assert recorded.purposes.count(_SPLIT) == len(trials) == 3
    for (purpose, split_request), (_, request) in trials:
        assert purpose == _SPLIT
        assert specimen_count(request) == 4 * 16
        rules = to_native(split_request.tables[0]).rule_count
        assert rules < to_native(request.tables[0]).rule_count <= 4 * rules


@pytest.mark.parametrize("seed", range(1, 6))
def test_disagreement_splits_on_the_signal_that_matters(seed: int) -> None:
    """The best action depends on send_ewma only."""
    spec = small_joint_spec(steps=12, maximum_rules=3, splits="disagreement", seed=seed)
    spec.search.specimens = 64
    recorded = RecordedDesign(spec, AnalyticEvaluator().evaluate)
    (split,) = [event.rule_split for event in recorded.events if event.HasField("rule_split")]
    assert [threshold.signal for threshold in split.thresholds] == [rule_table_pb2.SIGNAL_SEND_EWMA]
    assert split.rules == recorded.designer.table.rule_count == 3


@pytest.mark.parametrize("splits", ["orthants", "disagreement"])
@pytest.mark.parametrize("starts", [1, 3])
def test_share_done_grows_from_0_to_1(splits: str, starts: int) -> None:
    spec = small_joint_spec(splits=splits, starts=starts, start_steps=5)
    recorded = RecordedDesign(spec, AnalyticEvaluator().evaluate)
    shares = [Designer.resume(spec, data).share_done for data in recorded.checkpoints]

    assert shares[0] == 0
    assert shares[-1] == 1
    assert all(
        earlier is not None and later is not None and earlier <= later
        for earlier, later in pairwise(shares)
    )


def test_a_climb_finds_the_best_action() -> None:
    """Rule 0 is the start rule. The best action of rule 1 is the mean of the best actions of all
    other memory points."""
    spec = small_joint_spec(steps=150, steps_per_epoch=50, maximum_rules=1, step_size=0.1)
    evaluator = AnalyticEvaluator()
    designer = Designer(spec)
    finish(designer, evaluator.evaluate)

    (multiple, increment, intersend_ms) = designer.table.action(1)

    points = [best_action((send_ewma, 0, 0, 0)) for send_ewma in _mean_points()]
    expected = [math.fsum(component) / len(points) for component in zip(*points, strict=True)]
    # The tolerance is wide because clipped differences give distant points less weight.
    assert multiple == pytest.approx(expected[0], abs=0.15)
    assert increment == pytest.approx(expected[1], abs=1)
    assert intersend_ms == pytest.approx(expected[2], abs=0.15)


def _mean_points() -> list[float]:
    """Returns send_ewma at the middles of equally probable strata of its distribution, 1000 u^2."""
    strata = 110
    return [1000 * ((n + 0.5) / strata) ** 2 for n in range(strata)]


def test_more_rules_give_a_better_score() -> None:
    one, many = (
        RecordedDesign(
            small_joint_spec(steps=240, maximum_rules=rules, step_size=0.02),
            AnalyticEvaluator().evaluate,
        )
        for rules in (1, 16)
    )
    assert many.designer.table.rule_count >= 16
    assert (
        many.designer.epochs[-1].comparison.after.mean
        > one.designer.epochs[-1].comparison.after.mean
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_best_of_several_short_climbs_is_continued(seed: int) -> None:
    spec = small_joint_spec(starts=4, start_steps=5, steps=12, seed=seed)
    recorded = RecordedDesign(spec, _NOISY)
    climbs = {}
    states = [_state(data) for data in recorded.checkpoints]
    for before, after in pairwise(states):
        if after.start > before.start:
            climbs[before.start] = before.climb
            last = after
    scores = [record.comparison.after.mean for record in recorded.designer.epochs[:4]]

    assert sorted(climbs) == [0, 1, 2, 3]
    assert [climb.steps for climb in climbs.values()] == [5] * 4
    assert len({climb.SerializeToString(deterministic=True) for climb in climbs.values()}) == 4
    assert last.start == 4
    assert last.climb == climbs[max(range(4), key=lambda start: scores[start])]
    assert not last.HasField("best_start")
    assert _state(recorded.checkpoints[-1]).climb.steps == 12


def test_short_climbs_share_only_the_validation_specimens() -> None:
    spec = small_joint_spec(starts=3, start_steps=2, steps=4)
    evaluator = AnalyticEvaluator()
    recorded = RecordedDesign(spec, evaluator.evaluate)
    by_purpose: dict[progress_pb2.StepPurpose, list[set[int]]] = {_CLIMB: [], _VALIDATE: []}
    for purpose, request in zip(recorded.purposes, evaluator.requests, strict=True):
        by_purpose[purpose].append(set(specimen_keys(request)))

    validation = by_purpose[_VALIDATE]
    assert len(validation) == 1 + 3 + 1
    assert all(keys == validation[0] for keys in validation)
    climbing = by_purpose[_CLIMB]
    assert len(set.union(*climbing)) == sum(map(len, climbing))
    assert not set.union(*climbing) & validation[0]


def _validation_score(designer: Designer, request: evaluation_pb2.EvaluationRequest) -> float:
    """Evaluates the published table on the validation specimens."""
    again = evaluation_pb2.EvaluationRequest()
    again.CopyFrom(request)
    again.tables[0].CopyFrom(from_native(designer.table))
    (scores,) = scoring.scores(again, _NOISY(again), small_joint_spec().objective)
    return math.fsum(score for score in scores if score is not None) / len(scores)


@pytest.mark.parametrize("starts", [1, 3])
def test_the_published_table_never_gets_worse(starts: int) -> None:
    """Compares validation scores. The noise makes the climb itself get worse at times."""
    spec = small_joint_spec(
        steps=40, step_size=0.5, steps_per_epoch=3, starts=starts, start_steps=4
    )
    designer = Designer(spec)
    validation = designer.next_request()
    assert validation is not None
    make_steps(designer, _NOISY, 1)
    published = [_validation_score(designer, validation)]
    while (request := designer.next_request()) is not None:
        epochs = len(designer.epochs)
        designer.receive(_NOISY(request))
        published.append(_validation_score(designer, validation))
        accepted = len(designer.epochs) > epochs and designer.epochs[-1].comparison.accepted
        assert accepted == (published[-1] > published[-2])
        assert accepted or published[-1] == published[-2]

    verdicts = [record.comparison.accepted for record in designer.epochs]
    assert True in verdicts
    assert False in verdicts


def test_epochs_count_every_simulation_once() -> None:
    recorded = RecordedDesign(
        small_joint_spec(starts=2, start_steps=3), AnalyticEvaluator().evaluate
    )
    steps = [e.step_finished for e in recorded.events if e.HasField("step_finished")]
    records = recorded.designer.epochs
    assert sum(r.evaluations for r in records) == sum(s.candidates * s.specimens for s in steps)
    assert sum(r.simulated_packets for r in records) == sum(s.simulated_packets for s in steps)
    assert [record.epoch for record in records] == list(range(len(records)))


@pytest.mark.parametrize("patience", [2, 4])
def test_epochs_without_gain_stop_the_search(patience: int) -> None:
    spec = small_joint_spec(
        steps=400, steps_per_epoch=8, maximum_rules=1, stop={"epochs_without_gain": patience}
    )
    recorded = RecordedDesign(spec, _NOISY)
    verdicts = [record.comparison.accepted for record in recorded.designer.epochs]

    assert recorded.designer.finished == progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN
    assert True in verdicts
    assert _plateaus(verdicts, patience) == [len(verdicts)]


def _plateaus(verdicts: list[bool], patience: int) -> list[int]:
    """Returns the numbers of epochs after which the last `patience` epochs brought no gain."""
    return [
        end for end in range(patience, len(verdicts) + 1) if not any(verdicts[end - patience : end])
    ]


def test_short_climbs_do_not_count_as_epochs_without_gain() -> None:
    """At least two consecutive ones of the eight short climbs have no gain."""
    patience = 2
    spec = small_joint_spec(
        starts=8, start_steps=3, steps=60, steps_per_epoch=5, stop={"epochs_without_gain": patience}
    )
    recorded = RecordedDesign(spec, _NOISY)
    starts, climb = recorded.designer.epochs[:8], recorded.designer.epochs[8:]
    verdicts = [record.comparison.accepted for record in climb]

    assert [record.start for record in starts] == list(range(8))
    assert any(
        not earlier.comparison.accepted and not later.comparison.accepted
        for earlier, later in pairwise(starts)
    )
    assert not any(record.HasField("start") for record in climb)
    assert recorded.designer.finished == progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN
    assert _plateaus(verdicts, patience) == [len(verdicts)]


def test_a_stop_within_an_epoch_validates_its_changes() -> None:
    designer = Designer(small_joint_spec(step_size=0.1))
    evaluator = AnalyticEvaluator()
    make_steps(designer, evaluator.evaluate, 5)
    first = designer.table
    designer.stop(progress_pb2.STOP_REASON_CPU_SECONDS)
    closing = designer.next_request()
    assert closing is not None
    assert closing.specimen_columns == evaluator.requests[0].specimen_columns
    assert len(closing.candidates) == 1
    (event,) = finish(designer, evaluator.evaluate)

    comparison = event.design_finished.closing
    assert comparison.accepted
    assert comparison.gain.mean > 0
    assert designer.table == to_native(closing.tables[0]) != first


def test_a_pair_has_opposite_perturbations_and_one_seed() -> None:
    evaluator = AnalyticEvaluator()
    recorded = RecordedDesign(small_joint_spec(steps=6), evaluator.evaluate)
    seeds = []
    for purpose, request in zip(recorded.purposes, evaluator.requests, strict=True):
        if purpose != _CLIMB:
            continue
        up, down = (candidate.perturbation for candidate in request.candidates)
        assert up.scale == -down.scale > 0
        assert not any(move.HasField("seed") or move.HasField("bounds") for move in (up, down))
        assert request.HasField("bounds")
        assert request.recording == evaluation_pb2.RECORDING_USED
        seeds.append(request.seed)
    assert len(set(seeds)) == len(seeds) == 6


def test_a_finished_design_continues_with_a_longer_schedule() -> None:
    evaluator = AnalyticEvaluator()
    designer = Designer(small_joint_spec(steps=12))
    finish(designer, evaluator.evaluate)
    longer = Designer.resume(small_joint_spec(steps=24), designer.checkpoint())

    longer.reconsider()
    assert longer.finished is None
    finish(longer, evaluator.evaluate)

    assert longer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    assert _state(longer.checkpoint()).climb.steps == 24


def test_an_extended_climb_continues_with_short_steps_and_publishes_nothing_worse() -> None:
    """A schedule four times as long has long steps where the shorter one ended. The extended climb
    starts with the short steps, which then grow, and keeps its splits."""

    def spec(steps: int) -> spec_pb2.DesignSpec:
        return small_joint_spec(edition=2, steps=steps, maximum_rules=12, overgrowth=1)

    evaluate = AnalyticEvaluator().evaluate
    designer = Designer(spec(40))
    finish(designer, evaluate)
    schedule = Schedule(spec(40).search)
    shortest = schedule.settings(39).step_size
    climb = _state(designer.checkpoint()).climb
    assert climb.completed_steps == 40
    best = designer.epochs[-1].comparison
    longer = Designer.resume(spec(160), designer.checkpoint())
    longer.reconsider()
    make_steps(longer, evaluate, 1)

    extended = _state(longer.checkpoint()).climb
    moved = max(abs(a - b) for a, b in zip(extended.coordinates, climb.coordinates, strict=True))
    # A coordinate moves with its rule and with each region above it.
    depth = 4
    assert 0 < moved <= shortest * depth < Schedule(spec(160).search).settings(40).step_size
    finish(longer, evaluate)
    later = longer.epochs[len(designer.epochs) :]
    published = best.after if best.accepted else best.before
    assert all(record.comparison.before.mean >= published.mean for record in later)
    assert longer.table.rule_count >= designer.table.rule_count
    assert _state(longer.checkpoint()).climb.completed_steps == 160
