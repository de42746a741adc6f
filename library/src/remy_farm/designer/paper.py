"""The search of the paper "TCP ex Machina" (section 4.3): improves one rule at a time.

Each step quotes the sentences that it implements. The search differs from the paper in one point:
an epoch's changes are kept only if they also gain on specimens that they were not chosen on.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from remy_farm.designer import actions, scoring
from remy_farm.designer.actions import path_model_of
from remy_farm.designer.scoring import CheckpointError, rules_by_use
from remy_farm.designer.search import (
    Decision,
    State,
    Step,
    StepReport,
    Strategy,
    UsageStep,
    restored_table,
    scalar_fields,
)
from remy_farm.designer.splitting import split_most_used
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import RECORDING_MEMORY, RECORDING_USES
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_simulator import RuleTable
from remy_simulator.messages import Action, action_message, axis_of

# The grid of candidate actions

# Values are rounded, so that a step up and a step down cancel. Otherwise a window multiple of
# 1.0000000000000002 would be out of bounds.
_DECIMALS = 12
# A .dna file stores window increments as whole packets.
_INCREMENT_DECIMALS = 0


@dataclass(frozen=True)
class Component:
    """One dimension of the grid: a component of an action."""

    grid: spec_pb2.ActionGrid
    decimals: int

    def alternatives(self, current: float) -> list[float]:
        """Returns `current` and the values at geometric distances from it, within the bounds.

        The result is in ascending order.
        """
        values = {current}
        step = self.grid.first_step
        for _ in range(self.grid.steps):
            for value in (current - step, current + step):
                # Adding zero turns -0.0 into 0.0.
                rounded = round(value, self.decimals) + 0.0
                if self.grid.minimum <= rounded <= self.grid.maximum:
                    values.add(rounded)
            step *= self.grid.factor
        return sorted(values)


class ActionGrid:
    """The candidate actions for a rule.

    "Evaluate roughly 100 candidate increments to the current action, increasing geometrically in
    granularity as they get further from the current value ... taking the Cartesian product" of
    the alternatives for each component.
    """

    def __init__(self, spec: spec_pb2.PaperSearch) -> None:
        """`spec` must have all of its defaults filled in."""
        multiple, increment, intersend = (
            spec.window_multiple,
            spec.window_increment,
            spec.intersend_ms,
        )
        self.window_multiple = Component(multiple, _DECIMALS)
        self.window_increment = Component(increment, _INCREMENT_DECIMALS)
        self.intersend_ms = Component(intersend, _DECIMALS)
        #: Action of the first table's only rule.
        self.initial = Action(
            window_multiple=multiple.initial,
            window_increment=increment.initial,
            intersend_ms=intersend.initial,
        )

    def neighbours(self, action: Action) -> list[Action]:
        """Returns the grid's actions around `action`, without itself, in a fixed order."""
        product = itertools.product(
            self.window_multiple.alternatives(action.window_multiple),
            self.window_increment.alternatives(action.window_increment),
            self.intersend_ms.alternatives(action.intersend_ms),
        )
        return [Action(*candidate) for candidate in product if candidate != action]


@dataclass(frozen=True, kw_only=True)
class PaperState(State):
    """The state of the paper's search between two steps."""

    message = checkpoint_pb2.PaperSearchState

    #: The table at the start of the epoch.
    epoch_table: RuleTable
    #: The table with the epoch's improvements so far. It has the structure of `epoch_table`,
    #: because rules are split only between epochs.
    table: RuleTable
    #: Epoch of each rule.
    rule_epochs: tuple[int, ...]
    #: The rule being improved; has a meaning only if that is the purpose of the next step.
    rule: int = 0
    #: Number of rules chosen so far in this epoch. It names the random streams of their steps.
    visits: int = 0

    @classmethod
    def first(
        cls,
        table: RuleTable,
        epoch: int = 0,
        purpose: progress_pb2.StepPurpose = progress_pb2.STEP_PURPOSE_COUNT_USES,
    ) -> PaperState:
        """Step 1: returns the first state of an epoch. "Set all rules to the current epoch." """
        return cls(
            purpose=purpose,
            epoch=epoch,
            epoch_table=table,
            table=table,
            rule_epochs=(epoch,) * table.rule_count,
        )

    @property
    def working_table(self) -> RuleTable:
        return self.table

    @property
    def changes(self) -> evaluation_pb2.ActionChanges:
        """The epoch's changes of actions so far."""
        return actions.differences(self.epoch_table, self.table)

    @property
    def rules_changed(self) -> int:
        return len(self.changes.changes)

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PaperSearchState) -> PaperState:
        """Reads what `to_message` wrote. Raises CheckpointError for anything else."""
        epoch_table = restored_table(message.epoch_table)
        try:
            table = actions.apply(epoch_table, message.changes)
        except (ValueError, IndexError) as error:
            raise CheckpointError(f"the checkpoint holds a broken table: {error}") from error
        rules = table.rule_count
        if message.purpose not in PaperStrategy.steps or message.rule >= rules:
            raise CheckpointError("the checkpoint names a step that the paper's search never makes")
        if len(message.rule_epochs) != rules:
            raise CheckpointError(
                f"the checkpoint has epochs for {len(message.rule_epochs)} rules; "
                f"its table has {rules}"
            )
        return cls(**scalar_fields(message) | {"epoch_table": epoch_table, "table": table})


# The steps, in the order of section 4.3


class ChooseRule(UsageStep["PaperStrategy", PaperState]):
    """Step 2: "Simulate the current RemyCC and see which rule in the current epoch receives the
    most use. If no such rules were used, go to step 4." Rules that are never used do not change.
    """

    purpose = progress_pb2.STEP_PURPOSE_COUNT_USES
    recording = RECORDING_USES

    def path(self, state: PaperState) -> tuple[int, ...]:
        return (state.epoch, state.visits)

    def receive_usage(
        self, strategy: PaperStrategy, state: PaperState, outcome: Outcome
    ) -> tuple[PaperState] | tuple[PaperState, progress_pb2.ProgressEvent]:
        uses = outcome.rule_uses
        in_epoch = [rule for rule in rules_by_use(uses) if state.rule_epochs[rule] == state.epoch]
        if not in_epoch:
            return (replace(state, purpose=progress_pb2.STEP_PURPOSE_VALIDATE),)
        rule, purpose = in_epoch[0], progress_pb2.STEP_PURPOSE_IMPROVE
        chosen = progress_pb2.RuleChosen(rule=rule, uses=uses[rule], uses_of_all_rules=sum(uses))
        after = replace(state, purpose=purpose, rule=rule, visits=state.visits + 1)
        return after, progress_pb2.ProgressEvent(rule_chosen=chosen)


class ImproveAction(Step["PaperStrategy", PaperState]):
    """A round of step 3: "evaluate roughly 100 candidate increments to the current action".

    "If any of the candidates is an improvement, replace the action with the best new action and
    repeat the search, still with the same specimen networks and random seed." Random streams are
    therefore named by the visit to the rule, not by the round. Candidate 0 is the current action.
    """

    purpose = progress_pb2.STEP_PURPOSE_IMPROVE

    def request(self, strategy: PaperStrategy, state: PaperState) -> Request:
        neighbours = strategy.grid.neighbours(state.table.action(state.rule))
        return strategy.request(
            self.purpose,
            state.epoch,
            state.visits,
            table=state.table,
            candidates=[
                actions.unchanged(),
                *(actions.changed([(state.rule, action)]) for action in neighbours),
            ],
        )

    def receive(
        self, strategy: PaperStrategy, state: PaperState, request: Request, outcome: Outcome
    ) -> tuple[PaperState, StepReport]:
        scores = strategy.paired_scores(request, outcome)
        best = _best(scores)
        gain = scoring.estimate_gain(scores[0], scores[best])
        report = self.report(state, scores[0], gain=gain)
        if best == 0:
            return _rule_done(state), report
        changes = request.candidates[best].actions
        improved = progress_pb2.RuleImproved(
            rule=state.rule,
            before=action_message(state.table.action(state.rule)),
            after=changes.changes[0].action,
            gain=gain,
        )
        state = replace(state, table=actions.apply(state.table, changes))
        return state, replace(report, events=[progress_pb2.ProgressEvent(rule_improved=improved)])


def _best(scores: Sequence[Sequence[float]]) -> int:
    """Returns the first candidate with the highest mean, so that a tie is no improvement."""
    if not scores[0]:
        return 0
    means = [scoring.mean(row) for row in scores]
    return means.index(max(means))


def _rule_done(state: PaperState) -> PaperState:
    """ "Otherwise, increment the epoch number of the current rule and go back to step 2." """
    epochs = list(state.rule_epochs)
    epochs[state.rule] += 1
    return replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES, rule_epochs=tuple(epochs))


class EndEpoch(Step["PaperStrategy", PaperState]):
    """Step 4: "If we run out of rules in this epoch. Increment the global epoch. If the new epoch
    is a multiple of a parameter, K, continue to step 5. Otherwise go back to step 1."

    Adds a validation to the paper: the paper keeps every action that scored best on the 16 or so
    networks that it was chosen on. Here the epoch's table must also beat the table at the start of
    the epoch on fresh networks. Otherwise the epoch is rolled back.
    """

    purpose = progress_pb2.STEP_PURPOSE_VALIDATE

    def request(self, strategy: PaperStrategy, state: PaperState) -> Request:
        return strategy.comparison_request(state, self.purpose)

    def receive(
        self, strategy: PaperStrategy, state: PaperState, request: Request, outcome: Outcome
    ) -> tuple[PaperState, StepReport]:
        decision = strategy.closing_decision(state, request, outcome)
        epoch = state.epoch + 1
        is_split_due = epoch % strategy.search.epochs_per_split == 0
        after = PaperState.first(
            decision.table or state.epoch_table,
            epoch,
            SplitRule.purpose if is_split_due else ChooseRule.purpose,
        )
        return after, self.epoch_report(state, state.record(decision.comparison), "before")


class SplitRule(UsageStep["PaperStrategy", PaperState]):
    """Step 5: "Find the most-used rule, and the median memory value that triggers it. Split the
    rule at this point, producing eight new rules (one per dimension of the memory-space), each with
    the same action as before. Then return to step 1."

    With k signals the split makes 2^k rules, one for each orthant around the point. A rule that is
    too small to be split on any signal is skipped in favour of the next most-used one.
    """

    purpose = progress_pb2.STEP_PURPOSE_SPLIT
    recording = RECORDING_MEMORY

    def receive_usage(
        self, strategy: PaperStrategy, state: PaperState, outcome: Outcome
    ) -> tuple[PaperState] | tuple[PaperState, progress_pb2.ProgressEvent]:
        split = split_most_used(state.table, outcome, like_reference=True)
        if split is None:
            return (replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES),)
        table = state.table.split(split.rule, split.thresholds)
        after = replace(
            PaperState.first(table, state.epoch),
            evaluations=state.evaluations,
            simulated_packets=state.simulated_packets,
        )
        return after, split.event(table)


class PaperStrategy(Strategy[PaperState]):
    """The paper's search: greedy, one rule at a time."""

    field = "paper"
    state = PaperState
    steps: ClassVar = {
        step.purpose: step for step in (ChooseRule(), ImproveAction(), EndEpoch(), SplitRule())
    }
    stratified = False
    search: spec_pb2.PaperSearch

    def __init__(self, spec: spec_pb2.DesignSpec, given: RuleTable | None = None) -> None:
        super().__init__(spec, given)
        self.grid = ActionGrid(self.search)

    def first_state(self) -> PaperState:
        """ "Remy initializes a RemyCC with only a single rule." """
        axes = sorted(axis_of(signal) for signal in self.spec.signals)
        single = RuleTable(axes, [([], self.grid.initial)], path_model=path_model_of(self.spec))
        return PaperState.first(self.given or single)

    def paired_scores(self, request: Request, outcome: Outcome) -> list[list[float]]:
        """Returns scores by candidate, on the specimens on which all candidates have one."""
        return scoring.paired(self.scores(request, outcome))

    def table(self, state: PaperState) -> RuleTable:
        return state.epoch_table

    def finished(self, state: PaperState) -> progress_pb2.StopReason | None:
        # Checked only when a split is due, so that the last rules are improved as long as all
        # others.
        limit = self.spec.search.maximum_rules or self.spec.stop.rules
        is_split_due = state.purpose == progress_pb2.STEP_PURPOSE_SPLIT
        if is_split_due and limit and state.table.rule_count >= limit:
            return progress_pb2.STOP_REASON_RULES
        return None

    def closing_request(self, state: PaperState) -> Request | None:
        request = self.comparison_request(state, progress_pb2.STEP_PURPOSE_CLOSE)
        return request if len(request.candidates) > 1 else None

    def comparison_request(self, state: PaperState, purpose: progress_pb2.StepPurpose) -> Request:
        """Returns the request that compares the epoch's first table with its current one.

        The first table is candidate 0. If the epoch changed nothing, it is the only candidate.
        """
        candidates = [actions.unchanged()]
        if state.rules_changed:
            candidates.append(evaluation_pb2.Candidate(actions=state.changes))
        return self.validation_request(
            purpose, state.epoch, state.visits, table=state.epoch_table, candidates=candidates
        )

    def closing_decision(self, state: PaperState, request: Request, outcome: Outcome) -> Decision:
        """Decides whether the epoch's current table replaces its first one."""
        scores = self.paired_scores(request, outcome)
        comparison = scoring.compare(scores[0], scores[-1])
        return Decision(comparison, state.table if comparison.accepted else None)
