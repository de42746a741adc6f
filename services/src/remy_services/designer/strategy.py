"""How a designer searches: the interface between the designer and its strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2
from remy_simulator import RuleTable


@dataclass(frozen=True)
class StepReport:
    """What a strategy made of one step's outcome."""

    purpose: progress_pb2.StepPurpose
    #: Rules of the table that the step worked on.
    rules: int
    #: Score of the table before the step; None if no specimen could be scored.
    score: progress_pb2.Estimate | None = None
    #: The best candidate's paired gain over it; None if the step compared nothing.
    gain: progress_pb2.Estimate | None = None
    #: What else happened: events that have only their `event` field set.
    events: Sequence[progress_pb2.ProgressEvent] = ()
    #: Set when the step ended an epoch. The designer fills in `step`.
    epoch: progress_pb2.EpochRecord | None = None


@dataclass(frozen=True)
class Verdict:
    """What a closing evaluation decided."""

    comparison: progress_pb2.Comparison
    #: The table to publish in place of the strategy's; None if it was not accepted.
    table: RuleTable | None


class Strategy(Protocol):
    """A search as a deterministic state machine, made from (specification, state).

    Its state changes in `receive` alone. Everything random is drawn from `Streams`, keyed by
    counters of the state.
    """

    @property
    def table(self) -> RuleTable:
        """The best table so far: the one to publish."""

    @property
    def epoch(self) -> int:
        """The global epoch, from 0."""

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        """Why there is no next step; None while there is one.

        A pure function of the state and the specification, so that a larger budget lets a finished
        strategy walk on.
        """

    @property
    def share_done(self) -> float | None:
        """How much of its work is done, from 0 to 1; None if it has no fixed length."""

    def request(self) -> evaluation_pb2.EvaluationRequest:
        """The next step's request: a pure function of the state."""

    def receive(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> StepReport:
        """Moves on to the next step, given the outcome of `request`.

        The outcome has the shape that the request asks for. An exception leaves the state as it
        was.
        """

    def closing_request(self) -> evaluation_pb2.EvaluationRequest | None:
        """What would decide whether to publish changes that `table` does not have yet.

        None if there are none. A pure function of the state.
        """

    def closing_verdict(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> Verdict:
        """Decides on the outcome of `closing_request`; the state stays as it is."""

    def save(self, checkpoint: checkpoint_pb2.Checkpoint) -> None:
        """Writes the whole state, bit by bit, into its field of the checkpoint."""
