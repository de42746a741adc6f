"""Tests the schedule of a climb: settings, splits, merges and epochs by step."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.designer.joint.schedule import Schedule
from remy_proto.v1 import spec_pb2


def _search(**joint: float) -> spec_pb2.Search:
    options: dict[str, float] = {
        "steps": 1000,
        "maximum_rules": 72,
        "first_split": 60,
        "steps_per_split": 35,
        "perturbation": 0.15,
        "step_size": 0.03,
        "fine_share": 0.2,
        "steps_per_epoch": 100,
    }
    return spec_pb2.Search(specimens=16, joint={**options, **joint})


_SEARCHES = st.builds(
    _search,
    steps=st.integers(1, 3000),
    maximum_rules=st.integers(1, 100),
    first_split=st.integers(1, 3000),
    steps_per_split=st.integers(1, 300),
    perturbation=st.floats(1e-3, 10),
    step_size=st.floats(1e-3, 10),
    fine_share=st.floats(0, 1),
    steps_per_epoch=st.integers(1, 500),
)


@pytest.mark.parametrize(
    ("step", "perturbation", "step_size"),
    [
        (0, 0.15, 0.03),
        (280, 0.115, 0.03),
        (480, 0.09, 0.03),
        (560, 0.08, 0.03 * (1 - 0.85 / 4)),
        (640, 0.08, 0.03 * (1 - 0.85 / 2)),
        (800, 0.08, 0.015),
        (900, 0.065, 0.015 * 0.65),
        (1000, 0.05, 0.015 * 0.3),
    ],
)
def test_perturbation_and_step_size_shrink(
    step: int, perturbation: float, step_size: float
) -> None:
    """The schedule has 800 growing and 200 refining steps."""
    settings = Schedule(_search()).settings(step)
    assert settings.perturbation == pytest.approx(perturbation)
    assert settings.step_size == pytest.approx(step_size)


def test_the_growing_phase_ends_with_15_percent_of_the_step_size() -> None:
    settings = Schedule(_search()).settings(799)
    assert settings.step_size == pytest.approx(0.0045, rel=0.02)


def test_the_refining_phase_has_twice_the_specimens_and_a_longer_average() -> None:
    schedule = Schedule(_search())
    assert [schedule.settings(step).specimens for step in (0, 799, 800, 999)] == [16, 16, 32, 32]
    assert schedule.settings(799).average_decay == 0.97
    assert schedule.settings(800).average_decay == 0.99


@pytest.mark.parametrize(("share", "steps"), [(1.0, 2000), (0.4, 800), (0.05, 100), (0.001, 100)])
def test_the_average_extends_over_a_share_of_the_refining_steps(share: float, steps: int) -> None:
    """There are 2,000 refining steps. The average extends over at least 100 steps, its default."""
    schedule = Schedule(_search(steps=10_000, average_share=share))
    assert schedule.settings(7999).average_decay == 0.97
    assert 1 / (1 - schedule.settings(8000).average_decay) == pytest.approx(steps)
    # A step that replaces ten steps decays as much as they do.
    assert schedule.settings(8000).replacing(10).average_decay == pytest.approx(
        (1 - 1 / steps) ** 10
    )


def test_splits_are_due_at_equal_distances_in_the_growing_phase() -> None:
    schedule = Schedule(_search())
    due = [step for step in range(1, 1001) if schedule.split_is_due(step, 1)]
    assert due == list(range(60, 800, 35))


def test_no_split_is_due_at_the_rule_limit() -> None:
    schedule = Schedule(_search())
    assert schedule.split_is_due(60, 71)
    assert not schedule.split_is_due(60, 72)


def test_epochs_end_at_equal_distances_and_after_the_last_step() -> None:
    schedule = Schedule(_search(steps=250))
    assert [step for step in range(1, 251) if schedule.epoch_is_due(step)] == [100, 200, 250]


def test_an_extended_schedule_starts_with_the_last_settings_of_the_shorter_one() -> None:
    last = Schedule(_search()).settings(999)
    longer = Schedule(_search(steps=2000))
    walk = [longer.settings(step, completed=1000) for step in range(1000, 2000)]
    assert walk[0].step_size == pytest.approx(last.step_size, rel=0.02)
    assert walk[0].perturbation == pytest.approx(last.perturbation, rel=0.02)
    # After 15 % of the added steps the settings are those of the whole schedule.
    assert walk[150:] == [longer.settings(step) for step in range(1150, 2000)]
    for settings, planned in zip(walk, map(longer.settings, range(1000, 2000)), strict=True):
        assert last.step_size * 0.99 <= settings.step_size <= planned.step_size
        assert last.perturbation * 0.99 <= settings.perturbation <= planned.perturbation


def test_with_overgrowth_a_table_outgrows_its_limit_and_is_merged_back() -> None:
    schedule = Schedule(_search(steps=1500, maximum_rules=16, overgrowth=3))
    assert schedule.peak_rules == 48
    assert schedule.max_rules_at(schedule.merges[0] - 1) == 48
    sizes = [48]
    for step in schedule.merges:
        assert schedule.merge_is_due(step, sizes[-1])
        sizes.append(schedule.rules_after_merge(step, sizes[-1]))
    # Each merge removes about the same number of rules.
    assert sizes[-1] == 16
    assert {a - b for a, b in pairwise(sizes)} <= {3, 4}
    assert schedule.rules_after_merge(schedule.merges[-1] + 1, 20) == 16
    # Merges take place in the growing phase, while steps are still long.
    assert 480 < schedule.merges[0] < schedule.merges[-1] < 1000
    assert schedule.merge_is_due(schedule.merges[-1], 17)
    assert not schedule.merge_is_due(schedule.merges[-1], 16)
    assert not schedule.split_is_due(schedule.merges[-1], 16)
    # A table above the limit is not validated, so no epoch ends.
    assert schedule.epoch_is_due(300, 16)
    assert not schedule.epoch_is_due(300, 17)


@pytest.mark.parametrize(
    ("steps", "rules", "overgrowth", "largest"),
    [
        (1500, 16, 0, 16),
        (1500, 16, 1, 16),
        (1500, 16, 2, 32),
        (1200, 32, 3, 72),
        (1200, 100, 3, 100),
    ],
)
def test_overgrowth_is_limited_by_the_length_of_the_climb(
    steps: int, rules: int, overgrowth: float, largest: int
) -> None:
    joint = {"steps": steps, "maximum_rules": rules, "overgrowth": overgrowth}
    assert Schedule(_search(**joint)).peak_rules == largest


def _without_a_limit(**joint: float) -> spec_pb2.Search:
    search = _search(**joint)
    search.joint.ClearField("maximum_rules")
    return search


def test_without_a_rule_limit_no_rules_are_merged() -> None:
    assert Schedule(_without_a_limit(overgrowth=3)).merges == []


@pytest.mark.parametrize(
    ("steps", "edition", "rules"),
    [(438, 2, 46), (438, 3, 46), (1200, 2, 72), (1200, 3, 64), (9000, 2, 178), (9000, 3, 64)],
)
@pytest.mark.parametrize("overgrowth", [1, 3])
def test_default_rule_limit_depends_on_steps_and_edition(
    steps: int, edition: int, rules: int, overgrowth: float
) -> None:
    search = _without_a_limit(steps=steps, overgrowth=overgrowth)
    schedule = Schedule(search, edition)
    assert (schedule.peak_rules, schedule.search.maximum_rules) == (rules, rules)
    search.maximum_rules = 100
    assert Schedule(search, edition).search.maximum_rules == 100


@given(_SEARCHES)
def test_settings_shrink_and_stay_within_their_limits(search: spec_pb2.Search) -> None:
    joint = search.joint
    schedule = Schedule(search)
    steps = sorted({0, joint.steps // 3, joint.steps // 2, joint.steps * 4 // 5, joint.steps - 1})
    walk = [schedule.settings(step) for step in steps]
    for settings in walk:
        assert joint.perturbation / 3 * (1 - 1e-9) <= settings.perturbation <= joint.perturbation
        assert joint.step_size * 0.15 * (1 - 1e-9) <= settings.step_size <= joint.step_size
        assert settings.specimens in (search.specimens, 2 * search.specimens)
    for earlier, later in pairwise(walk):
        assert later.perturbation <= earlier.perturbation
        assert later.specimens >= earlier.specimens
        assert later.average_decay >= earlier.average_decay


@given(_SEARCHES)
def test_no_split_is_due_in_the_refining_phase(search: spec_pb2.Search) -> None:
    schedule = Schedule(search)
    for step in range(1, search.joint.steps + 1):
        if schedule.split_is_due(step, 1):
            assert step >= search.joint.first_split
            assert schedule.settings(step).specimens == search.specimens
            assert not schedule.split_is_due(step, search.joint.maximum_rules)


@given(_SEARCHES)
def test_the_last_step_ends_an_epoch_and_no_epoch_is_too_long(
    search: spec_pb2.Search,
) -> None:
    joint = search.joint
    schedule = Schedule(search)
    due = [step for step in range(1, joint.steps + 1) if schedule.epoch_is_due(step)]
    assert due[-1] == joint.steps
    lengths = [later - earlier for earlier, later in pairwise([0, *due])]
    assert max(lengths) <= joint.steps_per_epoch
    assert set(lengths[:-1]) <= {joint.steps_per_epoch}


@given(
    _SEARCHES,
    st.sampled_from([spec_pb2.JOINT_SPLITS_ORTHANTS, spec_pb2.JOINT_SPLITS_DISAGREEMENT]),
)
def test_work_counts_the_pairs_of_steps_and_trials(
    search: spec_pb2.Search, splits: spec_pb2.JointSplits
) -> None:
    search.joint.splits = splits
    search.joint.maximum_rules = 100
    schedule = Schedule(search)
    pairs = 0
    for step in range(search.joint.steps):
        pairs += schedule.settings(step).specimens
        if schedule.split_is_due(step + 1, rules=1):
            pairs += schedule.trial_specimens
        assert schedule.work(step + 1) == pairs
    assert bool(schedule.trial_specimens) == (splits == spec_pb2.JOINT_SPLITS_DISAGREEMENT)
