"""Tests the choice of splits by the disagreement between their two sides."""

import math
import statistics
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import remy_simulator
from library.tests.designer.joint.antithetic import (
    half_differences,
    pair_outcome,
    pair_request,
)
from remy_farm.designer.actions import Coordinates
from remy_farm.designer.joint.divisions import (
    Disagreement,
    Trials,
    choose_splits,
    disagreements,
)
from remy_farm.designer.joint.gradient import pair_samples
from remy_farm.designer.splitting import Split, first_parts

_SIGNALS = 3
_SPECIMENS = 64
_NEW_RULES = (1 << _SIGNALS) - 1
# Rules 1 and 3 of a table of five are on trial on all three signals.
_TRIALS: Trials = tuple(
    Split(rule, [(axis, 10.0 * rule + axis) for axis in range(_SIGNALS)]) for rule in (1, 3)
)
_RULES = 5 + 2 * _NEW_RULES

Score = Callable[[Coordinates], float]


def _found(score: Score, noise: float = 0.3) -> list[Disagreement]:
    """Returns the disagreements that a step of antithetic pairs measures for a score.

    `score` is a function of the coordinates of all parts.
    """
    request = pair_request(7, 0.1, range(_SPECIMENS))
    uses = [[1] * _RULES] * _SPECIMENS
    exact = half_differences(request, np.zeros((_RULES, 3)), score)
    differences = np.array(
        [
            difference + noise * 0.1 * remy_simulator.normal(99, number)
            for number, difference in enumerate(exact)
        ]
    )
    samples = pair_samples(request, pair_outcome(uses, uses), differences, rules=_RULES)
    return disagreements(_TRIALS, samples)


def _disagreeing(rule: int, threshold: int, coordinate: int = 0) -> Score:
    """Returns a score that rises with a coordinate above a threshold and falls below it."""
    trial = [trial.rule for trial in _TRIALS].index(rule)
    first = first_parts(_TRIALS)[trial]

    def score(at: Coordinates) -> float:
        return math.fsum(
            at[first + part][coordinate] * (1 if part >> threshold & 1 else -1)
            for part in range(1 << _SIGNALS)
        )

    return score


def _chosen(found: list[Disagreement], *, new_rules: int = _NEW_RULES, room: int = 67) -> Trials:
    return tuple(choose_splits(_TRIALS, found, new_rules=new_rules, room=room))


@pytest.mark.parametrize("rule", [1, 3])
@pytest.mark.parametrize("threshold", range(_SIGNALS))
@pytest.mark.parametrize("coordinate", range(3))
def test_a_disagreement_on_one_signal_leads_to_a_split_on_it(
    rule: int, threshold: int, coordinate: int
) -> None:
    found = _found(_disagreeing(rule, threshold, coordinate))
    best = max(found, key=lambda one: one.gain)
    assert (best.rule, best.threshold) == (rule, threshold)
    thresholds = dict(zip([1, 3], [trial.thresholds for trial in _TRIALS], strict=True))[rule]
    assert _chosen(found) == (Split(rule, [thresholds[threshold]]),)


def test_a_rule_may_be_split_on_several_signals_at_once() -> None:
    one, other = _disagreeing(3, 0), _disagreeing(3, 2, coordinate=1)
    chosen = _chosen(_found(lambda at: one(at) + other(at)))
    assert chosen == (Split(3, [_TRIALS[1].thresholds[0], _TRIALS[1].thresholds[2]]),)


def test_several_rules_may_be_split_at_once() -> None:
    one, other = _disagreeing(1, 1), _disagreeing(3, 2)
    chosen = _chosen(_found(lambda at: one(at) + other(at)))
    assert chosen == (
        Split(1, [_TRIALS[0].thresholds[1]]),
        Split(3, [_TRIALS[1].thresholds[2]]),
    )


def test_without_disagreement_there_is_one_split() -> None:
    """All parts prefer the same direction. The table grows all the same, by one threshold."""
    found = _found(lambda at: math.fsum(row[0] for row in at))
    (split,) = _chosen(found)
    assert len(split.thresholds) == 1


@given(st.data())
def test_disagreements_are_those_of_plain_loops(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 6))
    numbers = st.lists(st.integers(-10, 10), min_size=3 * _RULES, max_size=3 * _RULES)
    samples = [np.array(data.draw(numbers), float).reshape(_RULES, 3) for _ in range(count)]
    found = iter(disagreements(_TRIALS, samples))
    for trial, first in zip(_TRIALS, first_parts(_TRIALS), strict=True):
        for threshold in range(_SIGNALS):
            gain = evidence = 0.0
            for coordinate in range(3):
                slopes = [
                    sum(
                        sample[first + part][coordinate] * (1 if part >> threshold & 1 else -1)
                        for part in range(1 << _SIGNALS)
                    )
                    for sample in samples
                ]
                mean = statistics.fmean(slopes)
                variance = statistics.variance(slopes) / count
                gain += max(mean**2 - variance, 0)
                evidence += mean**2 / variance if variance > 0 else 0
            one = next(found)
            assert (one.rule, one.threshold) == (trial.rule, threshold)
            assert one.gain == pytest.approx(gain)
            assert one.evidence == pytest.approx(evidence)


def test_one_specimen_gives_no_disagreement() -> None:
    assert disagreements(_TRIALS, [np.ones((_RULES, 3))]) == []
    assert _chosen([]) == ()


@given(
    gains=st.lists(st.floats(0, 10), min_size=6, max_size=6),
    evidences=st.lists(st.floats(0, 30), min_size=6, max_size=6),
    new_rules=st.integers(1, 20),
    room=st.integers(1, 20),
)
def test_the_table_grows_by_at_least_one_rule_and_within_its_limits(
    gains: list[float], evidences: list[float], new_rules: int, room: int
) -> None:
    thresholds = [(trial.rule, number) for trial in _TRIALS for number in range(_SIGNALS)]
    found = [
        Disagreement(rule, number, gain, evidence)
        for (rule, number), gain, evidence in zip(thresholds, gains, evidences, strict=True)
    ]
    chosen = _chosen(found, new_rules=new_rules, room=room)
    added = [(1 << len(split.thresholds)) - 1 for split in chosen]

    assert 1 <= sum(added) <= new_rules
    # Only the last threshold may exceed the room, and it at most doubles a rule's parts.
    assert sum(added) < 2 * room
    assert [split.rule for split in chosen] == sorted({split.rule for split in chosen})
    picked = [
        one
        for one in found
        for split in chosen
        if split.rule == one.rule and _thresholds(one.rule)[one.threshold] in split.thresholds
    ]
    assert max(one.gain for one in found) == max(one.gain for one in picked)
    assert sum(one.evidence < 9 for one in picked) <= 1


def _thresholds(rule: int) -> list[tuple[int, float]]:
    return {trial.rule: trial.thresholds for trial in _TRIALS}[rule]


@given(st.permutations(range(6)))
def test_the_first_of_equal_disagreements_is_chosen(order: list[int]) -> None:
    thresholds = [(trial.rule, number) for trial in _TRIALS for number in range(_SIGNALS)]
    found = [Disagreement(*thresholds[number], gain=1.0, evidence=10.0) for number in order]
    assert _chosen(found, new_rules=1) == (Split(1, [_TRIALS[0].thresholds[0]]),)
