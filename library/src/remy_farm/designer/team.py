"""Several tables designed together: each has a search of its own, and they take turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from remy_farm.designer.scoring import CheckpointError, DesignerError
from remy_farm.designer.search import (
    Decision,
    State,
    Step,
    StepReport,
    Strategy,
    Validated,
    ValidatedState,
    ValidatingStrategy,
)
from remy_farm.designer.strategies import STRATEGIES
from remy_farm.specification.models import designs
from remy_proto.v1 import checkpoint_pb2, progress_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_simulator import RuleTable
from remy_simulator.messages import from_native

# All tables are for one score, the network's, so that whatever one gains all of them gain: this is
# an ascent by blocks of coordinates. A step of one table's search sees the others as their climbs
# have come so far; a validation sees them as they are published, and compares with the score that
# all published tables had together.


@dataclass(frozen=True, kw_only=True)
class TeamState(State):
    """Where each table's search stands, and whose turn it is."""

    message = checkpoint_pb2.TeamSearchState

    #: By table, in the specification's order.
    members: tuple[ValidatedState, ...]
    #: Which of them makes the next step.
    turn: int = 0
    #: Of all published tables together, by validation specimen; empty before the first validation.
    scores: tuple[float | None, ...] = ()

    @property
    def member(self) -> ValidatedState:
        """The search that makes the next step."""
        return self.members[self.turn]

    @property
    def working_table(self) -> RuleTable:
        return self.member.working_table

    @property
    def rules_changed(self) -> int:
        return self.member.rules_changed

    def with_member(self, member: ValidatedState) -> TeamState:
        """The state where the search whose turn it is stands elsewhere."""
        members = [*self.members]
        members[self.turn] = member
        return replace(self, members=tuple(members))

    def to_message(self) -> checkpoint_pb2.TeamSearchState:
        message = checkpoint_pb2.TeamSearchState(
            turn=self.turn,
            epoch=self.epoch,
            scores=[math.nan if score is None else score for score in self.scores],
        )
        for member in self.members:
            saved = member.to_message()
            field = next(
                field.name
                for field in checkpoint_pb2.TeamSearchState.Member.DESCRIPTOR.fields
                if field.message_type is saved.DESCRIPTOR
            )
            getattr(message.members.add(), field).CopyFrom(saved)
        return message


class TeamStep(Step["TeamStrategy", TeamState]):
    """A step of the search whose turn it is, among the tables of the others."""

    def request(self, strategy: TeamStrategy, state: TeamState) -> Request:
        member = replace(state.member, worker_threads=state.worker_threads)
        search = strategy.searches[state.turn]
        request: Request = search.steps[member.purpose].request(search, member)
        validates = member.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        return strategy.among(request, state, published=validates)

    def receive(
        self, strategy: TeamStrategy, state: TeamState, request: Request, outcome: Outcome
    ) -> tuple[TeamState, StepReport]:
        search, before = strategy.searches[state.turn], state.member
        if before.best is not None:
            # What it has to beat is what all published tables do together by now.
            before = before.with_best(Validated(before.best.table, state.scores))
        after, report = search.steps[before.purpose].receive(
            search, before.after(outcome), request, outcome
        )
        state = state.with_member(after)
        if after.best is not None and before.purpose == progress_pb2.STEP_PURPOSE_VALIDATE:
            state = replace(state, scores=after.best.scores)
        if report.epoch is not None:
            report.epoch.epoch = state.epoch
            state = replace(state, epoch=state.epoch + 1)
        return strategy.next_turn(state), report


class TeamStrategy(Strategy[TeamState]):
    """A search for each table, in turns of a step."""

    field = "team"
    state = TeamState
    #: Whatever it is for, a step is one of the search whose turn it is.
    steps: ClassVar = {
        purpose: TeamStep()
        for search in STRATEGIES.values()
        if issubclass(search, ValidatingStrategy)
        for purpose in search.steps
    }

    def __init__(self, spec: spec_pb2.DesignSpec, search: type[ValidatingStrategy[Any]]) -> None:
        """`search` is what all tables are searched with."""
        self.spec = spec
        self.given = None
        #: The tables' names.
        self.names = designs(spec)
        #: Likewise, how each is searched for.
        self.searches = [search(spec) for _ in self.names]

    def first_state(self) -> TeamState:
        members = tuple(search.first_state() for search in self.searches)
        return TeamState(purpose=members[0].purpose, members=members)

    def restored(self, message: checkpoint_pb2.TeamSearchState) -> TeamState:
        if len(message.members) != len(self.searches) or message.turn >= len(self.searches):
            raise CheckpointError(
                f"the checkpoint holds {len(message.members)} tables of a design of "
                f"{len(self.searches)}"
            )
        members = []
        for search, saved in zip(self.searches, message.members, strict=True):
            if saved.WhichOneof("strategy") != search.field:
                raise CheckpointError("the checkpoint holds a table of another search")
            members.append(search.restored(getattr(saved, search.field)))
        scores = tuple(None if math.isnan(score) else score for score in message.scores)
        return TeamState(
            purpose=members[message.turn].purpose,
            epoch=message.epoch,
            members=tuple(members),
            turn=message.turn,
            scores=scores,
        )

    def tables(self, state: TeamState) -> list[RuleTable]:
        pairs = zip(self.searches, state.members, strict=True)
        return [search.table(member) for search, member in pairs]

    def table(self, state: TeamState) -> RuleTable:
        return self.tables(state)[0]

    def contenders(self, state: TeamState) -> list[RuleTable]:
        """The tables that the climbs have come to."""
        pairs = zip(self.searches, state.members, strict=True)
        return [member.contender(search) for search, member in pairs]

    def among(self, request: Request, state: TeamState, *, published: bool) -> Request:
        """A request of the search whose turn it is, among the others' tables."""
        tables = self.tables(state) if published else self.contenders(state)
        return with_companions(request, state.turn, tables)

    def next_turn(self, state: TeamState) -> TeamState:
        """The state where it is the turn of the next search that is not over, if any."""
        count = len(self.searches)
        order = [(state.turn + ahead) % count for ahead in range(1, count + 1)]
        going = [turn for turn in order if self._finished(state, turn) is None]
        turn = going[0] if going else state.turn
        return replace(state, turn=turn, purpose=state.members[turn].purpose)

    def finished(self, state: TeamState) -> progress_pb2.StopReason | None:
        reasons = [self._finished(state, turn) for turn in range(len(self.searches))]
        return None if None in reasons else reasons[0]

    def _finished(self, state: TeamState, turn: int) -> progress_pb2.StopReason | None:
        return self.searches[turn].finished(state.members[turn])

    def share_done(self, state: TeamState) -> float | None:
        pairs = zip(self.searches, state.members, strict=True)
        shares = [search.share_done(member) for search, member in pairs]
        known = [share for share in shares if share is not None]
        return sum(known) / len(shares) if len(known) == len(shares) else None

    def resting_steps(self, state: TeamState) -> int:
        pairs = zip(self.searches, state.members, strict=True)
        return min(search.resting_steps(member) for search, member in pairs)

    def closing_request(self, state: TeamState) -> Request | None:
        pairs = zip(self.searches, state.members, strict=True)
        open_ = [search.closing_request(member) for search, member in pairs]
        first = next((number for number, each in enumerate(open_) if each is not None), None)
        if first is None:
            return None
        request = open_[first]
        assert request is not None
        return with_companions(request, first, self._closing_tables(state))

    def _closing_tables(self, state: TeamState) -> list[RuleTable]:
        """What the climbs have come to, of those that may be published."""
        trios = zip(self.searches, state.members, self.contenders(state), strict=True)
        return [
            search.table(member) if search.closing_request(member) is None else contender
            for search, member, contender in trios
        ]

    def closing_decision(self, state: TeamState, request: Request, outcome: Outcome) -> Decision:
        tables = self._closing_tables(state)
        (scores,) = self.scores(request, outcome)
        contender = Validated(tables[0], tuple(scores))
        comparison = Validated(self.table(state), state.scores).compared(contender)
        if not comparison.accepted:
            return Decision(comparison, None)
        return Decision(comparison, tables[0], tuple(tables[1:]))


def with_companions(request: Request, turn: int, tables: Sequence[RuleTable]) -> Request:
    """A request of one table's search, whose first table is its own, with the others behind it, and
    those that are given last.

    Groups of senders name their tables by their places in the specification.
    """
    own, *fixed = request.tables
    others = [from_native(each) for number, each in enumerate(tables) if number != turn]
    del request.tables[:]
    request.tables.extend([own, *others, *fixed])
    for kind in request.specimen_columns.kinds:
        for group in kind.senders:
            if not group.HasField("protocol") and group.table < len(tables):
                group.table = 0 if group.table == turn else group.table + (group.table < turn)
    return request


def refuse_given(given: RuleTable | None) -> None:
    """Raises DesignerError for a table to begin with: there is no saying whose it is."""
    if given is not None:
        raise DesignerError(
            "several tables are designed together, and begin with their own; a table to begin "
            "with is for a design of one"
        )
