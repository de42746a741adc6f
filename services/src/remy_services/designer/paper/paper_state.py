"""Where the paper's search stands: a value, and its message."""

from __future__ import annotations

from dataclasses import dataclass, replace

from remy_farm.v1 import checkpoint_pb2, progress_pb2
from remy_services.designer import changes
from remy_services.designer.effort import NO_EFFORT, Effort
from remy_services.designer.errors import CheckpointError
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native

_PURPOSES = (
    progress_pb2.STEP_PURPOSE_COUNT_USES,
    progress_pb2.STEP_PURPOSE_IMPROVE,
    progress_pb2.STEP_PURPOSE_VALIDATE,
    progress_pb2.STEP_PURPOSE_SPLIT,
)


@dataclass(frozen=True)
class PaperState:
    """The state between two steps."""

    #: What the next step is for.
    purpose: progress_pb2.StepPurpose
    #: The global epoch.
    epoch: int
    #: The table that the epoch began with.
    epoch_table: RuleTable
    #: The same with all that the epoch has improved so far. Of the same structure: rules are split
    #: between epochs only.
    table: RuleTable
    #: The epoch of each rule.
    rule_epochs: tuple[int, ...]
    #: The rule being improved, while that is the purpose.
    rule: int = 0
    #: Rules taken up so far in this epoch; names the streams of their steps.
    visits: int = 0
    #: What this epoch has cost.
    effort: Effort = NO_EFFORT

    @classmethod
    def first(cls, table: RuleTable) -> PaperState:
        """The beginning, in epoch 0."""
        purpose = progress_pb2.STEP_PURPOSE_COUNT_USES
        return cls(purpose, 0, table, table, (0,) * table.rule_count)

    def next_epoch(self, purpose: progress_pb2.StepPurpose, table: RuleTable) -> PaperState:
        """The start of the next epoch with `table`. "Set all rules to the current epoch." """
        epoch = self.epoch + 1
        return PaperState(purpose, epoch, table, table, (epoch,) * table.rule_count)

    def with_structure(self, table: RuleTable) -> PaperState:
        """The same moment with another table, which has other rules."""
        return replace(
            self, epoch_table=table, table=table, rule_epochs=(self.epoch,) * table.rule_count
        )

    def to_message(self) -> checkpoint_pb2.PaperSearchState:
        """The state, bit by bit."""
        return checkpoint_pb2.PaperSearchState(
            purpose=self.purpose,
            epoch=self.epoch,
            epoch_table=from_native(self.epoch_table),
            changes=changes.differences(self.epoch_table, self.table),
            rule_epochs=self.rule_epochs,
            rule=self.rule,
            visits=self.visits,
            evaluations=self.effort.evaluations,
            simulated_packets=self.effort.simulated_packets,
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PaperSearchState) -> PaperState:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        try:
            epoch_table = to_native(message.epoch_table)
            table = changes.apply(epoch_table, message.changes)
        except (ValueError, IndexError) as error:
            raise CheckpointError(f"the checkpoint holds a broken table: {error}") from error
        rules = table.rule_count
        if message.purpose not in _PURPOSES or message.rule >= rules:
            raise CheckpointError("the checkpoint names a step that the paper's search never makes")
        if len(message.rule_epochs) != rules:
            raise CheckpointError(
                f"the checkpoint has epochs for {len(message.rule_epochs)} rules; "
                f"its table has {rules}"
            )
        return cls(
            purpose=message.purpose,
            epoch=message.epoch,
            epoch_table=epoch_table,
            table=table,
            rule_epochs=tuple(message.rule_epochs),
            rule=message.rule,
            visits=message.visits,
            effort=Effort(message.evaluations, message.simulated_packets),
        )
