"""The search: one skeleton for all strategies, which are steps made of pure functions.

A `Strategy` says how to search: where to begin, what each step asks for and what it makes of the
answer. `SteppedSearch` walks from state to state, one step after another; a state is an immutable
value that a checkpoint holds bit by bit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from google.protobuf.message import Message

import remy_simulator
from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2, spec_pb2
from remy_farm.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_farm.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_services.designer import actions, scoring
from remy_services.designer.scoring import CheckpointError, DesignerError
from remy_services.specification import draw_specimen_columns
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native

# What a step comes to


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
class Decision:
    """What a comparison of tables decided."""

    comparison: progress_pb2.Comparison
    #: The table to publish in place of the strategy's; None if it was not accepted.
    table: RuleTable | None


# What every strategy is made of: a context that a design fixes, states, and steps between them


class Streams:
    """The random streams of one design, each named by the seed, a purpose and counters.

    There is no generator with a state of its own. What a step draws depends on nothing but its
    name, so that a checkpoint holds counters only and a repeated step repeats its draws.
    """

    # The last element of a stream's path: the simulations must not share draws with the model.
    _SIMULATION = 0
    _NETWORK = 1

    def __init__(self, spec: spec_pb2.DesignSpec) -> None:
        self._spec = spec

    def simulation_seed(self, purpose: progress_pb2.StepPurpose, *path: int) -> int:
        """The seed of the requests that `purpose` and `path` (counters) name."""
        return remy_simulator.mix(self._spec.search.seed, purpose, *path, self._SIMULATION)

    def specimens(
        self, purpose: progress_pb2.StepPurpose, *path: int, count: int, stratified: bool = False
    ) -> evaluation_pb2.SpecimenColumns:
        """The `count` networks, drawn from the model, that `purpose` and `path` name."""
        seed = remy_simulator.mix(self._spec.search.seed, purpose, *path, self._NETWORK)
        return draw_specimen_columns(self._spec, seed=seed, count=count, stratified=stratified)


@dataclass(frozen=True)
class Context:
    """What a design fixes for all of its steps."""

    spec: spec_pb2.DesignSpec
    streams: Streams

    #: Whether a step's networks are spread evenly over the model (see `draw_specimen_columns`).
    stratified: ClassVar[bool] = True

    def request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: Sequence[evaluation_pb2.Candidate] = (),
        specimens: int | None = None,
        recording: evaluation_pb2.Recording = evaluation_pb2.RECORDING_UNSPECIFIED,
        scored: bool = True,
    ) -> Request:
        """A request whose networks and random draws are named by `purpose` and `path`.

        Unless they are given, its only candidate is the table as it is, and it has as many
        specimens as the specification says. It asks for scores, or else (not `scored`) for what
        happened to every sender.
        """
        request = Request(
            tables=[from_native(table)],
            candidates=candidates or [actions.unchanged()],
            specimen_columns=self.streams.specimens(
                purpose,
                *path,
                count=self.spec.search.specimens if specimens is None else specimens,
                stratified=self.stratified,
            ),
            duration_ms=self.spec.search.simulated_seconds * 1000,
            seed=self.streams.simulation_seed(purpose, *path),
            recording=recording,
        )
        if scored:
            request.objective.CopyFrom(self.spec.objective)
        return request

    def scores(self, request: Request, outcome: Outcome) -> list[list[float | None]]:
        """Scores by candidate and specimen; None where no sender could be scored."""
        return scoring.scores(request, outcome, self.spec.objective)


@dataclass(frozen=True)
class Effort:
    """Simulations of one specimen under one candidate, and the packets sent in them."""

    evaluations: int = 0
    simulated_packets: int = 0

    def with_outcome(self, outcome: Outcome) -> Effort:
        """The same and what an outcome has cost."""
        return Effort(
            self.evaluations + len(outcome.packets_sent),
            self.simulated_packets + sum(outcome.packets_sent),
        )


@dataclass(frozen=True, kw_only=True)
class State(ABC):
    """Where a search stands between two steps: a value, never changed in place."""

    #: What the next step is for.
    purpose: progress_pb2.StepPurpose
    #: The global epoch.
    epoch: int = 0
    #: What this epoch has cost.
    effort: Effort = Effort()

    def after(self, outcome: Outcome) -> Self:
        """The state with an outcome counted, before a step makes anything of it."""
        return replace(self, effort=self.effort.with_outcome(outcome))

    @abstractmethod
    def to_message(self) -> Message:
        """The state, bit by bit."""

    def record(
        self, *, rules: int, rules_changed: int, comparison: progress_pb2.Comparison
    ) -> progress_pb2.EpochRecord:
        """What the epoch that ends with this comparison has brought."""
        return progress_pb2.EpochRecord(
            epoch=self.epoch,
            rules=rules,
            rules_changed=rules_changed,
            comparison=comparison,
            evaluations=self.effort.evaluations,
            simulated_packets=self.effort.simulated_packets,
        )


C = TypeVar("C", bound=Context)
S = TypeVar("S", bound=State)


class Step(ABC, Generic[C, S]):
    """A step: what it asks for, and where the search stands after the answer. Pure functions."""

    @abstractmethod
    def request(self, context: C, state: S) -> Request:
        """What is to be evaluated."""

    @abstractmethod
    def receive(
        self, context: C, state: S, request: Request, outcome: Outcome
    ) -> tuple[S, StepReport]:
        """The next state, and what happened. The state's purpose is to be set."""


class Strategy(ABC, Generic[C, S]):
    """How to search. It holds nothing: contexts and states are its functions' arguments."""

    #: The field of a checkpoint that holds its state.
    field: ClassVar[str]
    #: Its steps, by purpose.
    steps: ClassVar[Mapping[progress_pb2.StepPurpose, Step[Any, Any]]]

    @abstractmethod
    def context(self, spec: spec_pb2.DesignSpec, given: RuleTable | None) -> C:
        """What the specification fixes, and the table to begin with if there is one."""

    @abstractmethod
    def first_state(self, context: C, given: RuleTable | None) -> S:
        """Where a search begins."""

    @abstractmethod
    def restored(self, context: C, message: Any) -> S:
        """The inverse of `State.to_message`. Raises CheckpointError for what it never writes."""

    @abstractmethod
    def table(self, context: C, state: S) -> RuleTable:
        """The best table so far: the one to publish."""

    @abstractmethod
    def finished(self, context: C, state: S) -> progress_pb2.StopReason | None:
        """Why there is no next step; None while there is one.

        Depends on the state and the specification alone, so that a larger budget lets a finished
        search walk on.
        """

    def share_done(self, context: C, state: S) -> float | None:
        """How much of its work is done, from 0 to 1; None if it has no fixed length."""
        return None

    @abstractmethod
    def closing_request(self, context: C, state: S) -> Request | None:
        """What would decide whether to publish changes that `table` does not have yet.

        None if there are none.
        """

    @abstractmethod
    def closing_decision(
        self, context: C, state: S, request: Request, outcome: Outcome
    ) -> Decision:
        """Decides on the outcome of `closing_request`."""


class SteppedSearch(Generic[C, S]):
    """A strategy under way: a deterministic state machine, made from (specification, state).

    Its state changes in `receive` alone. Everything random is drawn from `Streams`, keyed by
    counters of the state.
    """

    def __init__(
        self,
        strategy: Strategy[C, S],
        spec: spec_pb2.DesignSpec,
        given: RuleTable | None = None,
        saved: checkpoint_pb2.Checkpoint | None = None,
    ) -> None:
        """A search at its beginning, with the given table if there is one, or where `save` left it.

        Raises CheckpointError for a state that the strategy never reaches.
        """
        self._strategy = strategy
        self._context = strategy.context(spec, given)
        self._state = (
            strategy.first_state(self._context, given)
            if saved is None
            else strategy.restored(self._context, getattr(saved, strategy.field))
        )

    def save(self, checkpoint: checkpoint_pb2.Checkpoint) -> None:
        """Writes the whole state, bit by bit, into its field of the checkpoint."""
        getattr(checkpoint, self._strategy.field).CopyFrom(self._state.to_message())

    @property
    def table(self) -> RuleTable:
        return self._strategy.table(self._context, self._state)

    @property
    def epoch(self) -> int:
        """The global epoch, from 0."""
        return self._state.epoch

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        return self._strategy.finished(self._context, self._state)

    @property
    def share_done(self) -> float | None:
        return self._strategy.share_done(self._context, self._state)

    def request(self) -> Request:
        """The next step's request: a pure function of the state."""
        return self._step.request(self._context, self._state)

    def receive(self, request: Request, outcome: Outcome) -> StepReport:
        """Moves on to the next step, given the outcome of `request`.

        The outcome has the shape that the request asks for. An exception leaves the state as it
        was.
        """
        state = self._state.after(outcome)
        self._state, report = self._step.receive(self._context, state, request, outcome)
        return report

    def closing_request(self) -> Request | None:
        return self._strategy.closing_request(self._context, self._state)

    def closing_decision(self, request: Request, outcome: Outcome) -> Decision:
        return self._strategy.closing_decision(self._context, self._state, request, outcome)

    @property
    def _step(self) -> Step[C, S]:
        return self._strategy.steps[self._state.purpose]


# Tables on the validation specimens, which stay the same throughout a design and serve nothing
# else: whether a search has got anywhere is decided where it never searches.


@dataclass(frozen=True)
class Validated:
    """A table and its scores on the validation specimens."""

    table: RuleTable
    #: One a specimen; None where no sender could be scored.
    scores: tuple[float | None, ...]

    @classmethod
    def of(cls, context: Context, table: RuleTable, request: Request, outcome: Outcome) -> Self:
        """A table with the outcome of its `validation_request`."""
        (scores,) = context.scores(request, outcome)
        return cls(table, tuple(scores))

    def to_message(self) -> checkpoint_pb2.ValidatedTable:
        scores = [math.nan if score is None else score for score in self.scores]
        return checkpoint_pb2.ValidatedTable(table=from_native(self.table), scores=scores)

    @classmethod
    def from_message(cls, message: checkpoint_pb2.ValidatedTable) -> Self:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        scores = tuple(None if math.isnan(score) else score for score in message.scores)
        return cls(restored_table(message.table), scores)


def restored_table(message: rule_table_pb2.RuleTable) -> RuleTable:
    """The table in a checkpoint. Raises CheckpointError if it is none."""
    try:
        return to_native(message)
    except ValueError as error:
        raise CheckpointError(f"the checkpoint holds a broken table: {error}") from error


def validation_request(context: Context, table: RuleTable, specimens: int) -> Request:
    """A table on the validation specimens, of which there are `specimens`.

    It asks for senders' results: throughput and delay of each epoch's table are told of as well.
    """
    return context.request(
        progress_pb2.STEP_PURPOSE_VALIDATE, table=table, specimens=specimens, scored=False
    )


def compare(best: Validated, contender: Validated) -> progress_pb2.Comparison:
    """The contender against the best table, on the specimens that both have a score on."""
    pairs = [
        (before, after)
        for before, after in zip(best.scores, contender.scores, strict=True)
        if before is not None and after is not None
    ]
    return scoring.compare([before for before, _ in pairs], [after for _, after in pairs])


def decide(best: Validated | None, contender: Validated) -> Decision:
    """Whether the contender is published in place of the best table when a search is stopped."""
    comparison = compare(best or contender, contender)
    return Decision(comparison, contender.table if comparison.accepted else None)


# The length of a search


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
