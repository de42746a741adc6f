"""Whole joint searches: what they promise of starts, of what is published, and of their end."""

import math
from itertools import pairwise

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator, best_action
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.walk import Walk, finish, make_steps, specimen_keys
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
    """Splits after steps 4 and 10, but for 8 rules at most; epochs of 6 steps; 18 steps of growing
    and 6 of refining."""
    walk = Walk(small_joint_spec(signals="send_ewma"), AnalyticEvaluator().evaluate)
    wanted = [_VALIDATE]
    for step in range(1, 25):
        wanted.append(_CLIMB)
        if step in (4, 10, 16):
            wanted.append(_SPLIT)
        if step % 6 == 0:
            wanted.append(_VALIDATE)
    assert walk.purposes == wanted
    assert walk.designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    # The rule of senders that have measured nothing, and another that was divided twice.
    assert walk.designer.table.rule_count == 5


def test_divisions_are_tried_where_disagreement_decides() -> None:
    """After each split's record of memories; on four times the specimens, on a table in which
    every rule that was used is divided on both signals."""
    evaluator = AnalyticEvaluator()
    walk = Walk(small_joint_spec(splits="disagreement"), evaluator.evaluate)
    trials = [
        (before, now)
        for (before, now) in pairwise(zip(walk.purposes, evaluator.requests, strict=True))
        if now[0] == progress_pb2.STEP_PURPOSE_TRY_SPLITS
    ]
    assert walk.purposes.count(_SPLIT) == len(trials) == 3
    for (purpose, recorded), (_, request) in trials:
        assert purpose == _SPLIT
        assert specimen_count(request) == 4 * 16
        rules = to_native(recorded.tables[0]).rule_count
        assert rules < to_native(request.tables[0]).rule_count <= 4 * rules


@pytest.mark.parametrize("seed", range(1, 6))
def test_disagreement_divides_on_the_signal_that_matters(seed: int) -> None:
    """What is best depends on send_ewma alone."""
    spec = small_joint_spec(steps=12, maximum_rules=3, splits="disagreement", seed=seed)
    spec.search.specimens = 64
    walk = Walk(spec, AnalyticEvaluator().evaluate)
    (split,) = [event.rule_split for event in walk.events if event.HasField("rule_split")]
    assert [threshold.signal for threshold in split.thresholds] == [rule_table_pb2.SIGNAL_SEND_EWMA]
    assert split.rules == walk.designer.table.rule_count == 3


@pytest.mark.parametrize("splits", ["orthants", "disagreement"])
@pytest.mark.parametrize("starts", [1, 3])
def test_the_share_done_grows_from_nothing_to_all(splits: str, starts: int) -> None:
    spec = small_joint_spec(splits=splits, starts=starts, start_steps=5)
    walk = Walk(spec, AnalyticEvaluator().evaluate)
    shares = [Designer.resume(spec, data).share_done for data in walk.checkpoints]

    assert shares[0] == 0
    assert shares[-1] == 1
    assert all(
        earlier is not None and later is not None and earlier <= later
        for earlier, later in pairwise(shares)
    )


def test_a_climb_finds_what_is_best() -> None:
    """Two rules: one for the point where nothing is measured, and another, whose best action is the
    mean, over all other memory points, of theirs."""
    spec = small_joint_spec(steps=150, steps_per_epoch=50, maximum_rules=1, step_size=0.1)
    evaluator = AnalyticEvaluator()
    designer = Designer(spec)
    finish(designer, evaluator.evaluate)

    (multiple, increment, intersend_ms) = designer.table.action(1)

    points = [best_action((send_ewma, 0, 0, 0)) for send_ewma in _mean_points()]
    wanted = [math.fsum(component) / len(points) for component in zip(*points, strict=True)]
    # Differences beyond five times the median are limited: the few points far away count less.
    assert multiple == pytest.approx(wanted[0], abs=0.15)
    assert increment == pytest.approx(wanted[1], abs=1)
    assert intersend_ms == pytest.approx(wanted[2], abs=0.15)


def _mean_points() -> list[float]:
    """Send_ewma of a specimen's points but 0, at the middle of equal strata: 11 of 1000 u^2."""
    strata = 110
    return [1000 * ((n + 0.5) / strata) ** 2 for n in range(strata)]


def test_splitting_pays() -> None:
    one, many = (
        Walk(
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
def test_several_starts_keep_the_best(seed: int) -> None:
    spec = small_joint_spec(starts=4, start_steps=5, steps=12, seed=seed)
    walk = Walk(spec, _NOISY)
    climbs = {}
    states = [_state(data) for data in walk.checkpoints]
    for before, after in pairwise(states):
        if after.start > before.start:
            climbs[before.start] = before.climb
            last = after
    scores = [record.comparison.after.mean for record in walk.designer.epochs[:4]]

    assert sorted(climbs) == [0, 1, 2, 3]
    assert [climb.steps for climb in climbs.values()] == [5] * 4
    assert len({climb.SerializeToString(deterministic=True) for climb in climbs.values()}) == 4
    assert last.start == 4
    assert last.climb == climbs[max(range(4), key=lambda start: scores[start])]
    assert not last.HasField("best_start")
    assert _state(walk.checkpoints[-1]).climb.steps == 12


def test_starts_draw_nothing_in_common_but_the_validation() -> None:
    spec = small_joint_spec(starts=3, start_steps=2, steps=4)
    evaluator = AnalyticEvaluator()
    walk = Walk(spec, evaluator.evaluate)
    by_purpose: dict[progress_pb2.StepPurpose, list[set[int]]] = {_CLIMB: [], _VALIDATE: []}
    for purpose, request in zip(walk.purposes, evaluator.requests, strict=True):
        by_purpose[purpose].append(set(specimen_keys(request)))

    validation = by_purpose[_VALIDATE]
    assert len(validation) == 1 + 3 + 1
    assert all(keys == validation[0] for keys in validation)
    climbing = by_purpose[_CLIMB]
    assert len(set.union(*climbing)) == sum(map(len, climbing))
    assert not set.union(*climbing) & validation[0]


def _validation_score(designer: Designer, request: evaluation_pb2.EvaluationRequest) -> float:
    """The published table on the validation specimens, as if asked for anew."""
    again = evaluation_pb2.EvaluationRequest()
    again.CopyFrom(request)
    again.tables[0].CopyFrom(from_native(designer.table))
    (scores,) = scoring.scores(again, _NOISY(again), small_joint_spec().objective)
    return math.fsum(score for score in scores if score is not None) / len(scores)


@pytest.mark.parametrize("starts", [1, 3])
def test_what_is_published_never_gets_worse(starts: int) -> None:
    """On the validation specimens; under noise that has the climb itself fall back."""
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


def test_history_counts_every_simulation_once() -> None:
    walk = Walk(small_joint_spec(starts=2, start_steps=3), AnalyticEvaluator().evaluate)
    steps = [e.step_finished for e in walk.events if e.HasField("step_finished")]
    records = walk.designer.epochs
    assert sum(r.evaluations for r in records) == sum(s.candidates * s.specimens for s in steps)
    assert sum(r.simulated_packets for r in records) == sum(s.simulated_packets for s in steps)
    assert [record.epoch for record in records] == list(range(len(records)))


@pytest.mark.parametrize("patience", [2, 4])
def test_a_plateau_stops_it(patience: int) -> None:
    spec = small_joint_spec(
        steps=400, steps_per_epoch=8, maximum_rules=1, stop={"epochs_without_gain": patience}
    )
    walk = Walk(spec, _NOISY)
    verdicts = [record.comparison.accepted for record in walk.designer.epochs]

    assert walk.designer.finished == progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN
    assert True in verdicts
    assert _plateaus(verdicts, patience) == [len(verdicts)]


def _plateaus(verdicts: list[bool], patience: int) -> list[int]:
    """After how many epochs there had just been `patience` in a row without a gain."""
    return [
        end for end in range(patience, len(verdicts) + 1) if not any(verdicts[end - patience : end])
    ]


def test_starts_that_lose_are_no_epochs_without_gain() -> None:
    """Eight starts, of which more lose in a row than epochs may pass without a gain."""
    patience = 2
    spec = small_joint_spec(
        starts=8, start_steps=3, steps=60, steps_per_epoch=5, stop={"epochs_without_gain": patience}
    )
    walk = Walk(spec, _NOISY)
    starts, climb = walk.designer.epochs[:8], walk.designer.epochs[8:]
    verdicts = [record.comparison.accepted for record in climb]

    assert [record.start for record in starts] == list(range(8))
    assert any(
        not earlier.comparison.accepted and not later.comparison.accepted
        for earlier, later in pairwise(starts)
    )
    assert not any(record.HasField("start") for record in climb)
    assert walk.designer.finished == progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN
    assert _plateaus(verdicts, patience) == [len(verdicts)]


def test_stopped_in_an_epoch_what_it_brought_is_validated() -> None:
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


def test_a_pair_is_perturbed_in_opposite_directions_of_one_name() -> None:
    evaluator = AnalyticEvaluator()
    walk = Walk(small_joint_spec(steps=6), evaluator.evaluate)
    seeds = []
    for purpose, request in zip(walk.purposes, evaluator.requests, strict=True):
        if purpose != _CLIMB:
            continue
        up, down = (candidate.perturbation for candidate in request.candidates)
        assert up.scale == -down.scale > 0
        assert not any(move.HasField("seed") or move.HasField("bounds") for move in (up, down))
        assert request.HasField("bounds")
        assert request.recording == evaluation_pb2.RECORDING_USED
        seeds.append(request.seed)
    assert len(set(seeds)) == len(seeds) == 6


def test_a_finished_design_goes_on_with_a_longer_schedule() -> None:
    evaluator = AnalyticEvaluator()
    designer = Designer(small_joint_spec(steps=12))
    finish(designer, evaluator.evaluate)
    longer = Designer.resume(small_joint_spec(steps=24), designer.checkpoint())

    longer.reconsider()
    assert longer.finished is None
    finish(longer, evaluator.evaluate)

    assert longer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    assert _state(longer.checkpoint()).climb.steps == 24


def test_it_does_not_jump_back_and_publishes_nothing_worse() -> None:
    """Four times as long a schedule takes long steps where the shorter one ended: a design that
    goes on comes to them step by step, and with its divisions."""

    def spec(steps: int) -> spec_pb2.DesignSpec:
        return small_joint_spec(edition=2, steps=steps, maximum_rules=12, overgrowth=1)

    evaluate = AnalyticEvaluator().evaluate
    designer = Designer(spec(40))
    finish(designer, evaluate)
    schedule = Schedule(spec(40).search)
    shortest = schedule.settings(39).step_size
    climb = _state(designer.checkpoint()).climb
    assert climb.completed == 40
    best = designer.epochs[-1].comparison
    longer = Designer.resume(spec(160), designer.checkpoint())
    longer.reconsider()
    make_steps(longer, evaluate, 1)

    begun = _state(longer.checkpoint()).climb
    moved = max(abs(a - b) for a, b in zip(begun.coordinates, climb.coordinates, strict=True))
    # A coordinate moves by itself and with each region that it lies in.
    depth = 4
    assert 0 < moved <= shortest * depth < Schedule(spec(160).search).settings(40).step_size
    finish(longer, evaluate)
    later = longer.epochs[len(designer.epochs) :]
    published = best.after if best.accepted else best.before
    assert all(record.comparison.before.mean >= published.mean for record in later)
    assert longer.table.rule_count >= designer.table.rule_count
    assert _state(longer.checkpoint()).climb.completed == 160
