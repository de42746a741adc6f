"""Rules divided on trial: on all signals at once, their parts alike, so that nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, rule_table_pb2
from remy_services.designer.errors import CheckpointError
from remy_services.designer.splitting import Split, median_thresholds
from remy_services.designer.uses import by_use, total_uses
from remy_simulator import RuleTable
from remy_simulator.messages import axis_of, signal_of

#: Divisions on trial, by increasing rule of the undivided table.
Trials = tuple[Split, ...]

# The most-used rules are divided on trial.
_RULES_ON_TRIAL = 8


def most_used_on_trial(
    table: RuleTable, outcomes: Sequence[evaluation_pb2.SpecimenOutcome]
) -> Trials:
    """The most-used rules, each at the medians of the memory values that triggered it."""
    used = by_use(total_uses(outcomes, table.rule_count))[:_RULES_ON_TRIAL]
    trials = (Split(rule, median_thresholds(table, rule, outcomes)) for rule in sorted(used))
    return tuple(trial for trial in trials if trial.thresholds)


def trial_table(table: RuleTable, trials: Trials) -> RuleTable:
    """The table with all trials made."""
    # From the back, so that the numbers of the rules still to be divided stay what they are.
    for trial in reversed(trials):
        table = table.split(trial.rule, trial.thresholds)
    return table


def first_parts(trials: Trials) -> list[int]:
    """The number, in the table of all trials, of each trial's first part.

    Part `i` of a trial lies above its threshold number `k` exactly if bit `k` of `i` is set.
    """
    firsts = []
    added = 0
    for trial in trials:
        firsts.append(trial.rule + added)
        added += (1 << len(trial.thresholds)) - 1
    return firsts


def to_messages(trials: Trials) -> list[checkpoint_pb2.TrialDivision]:
    """The trials, bit by bit."""
    return [
        checkpoint_pb2.TrialDivision(
            rule=trial.rule,
            thresholds=[
                rule_table_pb2.Threshold(signal=signal_of(axis), value=value)
                for axis, value in trial.thresholds
            ],
        )
        for trial in trials
    ]


def from_messages(messages: Iterable[checkpoint_pb2.TrialDivision], table: RuleTable) -> Trials:
    """The inverse. Raises CheckpointError unless `table` can be divided so."""
    trials = tuple(
        Split(
            message.rule,
            [(axis_of(threshold.signal), threshold.value) for threshold in message.thresholds],
        )
        for message in messages
    )
    rules = [trial.rule for trial in trials]
    if rules != sorted(set(rules)) or not all(trial.thresholds for trial in trials):
        raise CheckpointError("the checkpoint holds divisions on trial that no table has")
    try:
        trial_table(table, trials)
    except (IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"the checkpoint holds an impossible division of a rule: {error}"
        ) from error
    return trials
