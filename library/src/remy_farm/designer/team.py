"""Designs several tables together: each table has its own search, and the searches take turns."""

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
from remy_farm.specification.models import designed_tables
from remy_proto.v1 import checkpoint_pb2, progress_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_simulator import RuleTable
from remy_simulator.messages import from_native

# All tables maximize the same score, the network's, so that this is block coordinate ascent. In a
# step of one table's search, the other senders run the current tables of the other searches. In a
# validation they run the published ones, and the comparison is with the score of all published
# tables together.


@dataclass(frozen=True, kw_only=True)
class TeamState(State):
    """The states of all searches, and the turn."""

    message = checkpoint_pb2.TeamSearchState

    #: States of the searches by table, in the specification's order.
    members: tuple[ValidatedState, ...]
    #: Index of the search that makes the next step.
    turn: int = 0
    #: Score of all published tables together on each validation specimen; empty before the first
    #: validation.
    scores: tuple[float | None, ...] = ()

    @property
    def member(self) -> ValidatedState:
        """State of the search that makes the next step."""
        return self.members[self.turn]

    @property
    def working_table(self) -> RuleTable:
        return self.member.working_table

    @property
    def rules_changed(self) -> int:
        return self.member.rules_changed

    def with_member(self, member: ValidatedState) -> TeamState:
        """Returns the state with another state of the search that makes the next step."""
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
    """A step of the search whose turn it is, with the tables of the other searches."""

    def request(self, strategy: TeamStrategy, state: TeamState) -> Request:
        member = replace(state.member, worker_threads=state.worker_threads)
        search = strategy.searches[state.turn]
        request: Request = search.steps[member.purpose].request(search, member)
        validates = member.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        return strategy.with_other_tables(request, state, published=validates)

    def receive(
        self, strategy: TeamStrategy, state: TeamState, request: Request, outcome: Outcome
    ) -> tuple[TeamState, StepReport]:
        search, before = strategy.searches[state.turn], state.member
        if before.best is not None:
            # The table must beat the current score of all published tables together.
            before = before.with_best(Validated(before.best.table, state.scores))
        after, report = search.steps[before.purpose].receive(
            search, before.count(outcome), request, outcome
        )
        state = state.with_member(after)
        if after.best is not None and before.purpose == progress_pb2.STEP_PURPOSE_VALIDATE:
            state = replace(state, scores=after.best.scores)
        if report.epoch is not None:
            report.epoch.epoch = state.epoch
            state = replace(state, epoch=state.epoch + 1)
        return strategy.next_turn(state), report


class TeamStrategy(Strategy[TeamState]):
    """Runs one search per table; after each step it is the next table's turn."""

    field = "team"
    state = TeamState
    #: One kind of step for every purpose: it delegates to the search whose turn it is.
    steps: ClassVar = {
        purpose: TeamStep()
        for search in STRATEGIES.values()
        if issubclass(search, ValidatingStrategy)
        for purpose in search.steps
    }

    def __init__(self, spec: spec_pb2.DesignSpec, search: type[ValidatingStrategy[Any]]) -> None:
        """`search` is the class of every table's search."""
        self.spec = spec
        self.given = None
        #: Names of the tables.
        self.names = designed_tables(spec)
        #: Searches of the tables, in the order of the names.
        self.searches = [search(spec) for _ in self.names]

    def first_state(self) -> TeamState:
        members = tuple(search.first_state() for search in self.searches)
        return TeamState(purpose=members[0].purpose, members=members)

    def restore_state(self, message: checkpoint_pb2.TeamSearchState) -> TeamState:
        if len(message.members) != len(self.searches) or message.turn >= len(self.searches):
            raise CheckpointError(
                f"the checkpoint holds {len(message.members)} tables, with the turn of number "
                f"{message.turn}; the design has {len(self.searches)}"
            )
        members = []
        for search, saved in zip(self.searches, message.members, strict=True):
            if saved.WhichOneof("strategy") != search.field:
                raise CheckpointError(
                    f"the checkpoint holds a table of search {saved.WhichOneof('strategy')!r}; "
                    f"the specification selects search {search.field!r}"
                )
            members.append(search.restore_state(getattr(saved, search.field)))
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
        """Returns the current contender of each search."""
        pairs = zip(self.searches, state.members, strict=True)
        return [member.contender(search) for search, member in pairs]

    def with_other_tables(self, request: Request, state: TeamState, *, published: bool) -> Request:
        """Adds the tables of the other searches to a request of the search whose turn it is."""
        tables = self.tables(state) if published else self.contenders(state)
        return with_companions(request, state.turn, tables)

    def next_turn(self, state: TeamState) -> TeamState:
        """Passes the turn to the next search that is not finished, if there is one."""
        count = len(self.searches)
        order = [(state.turn + ahead) % count for ahead in range(1, count + 1)]
        unfinished = [turn for turn in order if self._finished(state, turn) is None]
        turn = unfinished[0] if unfinished else state.turn
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

    def stalled_steps(self, state: TeamState) -> int:
        pairs = zip(self.searches, state.members, strict=True)
        return min(search.stalled_steps(member) for search, member in pairs)

    def closing_request(self, state: TeamState) -> Request | None:
        pairs = zip(self.searches, state.members, strict=True)
        for turn, (search, member) in enumerate(pairs):
            request = search.closing_request(member)
            if request is not None:
                return with_companions(request, turn, self._closing_tables(state))
        return None

    def _closing_tables(self, state: TeamState) -> list[RuleTable]:
        """Returns each search's contender, or its published table if there are no changes."""
        trios = zip(self.searches, state.members, self.contenders(state), strict=True)
        return [
            search.table(member) if search.closing_request(member) is None else contender
            for search, member, contender in trios
        ]

    def closing_decision(self, state: TeamState, request: Request, outcome: Outcome) -> Decision:
        tables = self._closing_tables(state)
        (scores,) = self.scores(request, outcome)
        contender = Validated(tables[0], tuple(scores))
        comparison = Validated(self.table(state), state.scores).compare_with(contender)
        if not comparison.accepted:
            return Decision(comparison, None)
        return Decision(comparison, tables[0], tuple(tables[1:]))


def with_companions(request: Request, turn: int, tables: Sequence[RuleTable]) -> Request:
    """Adds the other tables of a joint design to a request of one table's search.

    The request's tables are then: the search's own table, the other tables of the design, and the
    fixed tables. The indices of senders' tables, which count in the specification's order, are
    changed accordingly. Changes `request` in place and returns it.
    """
    searched, *fixed = request.tables
    others = [from_native(each) for number, each in enumerate(tables) if number != turn]
    del request.tables[:]
    request.tables.extend([searched, *others, *fixed])
    for kind in request.specimen_columns.kinds:
        for group in kind.senders:
            if not group.HasField("protocol") and group.table < len(tables):
                group.table = 0 if group.table == turn else group.table + (group.table < turn)
    return request


def reject_given_table(given: RuleTable | None) -> None:
    """Raises DesignerError if a first table is given: it could be for any of the tables."""
    if given is not None:
        raise DesignerError(
            "a first table was given for a design of several tables; it is allowed for a design of "
            "one table only"
        )
