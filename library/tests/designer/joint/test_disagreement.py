"""Divisions are chosen by how much their two sides want to differ."""

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
    """What a step of antithetic pairs finds of a score that depends on the actions of all parts."""
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


def _wants_apart(rule: int, threshold: int, coordinate: int = 0) -> Score:
    """The parts of a rule above a threshold are better up, those below it better down."""
    place = [trial.rule for trial in _TRIALS].index(rule)
    first = first_parts(_TRIALS)[place]

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
def test_a_score_that_depends_on_one_signal_divides_on_it_alone(
    rule: int, threshold: int, coordinate: int
) -> None:
    found = _found(_wants_apart(rule, threshold, coordinate))
    best = max(found, key=lambda one: one.gain)
    assert (best.rule, best.threshold) == (rule, threshold)
    thresholds = dict(zip([1, 3], [trial.thresholds for trial in _TRIALS], strict=True))[rule]
    assert _chosen(found) == (Split(rule, [thresholds[threshold]]),)


def test_a_rule_may_be_divided_on_several_signals_at_once() -> None:
    one, other = _wants_apart(3, 0), _wants_apart(3, 2, coordinate=1)
    chosen = _chosen(_found(lambda at: one(at) + other(at)))
    assert chosen == (Split(3, [_TRIALS[1].thresholds[0], _TRIALS[1].thresholds[2]]),)


def test_several_rules_may_be_divided_at_once() -> None:
    one, other = _wants_apart(1, 1), _wants_apart(3, 2)
    chosen = _chosen(_found(lambda at: one(at) + other(at)))
    assert chosen == (
        Split(1, [_TRIALS[0].thresholds[1]]),
        Split(3, [_TRIALS[1].thresholds[2]]),
    )


def test_what_the_whole_rule_wants_divides_nothing_but_once() -> None:
    """All parts are better up: no evidence for any division, but the table grows in any case."""
    found = _found(lambda at: math.fsum(row[0] for row in at))
    (split,) = _chosen(found)
    assert len(split.thresholds) == 1


@given(st.data())
def test_slopes_and_their_errors_are_those_of_the_slow_way(data: st.DataObject) -> None:
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


def test_one_specimen_tells_nothing() -> None:
    assert disagreements(_TRIALS, [np.ones((_RULES, 3))]) == []
    assert _chosen([]) == ()


@given(
    gains=st.lists(st.floats(0, 10), min_size=6, max_size=6),
    evidences=st.lists(st.floats(0, 30), min_size=6, max_size=6),
    new_rules=st.integers(1, 20),
    room=st.integers(1, 20),
)
def test_the_table_grows_by_a_rule_at_least_and_by_no_more_than_it_may(
    gains: list[float], evidences: list[float], new_rules: int, room: int
) -> None:
    places = [(trial.rule, number) for trial in _TRIALS for number in range(_SIGNALS)]
    found = [
        Disagreement(rule, number, gain, evidence)
        for (rule, number), gain, evidence in zip(places, gains, evidences, strict=True)
    ]
    chosen = _chosen(found, new_rules=new_rules, room=room)
    added = [(1 << len(split.thresholds)) - 1 for split in chosen]

    assert 1 <= sum(added) <= new_rules
    # Only the last division may reach beyond the room, and it at most doubles a rule's parts.
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
def test_of_equal_disagreements_the_first_counts(order: list[int]) -> None:
    places = [(trial.rule, number) for trial in _TRIALS for number in range(_SIGNALS)]
    found = [Disagreement(*places[number], gain=1.0, evidence=10.0) for number in order]
    assert _chosen(found, new_rules=1) == (Split(1, [_TRIALS[0].thresholds[0]]),)
