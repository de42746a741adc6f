"""Tests that a trial on the shared table is equivalent to a split on its signal alone."""

import random

from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.small_pattern_spec import small_pattern_spec
from remy_farm.designer import actions as changes
from remy_farm.designer.actions import ActionSpace
from remy_farm.designer.pattern.divisions import (
    PatternTable,
    TrialSplit,
    on_trial,
    trial_splits,
)
from remy_farm.designer.splitting import Split
from remy_simulator import RuleTable
from remy_simulator.messages import Action

_SPACE = ActionSpace(small_pattern_spec().search.pattern)
_AXES = [0, 1, 2]
_FIRST_STEP = 0.4


def _table(draws: random.Random, splits: int) -> RuleTable:
    table = RuleTable(_AXES, [([], (0.9, 3.0, 1.0))])
    for _ in range(splits):
        rule = draws.randrange(table.rule_count)
        table = table.split(rule, [_threshold(draws, table, rule, draws.choice(_AXES))])
    return table.with_actions(
        [
            (draws.random(), float(draws.randrange(257)), draws.uniform(0.25, 40))
            for _ in range(table.rule_count)
        ]
    )


def _threshold(draws: random.Random, table: RuleTable, rule: int, axis: int) -> tuple[int, float]:
    lower, upper = table.region(rule)
    return axis, lower[axis] + (upper[axis] - lower[axis]) * draws.uniform(0.2, 0.8)


@given(st.integers(0, 10**6), st.integers(0, 5))
def test_a_trial_is_equivalent_to_its_split(seed: int, table_splits: int) -> None:
    draws = random.Random(seed)
    table = _table(draws, table_splits)
    rules = draws.sample(range(table.rule_count), min(3, table.rule_count))
    splits = [
        split
        for rule in rules
        for split in trial_splits(
            _SPACE, table, rule, [_threshold(draws, table, rule, axis) for axis in _AXES]
        )
    ]

    trial, candidates = on_trial(table, splits)

    assert len(candidates) == len(splits) > 0
    for split, candidate in zip(splits, candidates, strict=True):
        changed = changes.apply(trial, candidate.actions)
        current = PatternTable(table, (0.1,) * table.rule_count)
        divided = split.applied(current, _FIRST_STEP)
        assert divided.table.rule_count == len(divided.steps) == table.rule_count + 1
        for memory in _memories(draws, split):
            assert trial.action(trial.find(memory)) == table.action(table.find(memory))
            expected = divided.table.action(divided.table.find(memory))
            assert changed.action(changed.find(memory)) == expected


def _memories(draws: random.Random, split: TrialSplit) -> list[list[float]]:
    """Returns six random memory points, and one on the threshold."""
    points = [[draws.uniform(0, 163840) for _ in range(4)] for _ in range(6)]
    on_threshold = list(points[0])
    for axis, value in split.split.thresholds:
        on_threshold[axis] = value
    return [*points, on_threshold]


def test_every_trial_has_one_with_the_two_actions_exchanged() -> None:
    table = RuleTable(_AXES, [([], (0.5, 100.0, 4.0))])
    splits = trial_splits(_SPACE, table, 0, [(2, 1.5)])
    pairs = [(split.below, split.above) for split in splits]
    assert all(below != above for below, above in pairs)
    assert sorted(pairs) == sorted((above, below) for below, above in pairs)


def test_a_split_resets_the_step_of_its_parts_only() -> None:
    table = RuleTable(_AXES, [([], (0.5, 100.0, 4.0))]).split(0, [(0, 5.0)]).split(1, [(1, 7.0)])
    split = TrialSplit(
        Split(1, [(2, 1.5)]), below=Action(0.5, 90.0, 4.0), above=Action(0.5, 110.0, 4.0)
    )
    divided = split.applied(PatternTable(table, (0.1, 0.2, 0.3)), _FIRST_STEP)
    assert divided.steps == (0.1, _FIRST_STEP, _FIRST_STEP, 0.3)
    actions = [divided.table.action(rule) for rule in range(4)]
    assert actions == [(0.5, 100.0, 4.0), split.below, split.above, (0.5, 100.0, 4.0)]
