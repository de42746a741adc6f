"""Tests splits on trial: the regions and actions of their parts, and their messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.analytic_evaluator import bucket_of, memory_columns
from remy_farm.designer import CheckpointError
from remy_farm.designer.joint.divisions import (
    Trials,
    restored_trials,
    trials_of_most_used,
)
from remy_farm.designer.splitting import Split, first_parts, trial_table
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2
from remy_simulator import RuleTable

_AXES = (0, 1, 2)
_RULES = 4


def _table() -> RuleTable:
    """Returns four rules with different actions, split at 10, 20 and 30 on the first axis."""
    table = RuleTable(list(_AXES), [([], (0.5, 1, 1))])
    for rule in range(_RULES - 1):
        table = table.split(rule, [(0, 10.0 * (rule + 1))])
    return table.with_actions([(0.1 * rule, rule, 1 + rule) for rule in range(_RULES)])


@st.composite
def _trials(draw: st.DrawFn) -> Trials:
    table = _table()
    trials = []
    for rule in sorted(draw(st.sets(st.integers(0, _RULES - 1)))):
        lower, upper = table.region(rule)
        fractions = draw(st.dictionaries(st.sampled_from(_AXES), st.floats(0.01, 0.99), min_size=1))
        thresholds = [
            (axis, lower[axis] + fraction * (min(upper[axis], 100) - lower[axis]))
            for axis, fraction in sorted(fractions.items())
        ]
        trials.append(Split(rule, thresholds))
    return tuple(trials)


@given(_trials())
def test_bits_of_a_parts_number_tell_its_sides(trials: Trials) -> None:
    table, divided = _table(), trial_table(_table(), trials)
    for trial, first in zip(trials, first_parts(trials), strict=True):
        for part in range(1 << len(trial.thresholds)):
            lower, upper = divided.region(first + part)
            for number, (axis, value) in enumerate(trial.thresholds):
                assert (lower if part >> number & 1 else upper)[axis] == value
            assert divided.action(first + part) == table.action(trial.rule)


@given(_trials(), st.lists(st.floats(0, 100), min_size=4, max_size=4))
def test_trials_do_not_change_actions(trials: Trials, memory: list[float]) -> None:
    table, divided = _table(), trial_table(_table(), trials)
    assert divided.action(divided.find(memory)) == table.action(table.find(memory))


@given(_trials())
def test_message_round_trip_keeps_every_bit(trials: Trials) -> None:
    wire = [message.SerializeToString() for message in (trial.to_message() for trial in trials)]
    back = [checkpoint_pb2.SplitOnTrial.FromString(data) for data in wire]
    assert restored_trials(back, _table()) == trials


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ((Split(4, [(0, 40.0)]),), "impossible split"),
        ((Split(0, [(0, 15.0)]),), "impossible split"),
        ((Split(0, [(-1, 5.0)]),), "impossible split"),
        ((Split(0, [(3, 5.0)]),), "impossible split"),
        ((Split(1, [(0, 15.0)]), Split(0, [(0, 5.0)])), "the rules must be different and in order"),
        ((Split(0, [(0, 5.0)]), Split(0, [(1, 5.0)])), "the rules must be different and in order"),
        ((Split(0, []),), "the rules must be different and in order"),
    ],
    ids=["no rule", "outside", "unspecified", "not a signal", "order", "twice", "no threshold"],
)
def test_impossible_trials_are_refused(trials: Trials, words: str) -> None:
    messages = [checkpoint_pb2.SplitOnTrial(rule=trial.rule) for trial in trials]
    for message, trial in zip(messages, trials, strict=True):
        for axis, value in trial.thresholds:
            # The number of a signal is that of its axis plus one.
            message.thresholds.add(signal=axis + 1, value=value)
    with pytest.raises(CheckpointError, match=words):
        restored_trials(messages, _table())


def test_the_most_used_rules_are_put_on_trial() -> None:
    """At most eight rules are, and no unused rule."""
    uses = [5, 0, 9, 1, 7, 3, 2, 8, 4, 6]
    table = RuleTable([0, 2], [([], (0.5, 1, 1))])
    for rule in range(len(uses) - 1):
        table = table.split(rule, [(0, 10.0 * (rule + 1))])

    def outcome(uses: list[int]) -> evaluation_pb2.EvaluationOutcome:
        """Returns an outcome in which each rule was used at one memory point, with RTT ratio 2."""
        counts = {
            (rule, axis, bucket_of(axis, value)): 1
            for rule in range(len(uses))
            for axis, value in ((0, 10.0 * rule + 5), (2, 2.0))
        }
        memory = memory_columns(counts, rules=len(uses))
        return evaluation_pb2.EvaluationOutcome(rule_uses=uses, memory=memory)

    trials = trials_of_most_used(table, outcome(uses))

    assert [trial.rule for trial in trials] == [0, 2, 4, 5, 6, 7, 8, 9]
    assert dict(trials[1].thresholds) == {
        0: pytest.approx(25, rel=0.03),
        2: pytest.approx(2, rel=0.03),
    }
    few = outcome([0, 0, 1, *uses[3:4], *[0] * 6])
    assert [trial.rule for trial in trials_of_most_used(table, few)] == [2, 3]
