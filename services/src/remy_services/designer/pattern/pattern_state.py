"""Where the pattern search stands: a value, and its message."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from remy_farm.v1 import checkpoint_pb2, progress_pb2
from remy_services.designer.effort import NO_EFFORT, Effort
from remy_services.designer.errors import CheckpointError
from remy_services.designer.pattern.pattern_table import PatternTable, checked_steps
from remy_services.designer.pattern.race import Race
from remy_services.designer.pattern.trial_split import TrialSplit
from remy_services.designer.validation import Validated

_PURPOSES = (
    progress_pb2.STEP_PURPOSE_COUNT_USES,
    progress_pb2.STEP_PURPOSE_IMPROVE,
    progress_pb2.STEP_PURPOSE_VALIDATE,
    progress_pb2.STEP_PURPOSE_SPLIT,
    progress_pb2.STEP_PURPOSE_TRY_SPLITS,
)


@dataclass(frozen=True)
class PatternState:
    """The state between two steps."""

    #: What the next step is for.
    purpose: progress_pb2.StepPurpose
    #: The table being polished.
    current: PatternTable
    #: Steps made.
    step: int = 0
    #: The global epoch.
    epoch: int = 0
    #: The best table so far; None before the first validation.
    best: Validated | None = None
    #: How far the next compass step of each of its rules goes.
    best_steps: tuple[float, ...] = ()
    #: Rules to be polished in this epoch, the one under way first.
    queue: tuple[int, ...] = ()
    #: Races run for that rule in this epoch.
    visit_races: int = 0
    #: Races begun in this epoch; names their streams.
    races: int = 0
    #: The race under way.
    race: Race = field(default_factory=Race)
    #: What it is between, while rules are being divided on trial.
    splits: tuple[TrialSplit, ...] = ()
    #: Epochs since a rule was last divided.
    epochs_since_split: int = 0
    #: Rules that this epoch has changed, in the order of their turns.
    changed_rules: tuple[int, ...] = ()
    #: What this epoch has cost.
    effort: Effort = NO_EFFORT

    def next_epoch(self, purpose: progress_pb2.StepPurpose) -> PatternState:
        """The beginning of the next epoch, with the table as it is."""
        return replace(
            self,
            purpose=purpose,
            epoch=self.epoch + 1,
            races=0,
            changed_rules=(),
            effort=NO_EFFORT,
        )

    def to_message(self) -> checkpoint_pb2.PatternSearchState:
        """The state, bit by bit."""
        return checkpoint_pb2.PatternSearchState(
            purpose=self.purpose,
            epoch=self.epoch,
            step=self.step,
            current=self.current.to_message(),
            best=self.best.to_message() if self.best else None,
            best_steps=self.best_steps,
            queue=self.queue,
            visit_races=self.visit_races,
            races=self.races,
            race=self.race.to_message(),
            splits=[split.to_message() for split in self.splits],
            epochs_since_split=self.epochs_since_split,
            changed_rules=self.changed_rules,
            evaluations=self.effort.evaluations,
            simulated_packets=self.effort.simulated_packets,
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PatternSearchState) -> PatternState:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        current = PatternTable.from_message(message.current)
        best = Validated.from_message(message.best) if message.HasField("best") else None
        state = cls(
            purpose=message.purpose,
            current=current,
            step=message.step,
            epoch=message.epoch,
            best=best,
            best_steps=checked_steps(best.table, message.best_steps) if best else (),
            queue=tuple(message.queue),
            visit_races=message.visit_races,
            races=message.races,
            race=Race.from_message(message.race),
            splits=tuple(TrialSplit.from_message(s, current.table) for s in message.splits),
            epochs_since_split=message.epochs_since_split,
            changed_rules=tuple(message.changed_rules),
            effort=Effort(message.evaluations, message.simulated_packets),
        )
        if not state._is_sound():
            raise CheckpointError("the checkpoint names a step that the pattern search never makes")
        return state

    def _is_sound(self) -> bool:
        rules = self.current.table.rule_count
        runs = bool(self.race.runners)
        match self.purpose:
            case progress_pb2.STEP_PURPOSE_IMPROVE:
                can_go_on = bool(self.queue) and runs
            case progress_pb2.STEP_PURPOSE_TRY_SPLITS:
                numbers = [runner.candidate for runner in self.race.runners]
                can_go_on = runs and max(numbers) < len(self.splits)
            case _:
                can_go_on = self.purpose in _PURPOSES
        begins = self.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        return (
            can_go_on
            and all(rule < rules for rule in self.queue)
            and (self.best is not None or begins)
        )
