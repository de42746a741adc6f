"""Divisions of rules: at medians where they are used, or where the two sides want to differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from remy_farm.designer.actions import Coordinates
from remy_farm.designer.scoring import CheckpointError, by_use
from remy_farm.designer.splitting import (
    RuleMerge,
    Split,
    check_possible,
    first_parts,
    median_thresholds,
    possible_merges,
)
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2
from remy_simulator import RuleTable
from remy_simulator.columns import memory_summaries

# Rules divided on trial: on all signals at once, their parts alike, so that nothing changes

#: Divisions on trial, by increasing rule of the undivided table.
Trials = tuple[Split, ...]

# The most-used rules are divided on trial.
_RULES_ON_TRIAL = 8


def most_used_on_trial(table: RuleTable, outcome: evaluation_pb2.EvaluationOutcome) -> Trials:
    """The most-used rules, each at the medians of the memory values that triggered it."""
    memory = memory_summaries(outcome)
    used = sorted(by_use(outcome.rule_uses)[:_RULES_ON_TRIAL])
    trials = (Split(rule, median_thresholds(table, rule, memory)) for rule in used)
    return tuple(trial for trial in trials if trial.thresholds)


def restored_trials(messages: Iterable[checkpoint_pb2.TrialDivision], table: RuleTable) -> Trials:
    """The trials in a checkpoint. Raises CheckpointError unless `table` can be divided so."""
    trials = tuple(Split.of(message.rule, message.thresholds) for message in messages)
    rules = [trial.rule for trial in trials]
    if rules != sorted(set(rules)) or not all(trial.thresholds for trial in trials):
        raise CheckpointError("the checkpoint holds divisions on trial that no table has")
    check_possible(table, trials)
    return trials


def least_missed(
    table: RuleTable, coordinates: Coordinates, uses: Sequence[float]
) -> tuple[float, RuleMerge] | None:
    """The merge that moves actions least, by their squared distance in coordinates and by use
    (Ward 1963), and by how much; None if there is none."""
    rows = coordinates.tolist()

    def moved(merge: RuleMerge) -> float:
        rule, others = uses[merge.rule], [uses[other] for other in merge.neighbours]
        total = math.fsum(others)
        if rule == 0 or (total == 0 and len(others) == 1):
            return 0.0
        weights = others if total > 0 else [1.0] * len(others)
        centre = [
            math.fsum(w * rows[o][k] for w, o in zip(weights, merge.neighbours, strict=True))
            / math.fsum(weights)
            for k in range(3)
        ]
        distance = math.fsum(
            (a - b) * (a - b) for a, b in zip(rows[merge.rule], centre, strict=True)
        )
        # Where the neighbour is one rule the two meet, otherwise the rule alone moves.
        return distance * (rule * total / (rule + total) if len(others) == 1 else rule)

    return min(
        ((moved(merge), merge) for merge in possible_merges(table)),
        key=lambda found: (found[0], found[1].rule, found[1].neighbours),
        default=None,
    )


# How much the two sides of a division want to differ, and which divisions that speaks for
#
# Where a rule should be divided is where the actions on both sides would move apart. The parts of a
# rule on trial are perturbed independently, so that one step of antithetic pairs has a sample of
# the slope along every such move: those above a threshold one way, those below it the other way.

# A division needs this much evidence: the sum of three squared standard normals, which is what
# sides that agree have, passes it in 3 of 100 cases.
_MINIMUM_EVIDENCE = 9.0


@dataclass(frozen=True)
class Disagreement:
    """Between the two sides of one threshold of a rule on trial."""

    #: The rule's number in the undivided table, and the threshold's among those of its trial.
    rule: int
    threshold: int
    #: Sum over the coordinates of the slope's square beyond that of its standard error: what moving
    #: apart would gain grows with it.
    gain: float
    #: Sum over the coordinates of the square of the slope in units of its standard error.
    evidence: float


def disagreements(trials: Trials, samples: Iterable[Coordinates]) -> list[Disagreement]:
    """Of every threshold on trial, by rule and threshold.

    `samples` holds, for each specimen, one row for every rule of the table of all trials.
    """
    moves = [
        (trial.rule, threshold, first, _apart(threshold, len(trial.thresholds)))
        for trial, first in zip(trials, first_parts(trials), strict=True)
        for threshold in range(len(trial.thresholds))
    ]
    slopes = [
        np.array([_along(sample, first, signs) for _, _, first, signs in moves])
        for sample in samples
    ]
    count = len(slopes)
    if count < 2:
        return []
    mean = _sum(slopes) / count
    variance = _sum([(slope - mean) * (slope - mean) for slope in slopes]) / (count * (count - 1))
    gain = np.maximum(mean * mean - variance, 0.0)
    evidence = np.divide(mean * mean, variance, out=np.zeros_like(mean), where=variance > 0)
    return [
        Disagreement(rule, threshold, math.fsum(gain[row]), math.fsum(evidence[row]))
        for row, (rule, threshold, _, _) in enumerate(moves)
    ]


def chosen_splits(
    trials: Trials, found: Sequence[Disagreement], *, new_rules: int, room: int
) -> list[Split]:
    """The divisions to make, by rule; a rule is divided on all of its chosen thresholds at once.

    Those that promise most are chosen first. All but the first need enough evidence: the table
    grows in any case. It grows by at most `new_rules` rules, and no more once it has grown by
    `room`.
    """
    chosen: dict[int, list[int]] = {}
    added = 0
    for one in sorted(found, key=lambda one: (-one.gain, one.rule, one.threshold)):
        if chosen and one.evidence < _MINIMUM_EVIDENCE:
            continue
        more = 1 << len(chosen.get(one.rule, []))
        if added + more > new_rules or added >= room:
            continue
        chosen.setdefault(one.rule, []).append(one.threshold)
        added += more
    return [
        Split(trial.rule, [trial.thresholds[number] for number in sorted(chosen[trial.rule])])
        for trial in trials
        if trial.rule in chosen
    ]


def _apart(threshold: int, thresholds: int) -> list[float]:
    """Which way each part of a trial goes: up above the threshold, down below it."""
    return [1.0 if part >> threshold & 1 else -1.0 for part in range(1 << thresholds)]


def _along(sample: Coordinates, first: int, signs: Sequence[float]) -> Coordinates:
    """The sample of the slope when the parts from `first` on move as `signs` say."""
    return _sum([sign * sample[part] for part, sign in enumerate(signs, start=first)])


def _sum(arrays: Sequence[Coordinates]) -> Coordinates:
    """In their order: floating-point addition is not associative."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total = total + array
    return total
