"""Strategies: the interface between the designer and a search, and what searches share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import remy_simulator
from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2, spec_pb2
from remy_services.designer import actions, scoring
from remy_services.designer.actions import ActionSpace
from remy_services.designer.scoring import CheckpointError, DesignerError, simulated_packets
from remy_services.specification import draw_specimens
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native

# How a designer searches: the interface between the designer and its strategies.


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


# Where a search's randomness comes from: streams named by the seed, a purpose and counters.
#
# There is no generator with a state of its own. What a step draws depends on nothing but its name,
# so
# that a checkpoint holds counters only and a repeated step repeats its draws.


# The last element of a stream's path: the simulations must not share draws with the model.
_SIMULATION = 0
_NETWORK = 1


class Streams:
    """The random streams of one design."""

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self._spec = spec

    def simulation_seed(self, purpose: progress_pb2.StepPurpose, *path: int) -> int:
        """The seed of the requests that `purpose` and `path` (counters) name."""
        return remy_simulator.mix(self._spec.search.seed, purpose, *path, _SIMULATION)

    def specimens(
        self, purpose: progress_pb2.StepPurpose, *path: int, count: int, stratified: bool = False
    ) -> list[evaluation_pb2.Specimen]:
        """The `count` networks, drawn from the model, that `purpose` and `path` name."""
        seed = remy_simulator.mix(self._spec.search.seed, purpose, *path, _NETWORK)
        return draw_specimens(self._spec, seed=seed, count=count, stratified=stratified)


# What an epoch has cost so far.


@dataclass(frozen=True)
class Effort:
    """Simulations of one specimen under one candidate, and the packets sent in them."""

    evaluations: int = 0
    simulated_packets: int = 0

    def with_outcome(self, outcome: evaluation_pb2.EvaluationOutcome) -> Effort:
        """The same and what an outcome has cost."""
        return Effort(
            self.evaluations + len(outcome.outcomes),
            self.simulated_packets + simulated_packets(outcome),
        )


#: Where an epoch begins.
NO_EFFORT = Effort()


# The length of a search's schedule, which is in steps.


def with_steps(spec: spec_pb2.DesignSpec, steps: int) -> spec_pb2.DesignSpec:
    """The specification with a schedule of so many steps, whatever its length was.

    Raises DesignerError in the mode `paper`, which has no schedule and goes on until a stop rule
    holds.
    """
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    search = changed.search
    match search.mode:
        case spec_pb2.SEARCH_MODE_JOINT:
            search.joint.steps = steps
            search.joint.ClearField("cpu_seconds")
            search.joint.ClearField("simulated_packets")
        case spec_pb2.SEARCH_MODE_PATTERN:
            search.pattern.steps = steps
        case _:
            raise DesignerError(
                f"search.mode is paper, which has no schedule whose number of steps could be "
                f"{steps}; stop.steps (--max-steps) ends any search"
            )
    return changed


# What the steps of every search that moves through the space of actions have in common.


@dataclass(frozen=True)
class StrategyContext:
    """What a design fixes for all of its steps."""

    spec: spec_pb2.DesignSpec
    specimen_score: scoring.SpecimenScore
    streams: Streams
    space: ActionSpace

    def request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: Sequence[evaluation_pb2.Candidate],
        specimens: Sequence[evaluation_pb2.Specimen],
        recording: evaluation_pb2.Recording = evaluation_pb2.RECORDING_UNSPECIFIED,
    ) -> evaluation_pb2.EvaluationRequest:
        """A request whose random draws are named by `purpose` and `path`."""
        return evaluation_pb2.EvaluationRequest(
            tables=[from_native(table)],
            candidates=candidates,
            specimens=specimens,
            duration_ms=self.spec.search.simulated_seconds * 1000,
            seed=self.streams.simulation_seed(purpose, *path),
            recording=recording,
        )

    def recording_request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        recording: evaluation_pb2.Recording,
    ) -> evaluation_pb2.EvaluationRequest:
        """A request for what a table's rules see, on as many fresh specimens as a step has."""
        return self.request(
            purpose,
            *path,
            table=table,
            candidates=[actions.unchanged()],
            specimens=self.streams.specimens(
                purpose, *path, count=self.spec.search.specimens, stratified=True
            ),
            recording=recording,
        )

    def scores(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> list[list[float | None]]:
        """Scores by candidate and specimen; None where no sender could be scored."""
        return scoring.scores(request, outcome, self.spec.objective, self.specimen_score)


# Tables on the validation specimens, which stay the same throughout a design and serve nothing
# else: whether a search has got anywhere is decided where it never searches.


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
        candidates=[actions.unchanged()],
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
