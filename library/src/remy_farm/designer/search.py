"""The interfaces of a search: `Strategy`, `State` and `Step`.

A `Strategy` defines the first state of a search and its steps. A `Step` is a pair of pure
functions: one makes a request from a state, the other makes the next state from the outcome. A
`State` is an immutable value that a checkpoint holds bit by bit. The designer makes one step after
another.
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
    """A strategy's report on one step."""

    #: The result of the step. The designer adds what the step cost.
    finished: progress_pb2.StepFinished
    #: Other events of the step, with only their `event` field set.
    events: Sequence[progress_pb2.ProgressEvent] = ()
    #: Record of the epoch that the step ended; None if it ended none. The designer fills in `step`.
    epoch: progress_pb2.EpochRecord | None = None


@dataclass(frozen=True)
class Decision:
    """The result of a closing evaluation."""

    comparison: progress_pb2.Comparison
    #: The table to publish in place of the strategy's; None if it was not accepted.
    table: RuleTable | None
    #: The other tables of a joint design of several tables.
    companions: tuple[RuleTable, ...] = ()


# States, and the steps between them


class CheckpointValue:
    """A value that is saved as a message whose fields have the names of the value's attributes."""

    message: ClassVar[type[Message]]

    def to_message(self) -> Any:
        """Returns the message that holds every bit of the value."""
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


def scalar_fields(message: Message) -> dict[str, Any]:
    """Returns a message's fields that are not messages, by name; repeated fields as tuples."""
    return {
        field.name: tuple(value) if field.is_repeated else value
        for field in message.DESCRIPTOR.fields
        if field.message_type is None
        for value in [getattr(message, field.name)]
    }


@dataclass(frozen=True, kw_only=True)
class State(CheckpointValue, ABC):
    """The state of a search between two steps. It is never changed in place."""

    #: Purpose of the next step.
    purpose: progress_pb2.StepPurpose
    #: The global epoch.
    epoch: int = 0
    #: Simulations of one specimen under one candidate in this epoch.
    evaluations: int = 0
    #: Packets sent in those simulations.
    simulated_packets: int = 0
    #: Number of worker threads that the next step is sized for; 0 means the specification's number
    #: of specimens. The designer sets it before each request.
    worker_threads: int = 0

    @property
    @abstractmethod
    def working_table(self) -> RuleTable:
        """The table that the next step works on."""

    @property
    @abstractmethod
    def rules_changed(self) -> int:
        """Number of rules whose action this epoch has changed."""

    def count(self, outcome: Outcome) -> Self:
        """Returns the state with the cost of an outcome added."""
        return replace(
            self,
            evaluations=self.evaluations + len(outcome.packets_sent),
            simulated_packets=self.simulated_packets + sum(outcome.packets_sent),
        )

    def record(self, comparison: progress_pb2.Comparison) -> progress_pb2.EpochRecord:
        """Returns the record of the epoch that ends with this comparison."""
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
    """A kind of step: makes a request, and the next state from its outcome. Has no state itself."""

    purpose: ClassVar[progress_pb2.StepPurpose]

    @abstractmethod
    def request(self, strategy: C, state: S) -> Request:
        """Returns the request. Its random streams are named by counters of the state."""

    @abstractmethod
    def receive(
        self, strategy: C, state: S, request: Request, outcome: Outcome
    ) -> tuple[S, StepReport]:
        """Returns the next state, with its purpose set, and a report.

        The outcome has the shape that the request asks for. `state` already counts its cost.
        """

    def states_ahead(self, strategy: C, state: S) -> Sequence[S]:
        """Returns the states from which later requests can already be made, in order.

        These are the steps after this one, as far as they do not depend on its outcome. All have
        the same purpose; validations between them are left out.
        """
        return ()

    def path(self, state: S) -> tuple[int, ...]:
        """Returns the counters that, together with the purpose, name the step's random streams."""
        return (state.epoch,)

    def rules(self, state: S) -> int | None:
        """Returns the number of rules of the request's first table; None if it must be counted."""
        return None

    def report(
        self,
        state: S,
        scores: Sequence[float | None],
        gain: progress_pb2.Estimate | None = None,
        **fields: Any,
    ) -> StepReport:
        """Returns the report on a step made from `state`, given the scores of its table."""
        finished = progress_pb2.StepFinished(
            purpose=self.purpose,
            rules=state.working_table.rule_count,
            score=scoring.estimate(scores),
            gain=gain,
        )
        return StepReport(finished, **fields)

    def epoch_report(
        self, state: S, record: progress_pb2.EpochRecord, score: Literal["before", "after"]
    ) -> StepReport:
        """Returns the report on a step that ended an epoch; `score` selects the reported score."""
        comparison = record.comparison
        finished = progress_pb2.StepFinished(
            purpose=self.purpose,
            rules=state.working_table.rule_count,
            score=getattr(comparison, score) if comparison.HasField(score) else None,
            gain=comparison.gain if comparison.HasField("gain") else None,
        )
        return StepReport(finished, epoch=record)


class UsageStep(Step[C, S]):
    """A step that records how the rules of the table are used, and changes no action."""

    #: Kind of recording. With RECORDING_SHARES each specimen has the same weight, so that specimens
    #: with fast links, which have more look-ups, do not dominate.
    recording: ClassVar[evaluation_pb2.Recording]

    def request(self, strategy: C, state: S) -> Request:
        return strategy.request(
            self.purpose, *self.path(state), table=state.working_table, recording=self.recording
        )

    def receive(
        self, strategy: C, state: S, request: Request, outcome: Outcome
    ) -> tuple[S, StepReport]:
        (scores,) = strategy.scores(request, outcome)
        after, *events = self.receive_usage(strategy, state, outcome)
        return after, self.report(state, scores, events=events)

    @abstractmethod
    def receive_usage(
        self, strategy: C, state: S, outcome: Outcome
    ) -> tuple[S] | tuple[S, progress_pb2.ProgressEvent]:
        """Returns the next state, and an event if the step has one to report."""


class Strategy(ABC, Generic[S]):
    """A search: the settings and random streams that are fixed for all steps of a design.

    A strategy has no state of its own; states are arguments of its methods.

    A random stream is named by the seed, a purpose and counters. There is no generator whose state
    would have to be saved: draws depend on the stream's name only, so that a checkpoint holds
    counters, and a step that is made again makes the same draws.
    """

    #: Name of the field of `Search` that holds the settings, and of `Checkpoint` that holds the
    #: state.
    field: ClassVar[str]
    #: Class of the states.
    state: ClassVar[type[Any]]
    #: Steps by purpose.
    steps: ClassVar[Mapping[progress_pb2.StepPurpose, Step[Any, Any]]]
    #: Whether networks are drawn by stratified sampling (see `Networks.draw`).
    stratified: ClassVar[bool] = True
    #: Settings of the mode.
    search: Any

    def __init__(self, spec: spec_pb2.DesignSpec, given: RuleTable | None = None) -> None:
        """`given` replaces the first table that the search would make itself."""
        self.spec = spec
        self.given = given
        self.networks = Networks(spec)
        #: Tables of other senders, which the design does not change.
        self.fixed = fixed_tables(spec)
        self.search = getattr(spec.search, self.field)

    @abstractmethod
    def first_state(self) -> S:
        """Returns the state before the first step."""

    def restore_state(self, message: Any) -> S:
        """Reads what `State.to_message` wrote. Raises CheckpointError for anything else."""
        state: S = self.state.from_message(message)
        return state

    @abstractmethod
    def table(self, state: S) -> RuleTable:
        """Returns the table to publish: the best one so far."""

    def tables(self, state: S) -> list[RuleTable]:
        """Returns the best tables so far of a joint design, in the order of their names."""
        return [self.table(state)]

    @abstractmethod
    def finished(self, state: S) -> progress_pb2.StopReason | None:
        """Returns why there is no next step; None while there is one.

        Depends on the state and the specification only, so that a finished search continues when
        its specification is given a larger budget.
        """

    def share_done(self, state: S) -> float | None:
        """Returns the finished share of the search, from 0 to 1; None without a fixed length."""
        return None

    def stalled_steps(self, state: S) -> int:
        """Returns for how many steps the search has stalled; 0 if it has not."""
        return 0

    @abstractmethod
    def closing_request(self, state: S) -> Request | None:
        """Returns the request that compares unpublished changes with the published table.

        Returns None if there are no such changes.
        """

    @abstractmethod
    def closing_decision(self, state: S, request: Request, outcome: Outcome) -> Decision:
        """Decides from the outcome of `closing_request` whether to publish the changes."""

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
        """Returns a request whose random streams are named by `purpose` and the counters `path`.

        By default the only candidate is the unchanged table, on the specification's number of
        specimens. Each specimen is cut into `parts` specimens of an equal part of the simulated
        time. The request asks for scores if `scored`, and otherwise for the results of every
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
        # Parsed in place, which saves the copy that `extend` would make.
        request.tables.add().MergeFromString(table.to_message())
        request.tables.extend(self.fixed)
        if scored:
            request.objective.CopyFrom(self.spec.objective)
        return request

    def validation_request(
        self, purpose: progress_pb2.StepPurpose, *path: int, table: RuleTable, **options: Any
    ) -> Request:
        """Returns a request on the number of specimens for comparing tables.

        It asks for the results of senders, because throughput and delay of each epoch's table are
        reported too.
        """
        specimens = self.search.validation_specimens
        return self.request(
            purpose, *path, table=table, specimens=specimens, scored=False, **options
        )

    def scores(self, request: Request, outcome: Outcome) -> list[list[float | None]]:
        """Returns scores by candidate and specimen; None if no sender could be scored.

        With `worst_share` below 1 these are terms of the mean over the worst specimens (see
        `scoring.cvar_terms`).
        """
        rows = scoring.scores(request, outcome, self.spec.objective)
        return [scoring.cvar_terms(row, self.worst_share) for row in rows]

    @property
    def worst_share(self) -> float:
        """Share of the specimens, those with the lowest scores, over which the mean is taken."""
        objective = self.spec.objective
        return objective.worst_specimens if objective.HasField("worst_specimens") else 1.0


# Last element of a stream's name: simulations must not share draws with the networks.
_SIMULATION = 0
_NETWORK = 1


# Validation: tables are compared on specimens that stay the same throughout a design, and on which
# no step searches


@dataclass(frozen=True)
class Validated:
    """A table and its scores on the validation specimens."""

    table: RuleTable
    #: One score per specimen; None if no sender could be scored.
    scores: tuple[float | None, ...]

    def to_message(self) -> checkpoint_pb2.ValidatedTable:
        scores = [math.nan if score is None else score for score in self.scores]
        return checkpoint_pb2.ValidatedTable(table=from_native(self.table), scores=scores)

    @classmethod
    def from_message(cls, message: checkpoint_pb2.ValidatedTable) -> Self:
        """Reads what `to_message` wrote. Raises CheckpointError for anything else."""
        scores = tuple(None if math.isnan(score) else score for score in message.scores)
        return cls(restored_table(message.table), scores)

    def compare_with(self, contender: Validated) -> progress_pb2.Comparison:
        """Compares a contender with this table, on the specimens on which both have a score."""
        before, after = scoring.paired([self.scores, contender.scores])
        return scoring.compare(before, after)


def restored_table(message: rule_table_pb2.RuleTable) -> RuleTable:
    """Reads a table from a checkpoint. Raises CheckpointError if it is broken."""
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
        """Returns the table to compare with the best one."""

    def with_best(self, best: Validated) -> Self:
        """Returns the state with another best table."""
        return replace(self, best=best)


V = TypeVar("V", bound=ValidatedState)
W = TypeVar("W", bound="ValidatingStrategy[Any]")


class Validate(Step[W, V]):
    """Ends an epoch: compares the contender with the best table so far."""

    purpose = progress_pb2.STEP_PURPOSE_VALIDATE
    #: Purpose of the next step, unless `on_epoch_end` sets another.
    next_purpose: ClassVar[progress_pb2.StepPurpose]

    def request(self, strategy: W, state: V) -> Request:
        return strategy.contender_request(state)

    def receive(
        self, strategy: W, state: V, request: Request, outcome: Outcome
    ) -> tuple[V, StepReport]:
        contender = strategy.validated_contender(state, request, outcome)
        after = replace(state, purpose=self.next_purpose)
        if state.best is None:
            # This is the first table, which the design's gain is measured from.
            return after.with_best(contender), self.report(state, contender.scores)
        record = state.record(state.best.compare_with(contender))
        if record.comparison.accepted:
            after = after.with_best(contender)
        after = self.on_epoch_end(strategy, after, record)
        after = replace(after, epoch=state.epoch + 1, evaluations=0, simulated_packets=0)
        return after, self.epoch_report(state, record, "after")

    @abstractmethod
    def on_epoch_end(self, strategy: W, state: V, record: progress_pb2.EpochRecord) -> V:
        """Returns the state after the epoch. `state` already has the best table.

        May add fields to the record.
        """


class ValidatingStrategy(Strategy[V]):
    """A strategy that publishes its best validated table."""

    def table(self, state: V) -> RuleTable:
        return state.best.table if state.best else state.contender(self)

    def closing_request(self, state: V) -> Request | None:
        if state.best is None or state.contender(self) == state.best.table:
            return None
        return self.contender_request(state)

    def contender_request(self, state: V) -> Request:
        """Returns the request that evaluates the contender on the validation specimens."""
        purpose = progress_pb2.STEP_PURPOSE_VALIDATE
        return self.validation_request(purpose, table=state.contender(self))

    def validated_contender(self, state: V, request: Request, outcome: Outcome) -> Validated:
        """Returns the contender with its scores, from the outcome of `contender_request`."""
        (scores,) = self.scores(request, outcome)
        return Validated(state.contender(self), tuple(scores))

    def closing_decision(self, state: V, request: Request, outcome: Outcome) -> Decision:
        contender = self.validated_contender(state, request, outcome)
        comparison = (state.best or contender).compare_with(contender)
        return Decision(comparison, contender.table if comparison.accepted else None)


def with_steps(spec: spec_pb2.DesignSpec, steps: int) -> spec_pb2.DesignSpec:
    """Returns the specification with a schedule of `steps` steps in place of its own.

    Raises DesignerError for a mode without a schedule, which searches until a stop rule applies.
    """
    mode = mode_of(spec)
    if mode is None or not mode.lengths:
        name = mode.name if mode else f"number {spec.search.mode}"
        raise DesignerError(
            f"search.mode is {name}, which has no schedule that could be set to {steps} steps; "
            "stop.steps (--max-steps) limits the steps of any search"
        )
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    settings = mode.settings(changed.search)
    for name in mode.lengths:
        settings.ClearField(name)
    settings.steps = steps
    return changed
