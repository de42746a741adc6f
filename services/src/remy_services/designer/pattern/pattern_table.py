"""A table that is being polished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.v1 import checkpoint_pb2
from remy_services.designer.errors import CheckpointError
from remy_services.designer.validation import restored_table
from remy_simulator import RuleTable
from remy_simulator.messages import ActionTuple as Action
from remy_simulator.messages import from_native


@dataclass(frozen=True)
class PatternTable:
    """A table, and for each of its rules how far its next compass step goes."""

    table: RuleTable
    steps: tuple[float, ...]

    def with_action(self, rule: int, action: Action) -> PatternTable:
        return PatternTable(self.table.with_action(rule, action), self.steps)

    def with_step(self, rule: int, step: float) -> PatternTable:
        return PatternTable(self.table, (*self.steps[:rule], step, *self.steps[rule + 1 :]))

    def to_message(self) -> checkpoint_pb2.PatternTable:
        return checkpoint_pb2.PatternTable(table=from_native(self.table), steps=self.steps)

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PatternTable) -> PatternTable:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        table = restored_table(message.table)
        return cls(table, checked_steps(table, message.steps))


def checked_steps(table: RuleTable, steps: Sequence[float]) -> tuple[float, ...]:
    """The steps of a table's rules. Raises CheckpointError unless there is one for each."""
    if len(steps) != table.rule_count:
        raise CheckpointError(
            f"the checkpoint has steps for {len(steps)} rules; its table has {table.rule_count}"
        )
    return tuple(steps)
