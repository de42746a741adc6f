"""Tests schedules whose steps have more specimens than the settings were tuned for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.recorded_design import RecordedDesign
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.designer.joint.schedule import Schedule, effective_settings, specimen_factor
from remy_proto.v1 import progress_pb2, spec_pb2
from remy_simulator.columns import specimen_count


def _search(specimens: int, *, steps: int = 1200, tuned: int | None = 16) -> spec_pb2.Search:
    joint = spec_pb2.JointSearch(
        steps=steps,
        start_steps=200,
        maximum_rules=72,
        first_split=64,
        steps_per_split=32,
        perturbation=0.15,
        step_size=0.015,
        fine_share=0.25,
        steps_per_epoch=96,
        tuned_for_specimens=tuned,
    )
    return spec_pb2.Search(specimens=specimens, joint=joint)


def test_four_times_the_specimens_make_a_quarter_of_the_steps() -> None:
    settings = effective_settings(_search(64))
    lengths = (settings.steps, settings.start_steps, settings.first_split)
    assert lengths == (300, 50, 16)
    assert (settings.steps_per_split, settings.steps_per_epoch) == (8, 24)
    assert settings.step_size == 0.06
    unchanged = (settings.maximum_rules, settings.perturbation, settings.fine_share)
    assert unchanged == (72, 0.15, 0.25)


@pytest.mark.parametrize("search", [_search(64, tuned=None), _search(64, tuned=64)])
def test_settings_tuned_for_the_specimens_are_unchanged(search: spec_pb2.Search) -> None:
    assert specimen_factor(search) == 1
    given = _search(64).joint
    given.ClearField("tuned_for_specimens")
    assert effective_settings(search) == given
    assert Schedule(search).settings(0).average_decay == 0.97


@given(st.integers(16, 4096), st.integers(1, 5000))
def test_numbers_of_steps_are_at_least_one(specimens: int, steps: int) -> None:
    settings = effective_settings(_search(specimens, steps=steps))
    assert min(settings.steps, settings.first_split, settings.steps_per_split) >= 1
    assert min(settings.start_steps, settings.steps_per_epoch) >= 1


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_total_simulations_do_not_depend_on_specimens_per_step(factor: int) -> None:
    schedule = Schedule(_search(16 * factor, steps=1280))
    assert schedule.steps == 1280 // factor
    assert schedule.work(schedule.steps) == Schedule(_search(16, steps=1280)).work(1280)
    assert schedule.settings(0).specimens == 16 * factor
    # Splits are due at the same share of the schedule, and averages extend over the same share.
    assert schedule.split_is_due(64 // factor, rules=1)
    assert schedule.settings(0).average_decay == pytest.approx(0.97**factor)
    assert schedule.settings(schedule.steps - 1).average_decay == pytest.approx(0.99**factor)


def test_a_design_with_twice_the_specimens_makes_half_the_steps() -> None:
    """The settings have 24 steps (6 of them refining), 6 steps an epoch, and a split after 4."""
    spec = small_joint_spec(tuned_for_specimens=16, maximum_rules=5)
    spec.search.specimens = 32
    evaluator = AnalyticEvaluator()
    recorded = RecordedDesign(spec, evaluator.evaluate)
    climbing = [
        request
        for purpose, request in zip(recorded.purposes, evaluator.requests, strict=True)
        if purpose == progress_pb2.STEP_PURPOSE_CLIMB
    ]
    assert [specimen_count(request) for request in climbing] == [32] * 9 + [64] * 3
    assert [specimen_count(request) for request in evaluator.requests[1:5]] == [32, 32, 32, 32]
    validate, split = progress_pb2.STEP_PURPOSE_VALIDATE, progress_pb2.STEP_PURPOSE_SPLIT
    climb = progress_pb2.STEP_PURPOSE_CLIMB
    assert recorded.purposes[:6] == [validate, climb, climb, split, climb, validate]
    assert recorded.purposes[6:] == [climb, climb, climb, validate] * 3
    assert recorded.designer.share_done == 1
