"""The schedule of a climb: how its settings change with its steps and their specimens."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import remy_simulator
from remy_farm.designer.actions import STARTS
from remy_proto.completion import NEWEST_EDITION
from remy_proto.v1 import spec_pb2


@dataclass(frozen=True)
class Memories:
    """How much of its past each running average of a climb keeps at a step, from 0 to 1."""

    #: In the averages of the gradient's samples, and of their squares.
    slopes: float = 0.9
    squares: float = 0.98
    #: In the average of the coordinates, while growing and while refining.
    growing: float = 0.97
    refining: float = 0.99

    @property
    def slope_variance(self) -> float:
        """Variance of the average of independent samples' means, relative to one of them."""
        return (1 - self.slopes) / (1 + self.slopes)

    def over(self, steps: float) -> Memories:
        """What is left of the past after `steps` such steps: the weights for one that counts as
        many."""
        if steps == 1:
            return self
        return Memories(
            **{name: remy_simulator.power(past, steps) for name, past in asdict(self).items()}
        )


#: Where a step has the specimens that the settings were chosen for.
USUAL = Memories()


# The joint search's settings where a step has more specimens than they were chosen for.
#
# A step on k times the specimens knows as much as k steps. It may go as far as they would, if every
# running average forgets as much of its past as it does in k steps: then the directions stand out
# of their noise as before. A k-th of the steps simulate as much and get as far: fewer, wider steps
# for more workers. How far this carries is measured in docs/results/ablations.md, "Specimens
# specimens a step".


def widening(search: spec_pb2.Search) -> float:
    """How many times the specimens a step has that its settings were chosen for."""
    joint = search.joint
    if not joint.HasField("tuned_for_specimens"):
        return 1.0
    return search.specimens / joint.tuned_for_specimens


# What a climb's length says about the rest, where the settings leave it open: how large the table
# grows, when its rules are divided, and how often the climb is compared with the best table.
#
# A longer climb can tell more rules apart. A step's noise falls with the square root of the steps
# that see it, and a rule of a larger table is seen in fewer: their number grows a little slower
# than that. Not all that can be told apart is worth it: from the third edition on there are fewer.
_USUAL_STEPS = 1200
_USUAL_RULES = 72
_RULES_GROW = 0.45
_MOST_RULES = 400
_MOST_RULES_OF_THIRD_EDITION = 64
_FIRST_DIVISION = 1 / 13
_DIVISIONS_TAKE = 0.5
_EPOCHS = 12
_SHORTEST_EPOCH = 50
# Where rules are merged again, the table grows for a shorter part of that time. Then, between two
# places of it, so many times, rules are merged.
_OVERGROWING_TAKES = 0.35
_MERGED_FROM, _MERGED_UNTIL = 0.45, 0.8
_MERGES = 10
# The rule of senders that have measured nothing is merged with no other.
_FEWEST_RULES = 2


def distinct_rules(steps: float) -> int:
    """How many rules a climb of so many steps can tell apart."""
    grown = _USUAL_RULES * remy_simulator.power(steps / _USUAL_STEPS, _RULES_GROW)
    return round(min(max(grown, 8.0), _MOST_RULES))


def usual_rules(steps: float, edition: int = NEWEST_EDITION) -> int:
    """How many rules a table has after so many steps, where nothing else is asked for: those that
    the climb can tell apart; from edition 3 on, as many of them as are worth it."""
    most = _MOST_RULES_OF_THIRD_EDITION if edition >= 3 else _MOST_RULES
    return min(distinct_rules(steps), most)


def unfolded(search: spec_pb2.Search, edition: int = NEWEST_EDITION) -> spec_pb2.JointSearch:
    """The settings with what they leave open following from the number of steps."""
    joint = spec_pb2.JointSearch()
    joint.CopyFrom(search.joint)
    growing = joint.steps * (1 - joint.fine_share)
    if search.HasField("maximum_rules"):
        joint.maximum_rules = search.maximum_rules
    elif not joint.HasField("maximum_rules"):
        joint.maximum_rules = usual_rules(joint.steps, edition)
    if not joint.HasField("first_split"):
        joint.first_split = max(round(growing * _FIRST_DIVISION), 1)
    if not joint.HasField("steps_per_split"):
        most = largest_table(search, joint)
        # A division on three signals adds seven rules.
        divisions = max(most / 7, 1.0)
        share = _DIVISIONS_TAKE if most == joint.maximum_rules else _OVERGROWING_TAKES
        joint.steps_per_split = max(round(growing * share / divisions), 1)
    if not joint.HasField("steps_per_epoch"):
        joint.steps_per_epoch = max(round(joint.steps / _EPOCHS), _SHORTEST_EPOCH)
    return joint


def has_limit(search: spec_pb2.Search) -> bool:
    """Whether the settings say how many rules there may be."""
    return search.HasField("maximum_rules") or search.joint.HasField("maximum_rules")


def largest_table(search: spec_pb2.Search, joint: spec_pb2.JointSearch) -> int:
    """How many rules the table grows to before some are merged, if any are: where it may outgrow
    what is asked for, no more than the climb can tell apart. `joint` holds how many that is."""
    asked = joint.maximum_rules
    if not has_limit(search):
        return asked
    return max(asked, min(round(asked * joint.overgrowth), distinct_rules(joint.steps)))


def paced(search: spec_pb2.Search, edition: int = NEWEST_EDITION) -> spec_pb2.JointSearch:
    """The settings as they are followed with `search.specimens` a step.

    What is counted in steps becomes less, but is a step at least, and steps become longer.
    """
    followed = unfolded(search, edition)
    followed.ClearField("tuned_for_specimens")
    wider = widening(search)
    for name in ("steps", "start_steps", "first_split", "steps_per_split", "steps_per_epoch"):
        setattr(followed, name, max(round(getattr(followed, name) / wider), 1))
    followed.step_size *= wider
    return followed


# Growing: the perturbation shrinks to about half over the first 70 % and stays there; the step size
# shrinks to 15 % over the last 40 %.
_PERTURBATION_AFTER_GROWING = 8 / 15
_PERTURBATION_SHRINKS_UNTIL = 0.7
_STEP_SIZE_SHRINKS_FROM = 0.6
_STEP_SIZE_AFTER_GROWING = 0.15
# Refining: twice the specimens, half the step size at first, a longer average.
_PERTURBATION_AFTER_REFINING = 1 / 3
_STEP_SIZE_REFINING = 0.5
_STEP_SIZE_AFTER_REFINING = 0.3
_SPECIMENS_REFINING = 2
# A climb that goes on behind its end takes this share of what is left to take longer steps again.
_GROWN_AGAIN = 0.15
# Divisions are tried on this many times the specimens of a step.
_SPECIMENS_ON_TRIAL = 4


@dataclass(frozen=True)
class Settings:
    """What one step of a climb works with."""

    #: Standard deviation of the perturbations.
    perturbation: float
    #: The longest step of a coordinate, by itself and again with each region that it lies in.
    step_size: float
    #: Fresh specimens, one antithetic pair each.
    specimens: int
    #: Weight of the past in the running average of the coordinates.
    averaging: float
    #: And in all others.
    memories: Memories = USUAL
    #: The steps that this one counts as.
    width: int = 1

    def widened(self, width: int) -> Settings:
        """A step that counts as so many: on as many times the specimens, as many times as long,
        after which as much of the past is left."""
        if width == 1:
            return self
        return replace(
            self,
            step_size=self.step_size * width,
            specimens=self.specimens * width,
            averaging=remy_simulator.power(self.averaging, width),
            memories=self.memories.over(width),
            width=width,
        )


class Schedule:
    """A fixed function of the step, so that nothing about a climb depends on a clock."""

    def __init__(self, search: spec_pb2.Search, edition: int = NEWEST_EDITION) -> None:
        """`edition` is the specification's: it limits the rules where the settings do not."""
        self._specimens = search.specimens
        #: The settings as they are followed.
        self.search = paced(search, edition)
        #: How many of the next steps are asked for while one is simulated, at most.
        self.steps_ahead = max(self.search.steps_in_flight, 1) - 1
        #: Length of the climb.
        self.steps = self.search.steps
        #: What running averages keep of their past at a step.
        self.memories = USUAL.over(widening(search))
        self._refining = round(self.steps * self.search.fine_share)
        self._growing = self.steps - self._refining
        # Over how many steps the average of the coordinates reaches while refining.
        reach = max(self.search.average_share * self._refining, 1.0)
        self._averaging_while_refining = max(self.memories.refining, 1 - 1 / reach)
        #: Rules at most while the table grows, and of what is published.
        self.largest = largest_table(search, unfolded(search, edition))
        self.most_rules = max(self.search.maximum_rules, _FEWEST_RULES)
        merges = range(1, _MERGES + 1) if has_limit(search) and self.search.overgrowth > 0 else ()
        span = (_MERGED_UNTIL - _MERGED_FROM) / _MERGES
        #: The steps after which rules are merged.
        self.merges = [round(self._growing * (_MERGED_FROM + span * merge)) for merge in merges]

    def settings(self, step: int, completed: int = 0) -> Settings:
        """The settings of step `step`, from 0.

        A climb that had `completed` a shorter schedule goes on with what that ended with, from
        where its perturbation and steps grow to what this one has.
        """
        planned = self._planned(step)
        if not completed:
            return planned
        grown = min((step - completed) / max((self.steps - completed) * _GROWN_AGAIN, 1), 1.0)
        last = self._planned(self.steps - 1)
        return replace(
            planned,
            perturbation=_between(last.perturbation, planned.perturbation, grown),
            step_size=_between(last.step_size, planned.step_size, grown),
        )

    def widest(self, step: int) -> int:
        """How many steps lie before whatever is due next, of those that step `step` begins."""
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
                * _between(1.0, _PERTURBATION_AFTER_GROWING, shrunk),
                step_size=joint.step_size * _between(1.0, _STEP_SIZE_AFTER_GROWING, late),
                specimens=self._specimens,
                averaging=self.memories.growing,
                memories=self.memories,
            )
        done = (step - self._growing) / max(self._refining, 1)
        return Settings(
            perturbation=joint.perturbation
            * _between(_PERTURBATION_AFTER_GROWING, _PERTURBATION_AFTER_REFINING, done),
            step_size=joint.step_size
            * _STEP_SIZE_REFINING
            * _between(1.0, _STEP_SIZE_AFTER_REFINING, done),
            specimens=self._specimens * _SPECIMENS_REFINING,
            averaging=self._averaging_while_refining,
            memories=self.memories,
        )

    @property
    def trial_specimens(self) -> int:
        """Fresh specimens on which divisions are tried, one antithetic pair each; 0 if none are."""
        tries = self.search.splits == spec_pb2.JOINT_SPLITS_DISAGREEMENT
        return self._specimens * _SPECIMENS_ON_TRIAL if tries else 0

    def work(self, step: int) -> int:
        """Antithetic pairs simulated once `step` steps have been made; those of trials as if the
        table never had all of its rules."""
        refining = max(step - self._growing, 0)
        climbing = self._specimens * (step - refining + refining * _SPECIMENS_REFINING)
        since_first = min(step, self._growing - 1) - self.search.first_split
        trials = max(since_first // self.search.steps_per_split + 1, 0)
        return climbing + self.trial_specimens * trials

    def split_is_due(self, step: int, rules: int) -> bool:
        """Whether a rule is divided once `step` steps have been made."""
        joint = self.search
        return (
            rules < self.rules_at(step)
            and joint.first_split <= step < self._growing
            and (step - joint.first_split) % joint.steps_per_split == 0
        )

    def rules_at(self, step: int) -> int:
        """How many rules divisions may lead to once `step` steps have been made."""
        grows = not self.merges or step < self.merges[0]
        return self.largest if grows else self.search.maximum_rules

    def merge_is_due(self, step: int, rules: int) -> bool:
        """Whether rules are merged once `step` steps have been made."""
        is_time = step in self.merges or step >= max(self.merges, default=step + 1)
        return is_time and self.is_too_large(rules)

    def merged_to(self, step: int, rules: int) -> int:
        """How many rules are left of so many: fewer each time, until there are as asked for."""
        left = len([each for each in self.merges if each > step])
        return self.most_rules + (rules - self.most_rules) * left // (left + 1)

    def is_too_large(self, rules: int) -> bool:
        """Whether rules are yet to be merged before such a table is published."""
        return bool(self.merges) and rules > self.most_rules

    def epoch_is_due(self, step: int, rules: int = 0) -> bool:
        """Whether an epoch ends once `step` steps have been made."""
        is_time = step % self.search.steps_per_epoch == 0 or step >= self.steps
        return is_time and not self.is_too_large(rules)


def _between(start: float, end: float, done: float) -> float:
    return start + (end - start) * done


def start_count(search: spec_pb2.JointSearch) -> int:
    """How many short climbs there are before one goes on."""
    return min(search.starts, STARTS)
