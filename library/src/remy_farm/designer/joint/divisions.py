"""Chooses which rules to split and which to merge in the joint search.

A split is worthwhile where the best actions on the two sides of a threshold differ. Before any rule
is split, several splits are therefore put on trial: the sides are perturbed independently, and the
step measures how far their slopes disagree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from remy_farm.designer.actions import Coordinates
from remy_farm.designer.scoring import CheckpointError, rules_by_use
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

# Trials: rules are split on all signals, with the same action in all parts, so that the table
# behaves as before

#: Splits on trial, by increasing rule number in the table before the splits.
Trials = tuple[Split, ...]

# Number of the most-used rules that are put on trial.
_RULES_ON_TRIAL = 8


def trials_of_most_used(table: RuleTable, outcome: evaluation_pb2.EvaluationOutcome) -> Trials:
    """Returns a trial for each of the most-used rules, at the medians of its memory values."""
    memory = memory_summaries(outcome)
    used = sorted(rules_by_use(outcome.rule_uses)[:_RULES_ON_TRIAL])
    trials = (Split(rule, median_thresholds(table, rule, memory)) for rule in used)
    return tuple(trial for trial in trials if trial.thresholds)


def restored_trials(messages: Iterable[checkpoint_pb2.SplitOnTrial], table: RuleTable) -> Trials:
    """Reads the trials in a checkpoint. Raises CheckpointError unless `table` can be split so."""
    trials = tuple(Split.of(message.rule, message.thresholds) for message in messages)
    rules = [trial.rule for trial in trials]
    if rules != sorted(set(rules)) or not all(trial.thresholds for trial in trials):
        raise CheckpointError(
            f"the checkpoint holds splits on trial of the rules {rules}; each must have a "
            "threshold, and the rules must be different and in order"
        )
    check_possible(table, trials)
    return trials


def cheapest_merge(
    table: RuleTable, coordinates: Coordinates, uses: Sequence[float]
) -> tuple[float, RuleMerge] | None:
    """Returns the merge that changes actions least, and its cost; None if no merge is possible.

    The cost is the squared distance that actions move in coordinates, weighted by use, as in Ward's
    method of clustering (Ward 1963).
    """
    rows = coordinates.tolist()

    def cost(merge: RuleMerge) -> float:
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
        # With one neighbour both rules move to their mean; otherwise only the merged rule moves.
        return distance * (rule * total / (rule + total) if len(others) == 1 else rule)

    return min(
        ((cost(merge), merge) for merge in possible_merges(table)),
        key=lambda pair: (pair[0], pair[1].rule, pair[1].neighbours),
        default=None,
    )


# Disagreement between the two sides of a threshold
#
# The disagreement is the slope of the score when the actions above the threshold move one way and
# those below it the opposite way. The parts of a rule on trial are perturbed independently, so one
# step of antithetic pairs samples this slope for every threshold on trial.

# A split needs this much evidence. If the sides agree, the evidence is a sum of three squared
# standard normals (chi-squared with 3 degrees of freedom), which exceeds 9 in 3 of 100 cases.
_MINIMUM_EVIDENCE = 9.0


@dataclass(frozen=True)
class Disagreement:
    """The disagreement between the two sides of one threshold of a rule on trial."""

    #: Number of the rule in the table before the splits.
    rule: int
    #: Index of the threshold in the rule's trial.
    threshold: int
    #: Sum over coordinates of the squared slope minus its squared standard error, each at least 0.
    #: The gain expected from moving the sides apart grows with it.
    gain: float
    #: Sum over coordinates of the squared t-statistic of the slope.
    evidence: float


def disagreements(trials: Trials, samples: Iterable[Coordinates]) -> list[Disagreement]:
    """Measures the disagreement at every threshold on trial, in order of rule and threshold.

    `samples` holds the gradient sample of each specimen, one row per rule of `trial_table`. Returns
    an empty list if there are fewer than two samples.
    """
    moves = [
        (trial.rule, threshold, first, _signs(threshold, len(trial.thresholds)))
        for trial, first in zip(trials, first_parts(trials), strict=True)
        for threshold in range(len(trial.thresholds))
    ]
    slopes = [
        np.array([_directional_slope(sample, first, signs) for _, _, first, signs in moves])
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


def choose_splits(
    trials: Trials, found: Sequence[Disagreement], *, new_rules: int, room: int
) -> list[Split]:
    """Returns the splits to make, by rule; a rule is split on all of its chosen thresholds at once.

    Thresholds are chosen by descending gain. All but the first need `_MINIMUM_EVIDENCE`: the table
    always grows. It grows by at most `new_rules` rules, and by no further threshold once it has
    grown by `room`.
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


def _signs(threshold: int, thresholds: int) -> list[float]:
    """Returns the sign of each part's move: 1 above the threshold, -1 below it."""
    return [1.0 if part >> threshold & 1 else -1.0 for part in range(1 << thresholds)]


def _directional_slope(sample: Coordinates, first: int, signs: Sequence[float]) -> Coordinates:
    """Returns the slope if the rules from `first` on move in the directions of `signs`."""
    return _sum([sign * sample[part] for part, sign in enumerate(signs, start=first)])


def _sum(arrays: Sequence[Coordinates]) -> Coordinates:
    """Adds arrays one after another: another order would change the result's bits."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total = total + array
    return total
