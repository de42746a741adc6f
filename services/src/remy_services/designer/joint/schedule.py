"""How a climb's settings change with its steps: what is annealed, and when rules are divided."""

from __future__ import annotations

from dataclasses import dataclass

from remy_farm.v1 import spec_pb2
from remy_services.designer.joint.memories import USUAL, Memories
from remy_services.designer.joint.pace import paced, widening

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


class Schedule:
    """A fixed function of the step, so that nothing about a climb depends on a clock."""

    def __init__(self, search: spec_pb2.Search) -> None:
        self._specimens = search.specimens
        self._joint = paced(search)
        #: What running averages keep of their past at a step.
        self.memories = USUAL.over(widening(search))
        self._refining = round(self._joint.steps * self._joint.fine_share)
        self._growing = self._joint.steps - self._refining

    @property
    def search(self) -> spec_pb2.JointSearch:
        """The settings as they are followed."""
        return self._joint

    @property
    def steps(self) -> int:
        """Length of the climb."""
        return self._joint.steps

    def settings(self, step: int) -> Settings:
        """The settings of step `step`, from 0."""
        joint = self._joint
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
            averaging=self.memories.refining,
            memories=self.memories,
        )

    @property
    def trial_specimens(self) -> int:
        """Fresh specimens on which divisions are tried, one antithetic pair each; 0 if none are."""
        tries = self._joint.splits == spec_pb2.JOINT_SPLITS_DISAGREEMENT
        return self._specimens * _SPECIMENS_ON_TRIAL if tries else 0

    def work(self, step: int) -> int:
        """Antithetic pairs simulated once `step` steps have been made; those of trials as if the
        table never had all of its rules."""
        refining = max(step - self._growing, 0)
        climbing = self._specimens * (step - refining + refining * _SPECIMENS_REFINING)
        since_first = min(step, self._growing - 1) - self._joint.first_split
        trials = max(since_first // self._joint.steps_per_split + 1, 0)
        return climbing + self.trial_specimens * trials

    def split_is_due(self, step: int, rules: int) -> bool:
        """Whether a rule is divided once `step` steps have been made."""
        joint = self._joint
        return (
            rules < joint.maximum_rules
            and joint.first_split <= step < self._growing
            and (step - joint.first_split) % joint.steps_per_split == 0
        )

    def epoch_is_due(self, step: int) -> bool:
        """Whether an epoch ends once `step` steps have been made."""
        return step % self._joint.steps_per_epoch == 0 or step >= self._joint.steps


def _between(start: float, end: float, done: float) -> float:
    return start + (end - start) * done
