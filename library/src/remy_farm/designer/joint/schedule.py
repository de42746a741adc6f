"""The schedule of a climb: the settings of each step, and when splits, merges and epochs are due.

A climb has two phases. While it grows, rules are split, and the perturbation and the step size
shrink. While it refines, the table keeps its structure, and steps have more specimens.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import remy_simulator
from remy_farm.designer.actions import STARTS
from remy_proto.completion import NEWEST_EDITION
from remy_proto.v1 import spec_pb2


@dataclass(frozen=True)
class DecayRates:
    """Decay rates of the moving averages of a climb: the weight of the past, from 0 to 1."""

    #: First and second moment of the gradient, named as in Adam.
    beta1: float = 0.9
    beta2: float = 0.98
    #: Average of the coordinates, in the growing and in the refining phase.
    growing: float = 0.97
    refining: float = 0.99

    @property
    def slope_variance(self) -> float:
        """Variance of the first moment, relative to the variance of one independent sample."""
        return (1 - self.beta1) / (1 + self.beta1)

    def over(self, steps: float) -> DecayRates:
        """Returns the decay over `steps` steps, for one step that replaces them."""
        if steps == 1:
            return self
        return DecayRates(
            **{name: remy_simulator.power(decay, steps) for name, decay in asdict(self).items()}
        )


#: Decay rates of a step with the number of specimens that the settings were tuned for.
DEFAULT_DECAY_RATES = DecayRates()


# Steps with more specimens than the settings were tuned for
#
# A step on k times the specimens has the information of k steps, so it may move k times as far.
# Each moving average must then decay as much as in k steps, which leaves the t-statistics as they
# were. With more workers a climb so makes fewer and longer steps, simulates as much, and gets as
# far. docs/results/ablations.md, "Specimens a step", measures for which k this is true.


def specimen_factor(search: spec_pb2.Search) -> float:
    """Returns the specimens of a step divided by the number that the settings were tuned for."""
    joint = search.joint
    if not joint.HasField("tuned_for_specimens"):
        return 1.0
    return search.specimens / joint.tuned_for_specimens


# Settings that are derived from the length of a climb unless the specification sets them: the limit
# of the table's rules, when rules are split, and the length of an epoch.
#
# A longer climb can support more rules, because each rule needs a number of steps until its slope
# is significant. The noise of an average falls with the square root of the number of steps, so the
# number of rules grows slightly slower than that root. Since edition 3 the default is lower,
# because further rules cost more than they gain.
_REFERENCE_STEPS = 1200
_REFERENCE_RULES = 72
_RULES_EXPONENT = 0.45
_MAX_RULES = 400
_MAX_RULES_SINCE_EDITION_3 = 64
_FIRST_SPLIT_SHARE = 1 / 13
_SPLITTING_SHARE = 0.5
_EPOCHS = 12
_MIN_STEPS_PER_EPOCH = 50
# If rules are merged later, splitting ends earlier in the growing phase. Merges then take place at
# `_MERGES` evenly spaced points between two shares of the growing phase.
_SPLITTING_SHARE_BEFORE_MERGES = 0.35
_MERGED_FROM, _MERGED_UNTIL = 0.45, 0.8
_MERGES = 10
# The start rule is never merged, so it and one other rule remain.
_MIN_RULES = 2


def distinguishable_rules(steps: float) -> int:
    """Returns how many rules a climb of `steps` steps has enough samples for."""
    rules = _REFERENCE_RULES * remy_simulator.power(steps / _REFERENCE_STEPS, _RULES_EXPONENT)
    return round(min(max(rules, 8.0), _MAX_RULES))


def default_rules(steps: float, edition: int = NEWEST_EDITION) -> int:
    """Returns the default rule limit of a climb of `steps` steps."""
    limit = _MAX_RULES_SINCE_EDITION_3 if edition >= 3 else _MAX_RULES
    return min(distinguishable_rules(steps), limit)


def with_derived_settings(
    search: spec_pb2.Search, edition: int = NEWEST_EDITION
) -> spec_pb2.JointSearch:
    """Returns the settings, with unset ones derived from the number of steps."""
    joint = spec_pb2.JointSearch()
    joint.CopyFrom(search.joint)
    growing = joint.steps * (1 - joint.fine_share)
    if search.HasField("maximum_rules"):
        joint.maximum_rules = search.maximum_rules
    elif not joint.HasField("maximum_rules"):
        joint.maximum_rules = default_rules(joint.steps, edition)
    if not joint.HasField("first_split"):
        joint.first_split = max(round(growing * _FIRST_SPLIT_SHARE), 1)
    if not joint.HasField("steps_per_split"):
        peak = peak_rules(search, joint)
        # A split on three signals adds seven rules.
        splits = max(peak / 7, 1.0)
        share = _SPLITTING_SHARE if peak == joint.maximum_rules else _SPLITTING_SHARE_BEFORE_MERGES
        joint.steps_per_split = max(round(growing * share / splits), 1)
    if not joint.HasField("steps_per_epoch"):
        joint.steps_per_epoch = max(round(joint.steps / _EPOCHS), _MIN_STEPS_PER_EPOCH)
    return joint


def has_rule_limit(search: spec_pb2.Search) -> bool:
    """Tells whether the specification sets the rule limit."""
    return search.HasField("maximum_rules") or search.joint.HasField("maximum_rules")


def peak_rules(search: spec_pb2.Search, joint: spec_pb2.JointSearch) -> int:
    """Returns the number of rules that the table grows to before rules are merged.

    With `overgrowth` the table grows beyond the limit first, but not beyond the number of rules
    that the climb has enough samples for. `joint` holds the limit.
    """
    limit = joint.maximum_rules
    if not has_rule_limit(search):
        return limit
    return max(limit, min(round(limit * joint.overgrowth), distinguishable_rules(joint.steps)))


def effective_settings(
    search: spec_pb2.Search, edition: int = NEWEST_EDITION
) -> spec_pb2.JointSearch:
    """Returns the settings for steps of `search.specimens` specimens.

    With k times the specimens that they were tuned for, numbers of steps are divided by k (down to
    1 step at least), and the step size is multiplied by k.
    """
    settings = with_derived_settings(search, edition)
    settings.ClearField("tuned_for_specimens")
    factor = specimen_factor(search)
    for name in ("steps", "start_steps", "first_split", "steps_per_split", "steps_per_epoch"):
        setattr(settings, name, max(round(getattr(settings, name) / factor), 1))
    settings.step_size *= factor
    return settings


# Growing phase: the perturbation shrinks to about half over the first 70 % of the steps. The step
# size shrinks to 15 % over the last 40 %.
_PERTURBATION_AFTER_GROWING = 8 / 15
_PERTURBATION_SHRINKS_UNTIL = 0.7
_STEP_SIZE_SHRINKS_FROM = 0.6
_STEP_SIZE_AFTER_GROWING = 0.15
# Refining phase: twice the specimens, half the step size at first, a longer average.
_PERTURBATION_AFTER_REFINING = 1 / 3
_STEP_SIZE_REFINING = 0.5
_STEP_SIZE_AFTER_REFINING = 0.3
_REFINING_SPECIMENS_FACTOR = 2
# When a completed climb is extended, its step size grows again over this share of the added steps.
_RESTART_SHARE = 0.15
# Specimens of a trial of splits, in multiples of the specimens of a step.
_TRIAL_SPECIMENS_FACTOR = 4


@dataclass(frozen=True)
class Settings:
    """The settings of one step of a climb."""

    #: Standard deviation of the perturbations.
    perturbation: float
    #: Longest step of a coordinate: once for its rule, and once more for each region above it.
    step_size: float
    #: Fresh specimens, with one antithetic pair each.
    specimens: int
    #: Decay rate of the average of the coordinates.
    average_decay: float
    #: Decay rates of the gradient's moments.
    decay_rates: DecayRates = DEFAULT_DECAY_RATES
    #: Number of scheduled steps that this step replaces.
    replaced_steps: int = 1

    def replacing(self, steps: int) -> Settings:
        """Returns the settings of one step that replaces `steps` steps like this one."""
        if steps == 1:
            return self
        return replace(
            self,
            step_size=self.step_size * steps,
            specimens=self.specimens * steps,
            average_decay=remy_simulator.power(self.average_decay, steps),
            decay_rates=self.decay_rates.over(steps),
            replaced_steps=steps,
        )


class Schedule:
    """Maps the number of a step to its settings, so that no part of a climb depends on a clock."""

    def __init__(self, search: spec_pb2.Search, edition: int = NEWEST_EDITION) -> None:
        """`edition` is the specification's; it determines the default rule limit."""
        self._specimens = search.specimens
        #: The settings for the specimens of a step.
        self.search = effective_settings(search, edition)
        #: Number of steps that may be requested before the current one is finished.
        self.steps_ahead = max(self.search.steps_in_flight, 1) - 1
        #: Length of the climb.
        self.steps = self.search.steps
        self.decay_rates = DEFAULT_DECAY_RATES.over(specimen_factor(search))
        self._refining = round(self.steps * self.search.fine_share)
        self._growing = self.steps - self._refining
        # Number of refining steps that the average of the coordinates extends over.
        averaged_steps = max(self.search.average_share * self._refining, 1.0)
        self._average_decay_refining = max(self.decay_rates.refining, 1 - 1 / averaged_steps)
        #: Rule limit while the table grows.
        self.peak_rules = peak_rules(search, with_derived_settings(search, edition))
        #: Rule limit of the published table.
        self.max_rules = max(self.search.maximum_rules, _MIN_RULES)
        has_merges = has_rule_limit(search) and self.search.overgrowth > 0
        merges = range(1, _MERGES + 1) if has_merges else ()
        span = (_MERGED_UNTIL - _MERGED_FROM) / _MERGES
        #: Numbers of steps after which rules are merged.
        self.merges = [round(self._growing * (_MERGED_FROM + span * merge)) for merge in merges]

    def settings(self, step: int, completed: int = 0) -> Settings:
        """Returns the settings of step `step`, from 0.

        `completed` is the length of the schedule that the climb completed before it was extended,
        or 0. The extended climb starts with the last perturbation and step size of that schedule,
        which then grow to those of this one.
        """
        planned = self._planned(step)
        if not completed:
            return planned
        done = min((step - completed) / max((self.steps - completed) * _RESTART_SHARE, 1), 1.0)
        last = self._planned(self.steps - 1)
        return replace(
            planned,
            perturbation=_interpolate(last.perturbation, planned.perturbation, done),
            step_size=_interpolate(last.step_size, planned.step_size, done),
        )

    def max_replaced_steps(self, step: int) -> int:
        """Returns how many steps from `step` on one step may replace.

        It may replace the steps up to the next split, merge or end of an epoch.
        """
        joint = self.search
        epoch, split = joint.steps_per_epoch, joint.steps_per_split
        due = [self.steps, (step // epoch + 1) * epoch, joint.first_split, self._growing]
        due += [*self.merges, joint.start_steps]
        if step >= joint.first_split:
            due.append(step + split - (step - joint.first_split) % split)
        return min((each - step for each in due if each > step), default=1)

    def _planned(self, step: int) -> Settings:
        joint = self.search
        if step < self._growing:
            done = step / self._growing
            shrunk = min(done / _PERTURBATION_SHRINKS_UNTIL, 1.0)
            late = max(done - _STEP_SIZE_SHRINKS_FROM, 0.0) / (1 - _STEP_SIZE_SHRINKS_FROM)
            return Settings(
                perturbation=joint.perturbation
                * _interpolate(1.0, _PERTURBATION_AFTER_GROWING, shrunk),
                step_size=joint.step_size * _interpolate(1.0, _STEP_SIZE_AFTER_GROWING, late),
                specimens=self._specimens,
                average_decay=self.decay_rates.growing,
                decay_rates=self.decay_rates,
            )
        done = (step - self._growing) / max(self._refining, 1)
        return Settings(
            perturbation=joint.perturbation
            * _interpolate(_PERTURBATION_AFTER_GROWING, _PERTURBATION_AFTER_REFINING, done),
            step_size=joint.step_size
            * _STEP_SIZE_REFINING
            * _interpolate(1.0, _STEP_SIZE_AFTER_REFINING, done),
            specimens=self._specimens * _REFINING_SPECIMENS_FACTOR,
            average_decay=self._average_decay_refining,
            decay_rates=self.decay_rates,
        )

    @property
    def trial_specimens(self) -> int:
        """Fresh specimens of a trial of splits, one antithetic pair each; 0 without trials."""
        has_trials = self.search.splits == spec_pb2.JOINT_SPLITS_DISAGREEMENT
        return self._specimens * _TRIAL_SPECIMENS_FACTOR if has_trials else 0

    def work(self, step: int) -> int:
        """Returns the number of antithetic pairs in the first `step` steps.

        Assumes that the table never reaches its rule limit, so that all trials take place.
        """
        refining = max(step - self._growing, 0)
        climbing = self._specimens * (step - refining + refining * _REFINING_SPECIMENS_FACTOR)
        since_first = min(step, self._growing - 1) - self.search.first_split
        trials = max(since_first // self.search.steps_per_split + 1, 0)
        return climbing + self.trial_specimens * trials

    def split_is_due(self, step: int, rules: int) -> bool:
        """Tells whether a table of `rules` rules is split after `step` steps."""
        joint = self.search
        return (
            rules < self.max_rules_at(step)
            and joint.first_split <= step < self._growing
            and (step - joint.first_split) % joint.steps_per_split == 0
        )

    def max_rules_at(self, step: int) -> int:
        """Returns the rule limit of splits after `step` steps."""
        grows = not self.merges or step < self.merges[0]
        return self.peak_rules if grows else self.search.maximum_rules

    def merge_is_due(self, step: int, rules: int) -> bool:
        """Tells whether rules are merged after `step` steps."""
        is_time = step in self.merges or step >= max(self.merges, default=step + 1)
        return is_time and self.is_too_large(rules)

    def rules_after_merge(self, step: int, rules: int) -> int:
        """Returns how many of `rules` rules the merge after `step` steps leaves.

        Each of the remaining merges removes the same number of rules.
        """
        later_merges = len([each for each in self.merges if each > step])
        return self.max_rules + (rules - self.max_rules) * later_merges // (later_merges + 1)

    def is_too_large(self, rules: int) -> bool:
        """Tells whether a table of `rules` rules must be merged before it may be published."""
        return bool(self.merges) and rules > self.max_rules

    def epoch_is_due(self, step: int, rules: int = 0) -> bool:
        """Tells whether an epoch ends after `step` steps."""
        is_time = step % self.search.steps_per_epoch == 0 or step >= self.steps
        return is_time and not self.is_too_large(rules)


def _interpolate(start: float, end: float, done: float) -> float:
    return start + (end - start) * done


def start_count(search: spec_pb2.JointSearch) -> int:
    """Returns the number of short climbs; the best of them is continued."""
    return min(search.starts, STARTS)
