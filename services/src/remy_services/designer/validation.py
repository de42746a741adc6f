"""Tables on the validation specimens, which stay the same throughout a design and serve nothing
else: whether a search has got anywhere is decided where it never searches."""

from __future__ import annotations

import math
from dataclasses import dataclass

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2
from remy_services.designer import changes, scoring
from remy_services.designer.errors import CheckpointError
from remy_services.designer.strategy import Verdict
from remy_services.designer.strategy_context import StrategyContext
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native


@dataclass(frozen=True)
class Validated:
    """A table and its scores on the validation specimens."""

    table: RuleTable
    #: One a specimen; None where no sender could be scored.
    scores: tuple[float | None, ...]

    def to_message(self) -> checkpoint_pb2.ValidatedTable:
        scores = [math.nan if score is None else score for score in self.scores]
        return checkpoint_pb2.ValidatedTable(table=from_native(self.table), scores=scores)

    @classmethod
    def from_message(cls, message: checkpoint_pb2.ValidatedTable) -> Validated:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        scores = tuple(None if math.isnan(score) else score for score in message.scores)
        return cls(restored_table(message.table), scores)


def restored_table(message: rule_table_pb2.RuleTable) -> RuleTable:
    """The table in a checkpoint. Raises CheckpointError if it is none."""
    try:
        return to_native(message)
    except ValueError as error:
        raise CheckpointError(f"the checkpoint holds a broken table: {error}") from error


def validation_request(
    context: StrategyContext, table: RuleTable, specimens: int
) -> evaluation_pb2.EvaluationRequest:
    """A table on the validation specimens, of which there are `specimens`."""
    return context.request(
        progress_pb2.STEP_PURPOSE_VALIDATE,
        table=table,
        candidates=[changes.unchanged()],
        specimens=context.streams.specimens(
            progress_pb2.STEP_PURPOSE_VALIDATE, count=specimens, stratified=True
        ),
    )


def compare(best: Validated, contender: Validated) -> progress_pb2.Comparison:
    """The contender against the best table, on the specimens that both have a score on."""
    pairs = [
        (before, after)
        for before, after in zip(best.scores, contender.scores, strict=True)
        if before is not None and after is not None
    ]
    return scoring.compare([before for before, _ in pairs], [after for _, after in pairs])


def verdict(best: Validated, contender: Validated) -> Verdict:
    """Whether the contender is published in place of the best table when a search is stopped."""
    comparison = compare(best, contender)
    return Verdict(comparison, contender.table if comparison.accepted else None)
