"""The search: one skeleton for all strategies, which are steps made of pure functions.

A `Strategy` says how to search: where to begin, what each step asks for and what it makes of the
answer. The designer walks from state to state, one step after another; a state is an immutable
value that a checkpoint holds bit by bit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from google.protobuf.message import Message

import remy_simulator
from remy_farm.designer import actions, scoring
from remy_farm.designer.scoring import CheckpointError, DesignerError
from remy_farm.specification.drawing import Networks
from remy_farm.specification.models import fixed_tables
from remy_farm.specification.modes import mode_of
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native


@dataclass(frozen=True)
class StepReport:
    """What a strategy made of one step's outcome."""

    #: What is told of it, but for what it has cost.
    finished: progress_pb2.StepFinished
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
    #: Those beside it, where several are designed together.
    companions: tuple[RuleTable, ...] = ()


# What every strategy is made of: states, and steps between them


class Saved:
    """A value that a checkpoint holds, in a message whose fields are named like what it has."""

    message: ClassVar[type[Message]]

    def to_message(self) -> Any:
        """The value, bit by bit."""
        names = self.message.DESCRIPTOR.fields_by_name
        return self.message(**{name: _to_message(getattr(self, name)) for name in names})


def _to_message(value: Any) -> Any:
    match value:
        case RuleTable():
            return from_native(value)
        case tuple():
            return [_to_message(item) for item in value]
        case _:
            return value.to_message() if hasattr(value, "to_message") else value


def numbers(message: Message) -> dict[str, Any]:
    """A message's numbers, and its lists of them as tuples, by field."""
    return {
        field.name: tuple(value) if field.is_repeated else value
        for field in message.DESCRIPTOR.fields
        if field.message_type is None
        for value in [getattr(message, field.name)]
    }


@dataclass(frozen=True, kw_only=True)
class State(Saved, ABC):
    """Where a search stands between two steps: a value, never changed in place."""

    #: What the next step is for.
    purpose: progress_pb2.StepPurpose
    #: The global epoch.
    epoch: int = 0
    #: Simulations of one specimen under one candidate in this epoch, and the packets sent in them.
    evaluations: int = 0
    simulated_packets: int = 0
    #: Threads of workers that the next step has networks for; 0: as the search has them. Kept by
    #: the designer.
    worker_threads: int = 0

    @property
    @abstractmethod
    def working_table(self) -> RuleTable:
        """The table that the next step works on."""

    @property
    @abstractmethod
    def rules_changed(self) -> int:
        """How many rules this epoch has changed."""

    def after(self, outcome: Outcome) -> Self:
        """The state with an outcome counted, before a step makes anything of it."""
        return replace(
            self,
            evaluations=self.evaluations + len(outcome.packets_sent),
            simulated_packets=self.simulated_packets + sum(outcome.packets_sent),
        )

    def record(self, comparison: progress_pb2.Comparison) -> progress_pb2.EpochRecord:
        """What the epoch that ends with this comparison has brought."""
        return progress_pb2.EpochRecord(
            epoch=self.epoch,
            rules=self.working_table.rule_count,
            rules_changed=self.rules_changed,
            comparison=comparison,
            evaluations=self.evaluations,
            simulated_packets=self.simulated_packets,
        )


S = TypeVar("S", bound=State)
C = TypeVar("C", bound="Strategy[Any]")


class Step(ABC, Generic[C, S]):
    """A step: what it asks for, and where the search stands after the answer. Pure functions."""

    #: What it is for.
    purpose: ClassVar[progress_pb2.StepPurpose]

    @abstractmethod
    def request(self, strategy: C, state: S) -> Request:
        """What is to be evaluated: everything random is named by counters of the state."""

    @abstractmethod
    def receive(
        self, strategy: C, state: S, request: Request, outcome: Outcome
    ) -> tuple[S, StepReport]:
        """The next state, and what happened. The state's purpose is to be set.

        The outcome has the shape that the request asks for, and is counted in `state`.
        """

    def states_ahead(self, strategy: C, state: S) -> Sequence[S]:
        """The states that requests of the steps after the next one are made from, in order, as far
        as these do not depend on what it finds. All are for the same, and none else is left out but
        validations."""
        return ()

    def path(self, state: S) -> tuple[int, ...]:
        """The counters that, with the purpose, name the step's streams."""
        return (state.epoch,)

    def rules(self, state: S) -> int | None:
        """Of the request's first table, where they need not be counted."""
        return None

    def report(
        self,
        state: S,
        scores: Sequence[float | None],
        gain: progress_pb2.Estimate | None = None,
        **told: Any,
    ) -> StepReport:
        """What is told of the step that was made in `state`, given the scores of its table."""
        finished = progress_pb2.StepFinished(
            purpose=self.purpose,
            rules=state.working_table.rule_count,
            score=scoring.estimate(scores),
            gain=gain,
        )
        return StepReport(finished, **told)

    def epoch_report(
        self, state: S, record: progress_pb2.EpochRecord, score: Literal["before", "after"]
    ) -> StepReport:
        """The same of a step that ended an epoch; which of the compared scores is told."""
        told = record.comparison
        finished = progress_pb2.StepFinished(
            purpose=self.purpose,
            rules=state.working_table.rule_count,
            score=getattr(told, score) if told.HasField(score) else None,
            gain=told.gain if told.HasField("gain") else None,
        )
        return StepReport(finished, epoch=record)


class Survey(Step[C, S]):
    """A step that looks at how the rules of the table are used, and changes no action."""

    #: What is recorded of the rules. Where uses count as shares of their network's, a fast link
    #: does not choose what is divided.
    recording: ClassVar[evaluation_pb2.Recording]

    def request(self, strategy: C, state: S) -> Request:
        return strategy.request(
            self.purpose, *self.path(state), table=state.working_table, recording=self.recording
        )

    def receive(
        self, strategy: C, state: S, request: Request, outcome: Outcome
    ) -> tuple[S, StepReport]:
        (scores,) = strategy.scores(request, outcome)
        after, *events = self.surveyed(strategy, state, outcome)
        return after, self.report(state, scores, events=events)

    @abstractmethod
    def surveyed(
        self, strategy: C, state: S, outcome: Outcome
    ) -> tuple[S] | tuple[S, progress_pb2.ProgressEvent]:
        """The next state, given what was recorded, and what else happened if anything did."""


class Strategy(ABC, Generic[S]):
    """How to search: what a specification fixes for all steps of its design, and its random
    streams. It holds nothing that changes: states are its functions' arguments.

    A stream is named by the seed, a purpose and counters. There is no generator with a state of its
    own: what a step draws depends on nothing but its name, so that a checkpoint holds counters only
    and a repeated step repeats its draws.
    """

    #: The field of a specification's search that holds its settings, and of a checkpoint that holds
    #: its state.
    field: ClassVar[str]
    #: The class of its states.
    state: ClassVar[type[Any]]
    #: Its steps, by purpose.
    steps: ClassVar[Mapping[progress_pb2.StepPurpose, Step[Any, Any]]]
    #: Whether a step's networks are spread evenly over the model (see `Networks.draw`).
    stratified: ClassVar[bool] = True
    #: The settings of the mode.
    search: Any

    def __init__(self, spec: spec_pb2.DesignSpec, given: RuleTable | None = None) -> None:
        """What the specification fixes, and the table to begin with if there is one."""
        self.spec = spec
        self.given = given
        self.networks = Networks(spec)
        #: The tables that are given, and stay as they are.
        self.fixed = fixed_tables(spec)
        self.search = getattr(spec.search, self.field)

    @abstractmethod
    def first_state(self) -> S:
        """Where a search begins."""

    def restored(self, message: Any) -> S:
        """The inverse of `State.to_message`. Raises CheckpointError for what it never writes."""
        state: S = self.state.from_message(message)
        return state

    @abstractmethod
    def table(self, state: S) -> RuleTable:
        """The best table so far: the one to publish."""

    def tables(self, state: S) -> list[RuleTable]:
        """The best tables so far of all that are designed together, in the order of their names."""
        return [self.table(state)]

    @abstractmethod
    def finished(self, state: S) -> progress_pb2.StopReason | None:
        """Why there is no next step; None while there is one.

        Depends on the state and the specification alone, so that a larger budget lets a finished
        search walk on.
        """

    def share_done(self, state: S) -> float | None:
        """How much of its work is done, from 0 to 1; None if it has no fixed length."""
        return None

    def resting_steps(self, state: S) -> int:
        """For how many steps nothing has moved; 0 while they are too few to tell a rest."""
        return 0

    @abstractmethod
    def closing_request(self, state: S) -> Request | None:
        """What would decide whether to publish changes that `table` does not have yet.

        None if there are none.
        """

    @abstractmethod
    def closing_decision(self, state: S, request: Request, outcome: Outcome) -> Decision:
        """Decides on the outcome of `closing_request`."""

    def request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: Sequence[evaluation_pb2.Candidate] = (),
        specimens: int | None = None,
        recording: evaluation_pb2.Recording = evaluation_pb2.RECORDING_UNSPECIFIED,
        scored: bool = True,
        parts: int = 1,
    ) -> Request:
        """A request whose networks and random draws are named by `purpose` and `path` (counters).

        Unless they are given, its only candidate is the table as it is, and it has as many
        specimens as the specification says, each of which may be cut into several specimens of a
        part of the time. It asks for scores, or else (not `scored`) for what happened to every
        sender.
        """
        search = self.spec.search
        request = Request(
            candidates=candidates or [actions.unchanged()],
            specimen_columns=self.networks.draw(
                seed=remy_simulator.mix(search.seed, purpose, *path, _NETWORK),
                count=parts * (search.specimens if specimens is None else specimens),
                stratified=self.stratified,
            ),
            duration_ms=search.simulated_seconds * 1000 / parts,
            seed=remy_simulator.mix(search.seed, purpose, *path, _SIMULATION),
            recording=recording,
        )
        # In place: a message that is given to another is copied.
        request.tables.add().MergeFromString(table.to_message())
        request.tables.extend(self.fixed)
        if scored:
            request.objective.CopyFrom(self.spec.objective)
        return request

    def validation_request(
        self, purpose: progress_pb2.StepPurpose, *path: int, table: RuleTable, **asked: Any
    ) -> Request:
        """The same on as many specimens as tables are compared on.

        It asks for senders' results: throughput and delay of each epoch's table are told of as
        well.
        """
        specimens = self.search.validation_specimens
        return self.request(purpose, *path, table=table, specimens=specimens, scored=False, **asked)

    def scores(self, request: Request, outcome: Outcome) -> list[list[float | None]]:
        """Scores by candidate and specimen, or what they add to the mean over the worst specimens;
        None where no sender could be scored."""
        rows = scoring.scores(request, outcome, self.spec.objective)
        return [scoring.shares_of_worst(row, self.worst_share) for row in rows]

    @property
    def worst_share(self) -> float:
        """The share of the specimens, those of the lowest scores, whose mean is maximized."""
        objective = self.spec.objective
        return objective.worst_specimens if objective.HasField("worst_specimens") else 1.0


# The last element of a stream's path: the simulations must not share draws with the model.
_SIMULATION = 0
_NETWORK = 1


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
    def from_message(cls, message: checkpoint_pb2.ValidatedTable) -> Self:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        scores = tuple(None if math.isnan(score) else score for score in message.scores)
        return cls(restored_table(message.table), scores)

    def compared(self, contender: Validated) -> progress_pb2.Comparison:
        """The contender against this table, on the specimens that both have a score on."""
        before, after = scoring.paired([self.scores, contender.scores])
        return scoring.compare(before, after)


def restored_table(message: rule_table_pb2.RuleTable) -> RuleTable:
    """The table in a checkpoint. Raises CheckpointError if it is none."""
    try:
        return to_native(message)
    except ValueError as error:
        raise CheckpointError(f"the checkpoint holds a broken table: {error}") from error


@dataclass(frozen=True, kw_only=True)
class ValidatedState(State):
    """The state of a search whose epochs end with a validation."""

    #: The best table so far; None before the first validation.
    best: Validated | None = None

    @abstractmethod
    def contender(self, strategy: Any) -> RuleTable:
        """The table that is to take the place of the best one."""

    def with_best(self, best: Validated) -> Self:
        """The state with another best table."""
        return replace(self, best=best)


V = TypeVar("V", bound=ValidatedState)
W = TypeVar("W", bound="ValidatingStrategy[Any]")


class Validate(Step[W, V]):
    """Ends an epoch: the contender is compared with the best table so far."""

    purpose = progress_pb2.STEP_PURPOSE_VALIDATE
    #: What the next step is for, unless `epoch_ended` says otherwise.
    then: ClassVar[progress_pb2.StepPurpose]

    def request(self, strategy: W, state: V) -> Request:
        return strategy.contest(state)

    def receive(
        self, strategy: W, state: V, request: Request, outcome: Outcome
    ) -> tuple[V, StepReport]:
        contender = strategy.validated(state, request, outcome)
        after = replace(state, purpose=self.then)
        if state.best is None:
            # The first single rule: what the design's gain is measured from.
            return after.with_best(contender), self.report(state, contender.scores)
        record = state.record(state.best.compared(contender))
        if record.comparison.accepted:
            after = after.with_best(contender)
        after = self.epoch_ended(strategy, after, record)
        after = replace(after, epoch=state.epoch + 1, evaluations=0, simulated_packets=0)
        return after, self.epoch_report(state, record, "after")

    @abstractmethod
    def epoch_ended(self, strategy: W, state: V, record: progress_pb2.EpochRecord) -> V:
        """Where the search stands after this epoch, the best table already chosen. May say more in
        the record."""


class ValidatingStrategy(Strategy[V]):
    """A strategy that publishes its best validated table."""

    def table(self, state: V) -> RuleTable:
        return state.best.table if state.best else state.contender(self)

    def closing_request(self, state: V) -> Request | None:
        if state.best is None or state.contender(self) == state.best.table:
            return None
        return self.contest(state)

    def contest(self, state: V) -> Request:
        """Has the contender evaluated on the validation specimens."""
        purpose = progress_pb2.STEP_PURPOSE_VALIDATE
        return self.validation_request(purpose, table=state.contender(self))

    def validated(self, state: V, request: Request, outcome: Outcome) -> Validated:
        """The contender, with the outcome of that request."""
        (scores,) = self.scores(request, outcome)
        return Validated(state.contender(self), tuple(scores))

    def closing_decision(self, state: V, request: Request, outcome: Outcome) -> Decision:
        contender = self.validated(state, request, outcome)
        comparison = (state.best or contender).compared(contender)
        return Decision(comparison, contender.table if comparison.accepted else None)


def with_steps(spec: spec_pb2.DesignSpec, steps: int) -> spec_pb2.DesignSpec:
    """The specification with a schedule of so many steps, whatever its length was.

    Raises DesignerError in a mode that has no schedule and goes on until a stop rule holds.
    """
    mode = mode_of(spec)
    if mode is None or not mode.lengths:
        name = mode.name if mode else f"number {spec.search.mode}"
        raise DesignerError(
            f"search.mode is {name}, which has no schedule whose number of steps could be {steps}; "
            "stop.steps (--max-steps) ends any search"
        )
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    settings = mode.settings(changed.search)
    for name in mode.lengths:
        settings.ClearField(name)
    settings.steps = steps
    return changed
