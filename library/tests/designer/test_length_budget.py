"""Tests the number of steps that a budget allows."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.driver.joint_spec import joint_spec
from remy_farm.designer import Designer
from remy_farm.designer.budgets import expected_cost, steps_within
from remy_farm.designer.search import with_steps
from remy_farm.evaluation.local import LocalEvaluator
from remy_proto.v1 import progress_pb2, spec_pb2


def search(**joint: float) -> spec_pb2.Search:
    """Returns a search without splits and refining steps, unless `joint` says otherwise.

    A step has 16 pairs. An epoch has 100 steps, and its validation costs as much as one step.
    """
    changed = joint_spec().search
    changed.joint.steps_per_epoch, changed.joint.validation_specimens = 100, 32
    changed.joint.maximum_rules, changed.joint.fine_share = 1, 0
    for name, value in joint.items():
        setattr(changed.joint, name, value)
    return changed


def test_steps_and_validations_fill_the_budget() -> None:
    # One validation at the start, 494 steps, and 5 validations.
    assert steps_within(search(), 1000, [2.0]) == 494
    assert expected_cost(search(), 494, [2.0]) == 1000


def test_a_refining_step_costs_two_steps() -> None:
    assert expected_cost(search(fine_share=0.25), 100, [1.0]) == 1 + 75 + 2 * 25 + 1


def test_cost_includes_all_short_climbs() -> None:
    # Each of 4 climbs makes 10 steps and a validation.
    assert expected_cost(search(starts=4, start_steps=10), 50, [1.0]) == 1 + 4 * 11 + 40 + 1
    assert expected_cost(search(starts=4, start_steps=60), 50, [1.0]) == 1 + 4 * 51


def test_steps_cost_more_as_the_table_grows() -> None:
    growing = search(maximum_rules=50, first_split=10, steps_per_split=5)
    # 10 steps before the first split, 5 before the second, 25 after it.
    assert expected_cost(growing, 40, [1.0, 2.0, 4.0]) == 1 + 10 + 5 * 2 + 25 * 4 + 4


def test_cost_uses_the_editions_default_rule_limit() -> None:
    growing, limited = search(), search(maximum_rules=64)
    growing.joint.ClearField("maximum_rules")
    costs = [1.0 + splits for splits in range(100)]
    third = expected_cost(growing, 9000, costs, edition=3)
    assert third == expected_cost(limited, 9000, costs)
    assert third < expected_cost(growing, 9000, costs, edition=2)


def test_a_trial_of_splits_costs_four_steps() -> None:
    growing = search(
        maximum_rules=3,
        first_split=10,
        steps_per_split=5,
        splits=spec_pb2.JOINT_SPLITS_DISAGREEMENT,
    )
    # The second split reaches the rule limit.
    cost = expected_cost(growing, 40, [1.0, 2.0, 4.0])
    assert cost == 1 + 10 + (4 + 5) * 2 + (4 + 25) * 4 + 4


def test_a_design_with_more_specimens_a_step_has_fewer_steps() -> None:
    plan = search(steps_per_epoch=50, tuned_for_specimens=16)
    plan.specimens, plan.joint.validation_specimens = 64, 128
    # One validation at the start; 100 steps in place of 400; a validation after every 12 steps
    # (50 / 4, rounded) and at the end.
    assert expected_cost(plan, 400, [3.0]) == 3 * (1 + 100 + 9)
    assert 400 <= steps_within(plan, 330, [3.0]) < 404


def test_the_smallest_budget_allows_one_step() -> None:
    assert steps_within(search(), 1e-9, [1.0]) == 1


@pytest.mark.parametrize("cost", [0.0, -1.0])
def test_costs_that_are_not_positive_are_refused(cost: float) -> None:
    with pytest.raises(ValueError, match="costs must be positive"):
        steps_within(search(), 1, [1.0, cost])


@given(
    budget=st.floats(0.1, 200),
    step_costs=st.lists(st.floats(0.5, 5), min_size=1, max_size=12).map(sorted),
    fine_share=st.floats(0, 1),
    starts=st.integers(1, 8),
    start_steps=st.integers(1, 200),
)
def test_one_more_step_would_exceed_the_budget(
    budget: float,
    step_costs: list[float],
    fine_share: float,
    starts: int,
    start_steps: int,
) -> None:
    plan = search(fine_share=fine_share, starts=starts, start_steps=start_steps, maximum_rules=1000)
    steps = steps_within(plan, budget, step_costs)
    if steps > 1:
        assert expected_cost(plan, steps, step_costs) <= budget
    assert expected_cost(plan, steps + 1, step_costs) > budget


def test_expected_cost_is_that_of_a_real_design() -> None:
    """Counts the simulations of a whole design, without those of splits."""
    spec = with_steps(joint_spec(), 23)
    spec.search.joint.starts, spec.search.joint.start_steps = 3, 4
    designer = Designer(spec)
    simulations = 0
    with closing(LocalEvaluator(2)) as evaluator:
        while (request := designer.next_request()) is not None:
            step = designer.receive(evaluator.evaluate(request))[0].step_finished
            if step.purpose != progress_pb2.STEP_PURPOSE_SPLIT:
                simulations += step.candidates * step.specimens
    pairs = expected_cost(spec.search, 23, [1.0])
    assert pairs * 2 * spec.search.specimens == pytest.approx(simulations)
