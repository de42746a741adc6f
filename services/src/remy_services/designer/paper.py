"""The paper's own search (section 4.3): rule by rule, over a grid of actions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import actions, scoring
from remy_services.designer.scoring import CheckpointError, by_use, total_uses
from remy_services.designer.splitting import split_most_used
from remy_services.designer.strategy import NO_EFFORT, Effort, StepReport, Streams, Verdict
from remy_simulator import RuleTable
from remy_simulator.messages import action_message, axis_of, from_native, to_native

# The actions that are tried in place of a rule's present one (section 4.3, step 3).
#
# "Evaluate roughly 100 candidate increments to the current action, increasing geometrically in
# granularity as they get further from the current value ... taking the Cartesian product".


#: An action: window multiple, window increment (packets), intersend time (ms).
Action = tuple[float, float, float]

# Steps up and down must cancel, or a multiple of 1.0000000000000002 would be out of bounds.
_DECIMALS = 12
# A .dna file holds whole packets.
_INCREMENT_DECIMALS = 0


@dataclass(frozen=True)
class Component:
    """How one component of an action is varied."""

    minimum: float
    maximum: float
    first_step: float
    factor: float
    steps: int
    initial: float
    decimals: int

    def alternatives(self, current: float) -> list[float]:
        """`current` and the values at geometric distances from it, within bounds, ascending."""
        values = {current}
        step = self.first_step
        for _ in range(self.steps):
            for value in (current - step, current + step):
                # Adding zero turns -0.0 into 0.0.
                rounded = round(value, self.decimals) + 0.0
                if self.minimum <= rounded <= self.maximum:
                    values.add(rounded)
            step *= self.factor
        return sorted(values)


@dataclass(frozen=True)
class ActionGrid:
    """The search's grid of actions."""

    window_multiple: Component
    window_increment: Component
    intersend_ms: Component

    @property
    def initial(self) -> Action:
        """The first rule's action."""
        return (
            self.window_multiple.initial,
            self.window_increment.initial,
            self.intersend_ms.initial,
        )

    def neighbours(self, action: Action) -> list[Action]:
        """The actions to try in place of `action`, without itself, in a fixed order."""
        multiple, increment, intersend_ms = action
        product = itertools.product(
            self.window_multiple.alternatives(multiple),
            self.window_increment.alternatives(increment),
            self.intersend_ms.alternatives(intersend_ms),
        )
        return [candidate for candidate in product if candidate != action]


def action_grid(spec: spec_pb2.PaperSearch) -> ActionGrid:
    """The grid that a (complete) specification asks for."""
    return ActionGrid(
        window_multiple=_component(spec.window_multiple, _DECIMALS),
        window_increment=_component(spec.window_increment, _INCREMENT_DECIMALS),
        intersend_ms=_component(spec.intersend_ms, _DECIMALS),
    )


def _component(spec: spec_pb2.ActionGrid, decimals: int) -> Component:
    return Component(
        minimum=spec.minimum,
        maximum=spec.maximum,
        first_step=spec.first_step,
        factor=spec.factor,
        steps=spec.steps,
        initial=spec.initial,
        decimals=decimals,
    )


# What the steps of the paper's search have in common.


@dataclass(frozen=True)
class Context:
    """What a design fixes for all of its steps."""

    spec: spec_pb2.DesignSpec
    specimen_score: scoring.SpecimenScore
    streams: Streams
    grid: ActionGrid

    def request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: Sequence[evaluation_pb2.Candidate],
        specimens: int,
        recording: evaluation_pb2.Recording = evaluation_pb2.RECORDING_UNSPECIFIED,
    ) -> evaluation_pb2.EvaluationRequest:
        """A request whose networks and random draws are named by `purpose` and `path`."""
        return evaluation_pb2.EvaluationRequest(
            tables=[from_native(table)],
            candidates=candidates,
            specimens=self.streams.specimens(purpose, *path, count=specimens),
            duration_ms=self.spec.search.simulated_seconds * 1000,
            seed=self.streams.simulation_seed(purpose, *path),
            recording=recording,
        )

    def scores(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> list[list[float]]:
        """Paired scores by candidate and specimen."""
        return scoring.paired_scores(request, outcome, self.spec.objective, self.specimen_score)


# Where the paper's search stands: a value, and its message.


_PURPOSES = (
    progress_pb2.STEP_PURPOSE_COUNT_USES,
    progress_pb2.STEP_PURPOSE_IMPROVE,
    progress_pb2.STEP_PURPOSE_VALIDATE,
    progress_pb2.STEP_PURPOSE_SPLIT,
)


@dataclass(frozen=True)
class PaperState:
    """The state between two steps."""

    #: What the next step is for.
    purpose: progress_pb2.StepPurpose
    #: The global epoch.
    epoch: int
    #: The table that the epoch began with.
    epoch_table: RuleTable
    #: The same with all that the epoch has improved so far. Of the same structure: rules are split
    #: between epochs only.
    table: RuleTable
    #: The epoch of each rule.
    rule_epochs: tuple[int, ...]
    #: The rule being improved, while that is the purpose.
    rule: int = 0
    #: Rules taken up so far in this epoch; names the streams of their steps.
    visits: int = 0
    #: What this epoch has cost.
    effort: Effort = NO_EFFORT

    @classmethod
    def first(cls, table: RuleTable) -> PaperState:
        """The beginning, in epoch 0."""
        purpose = progress_pb2.STEP_PURPOSE_COUNT_USES
        return cls(purpose, 0, table, table, (0,) * table.rule_count)

    def next_epoch(self, purpose: progress_pb2.StepPurpose, table: RuleTable) -> PaperState:
        """The start of the next epoch with `table`. "Set all rules to the current epoch." """
        epoch = self.epoch + 1
        return PaperState(purpose, epoch, table, table, (epoch,) * table.rule_count)

    def with_structure(self, table: RuleTable) -> PaperState:
        """The same moment with another table, which has other rules."""
        return replace(
            self, epoch_table=table, table=table, rule_epochs=(self.epoch,) * table.rule_count
        )

    def to_message(self) -> checkpoint_pb2.PaperSearchState:
        """The state, bit by bit."""
        return checkpoint_pb2.PaperSearchState(
            purpose=self.purpose,
            epoch=self.epoch,
            epoch_table=from_native(self.epoch_table),
            changes=actions.differences(self.epoch_table, self.table),
            rule_epochs=self.rule_epochs,
            rule=self.rule,
            visits=self.visits,
            evaluations=self.effort.evaluations,
            simulated_packets=self.effort.simulated_packets,
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PaperSearchState) -> PaperState:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        try:
            epoch_table = to_native(message.epoch_table)
            table = actions.apply(epoch_table, message.changes)
        except (ValueError, IndexError) as error:
            raise CheckpointError(f"the checkpoint holds a broken table: {error}") from error
        rules = table.rule_count
        if message.purpose not in _PURPOSES or message.rule >= rules:
            raise CheckpointError("the checkpoint names a step that the paper's search never makes")
        if len(message.rule_epochs) != rules:
            raise CheckpointError(
                f"the checkpoint has epochs for {len(message.rule_epochs)} rules; "
                f"its table has {rules}"
            )
        return cls(
            purpose=message.purpose,
            epoch=message.epoch,
            epoch_table=epoch_table,
            table=table,
            rule_epochs=tuple(message.rule_epochs),
            rule=message.rule,
            visits=message.visits,
            effort=Effort(message.evaluations, message.simulated_packets),
        )


# The interface of one step of the paper's search.


class Step(Protocol):
    """A step: what it asks for, and where the search stands after the answer. Pure functions."""

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        """What is to be evaluated."""

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        """The next state, and what happened."""


# Step 2 of section 4.3: "Find the most-used rule in this epoch".


class ChooseRule:
    """ "Simulate the current RemyCC and see which rule in the current epoch receives the most use.

    If no such rules were used, go to step 4." Rules that nothing uses stay as they are.
    """

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        return context.request(
            progress_pb2.STEP_PURPOSE_COUNT_USES,
            state.epoch,
            state.visits,
            table=state.table,
            candidates=[actions.unchanged()],
            specimens=context.spec.search.specimens,
            recording=evaluation_pb2.RECORDING_USES,
        )

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        uses = total_uses(outcome.outcomes, state.table.rule_count)
        in_epoch = [rule for rule in by_use(uses) if state.rule_epochs[rule] == state.epoch]
        events = []
        if in_epoch:
            rule = in_epoch[0]
            events.append(
                progress_pb2.ProgressEvent(
                    rule_chosen=progress_pb2.RuleChosen(
                        rule=rule, uses=uses[rule], uses_of_all_rules=sum(uses)
                    )
                )
            )
            state = replace(
                state,
                purpose=progress_pb2.STEP_PURPOSE_IMPROVE,
                rule=rule,
                visits=state.visits + 1,
            )
        else:
            state = replace(state, purpose=progress_pb2.STEP_PURPOSE_VALIDATE)
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_COUNT_USES,
            rules=state.table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
            events=events,
        )
        return state, report


# Step 3 of section 4.3: "Improve that action until we can't anymore".


class ImproveAction:
    """One round: "evaluate roughly 100 candidate increments to the current action".

    Candidate 0 is the current action, so that every round compares like with like. The streams are
    named by the visit to the rule and not by the round: "If any of the candidates is an
    improvement, replace the action with the best new action and repeat the search, still with the
    same specimen networks and random seed."
    """

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        neighbours = context.grid.neighbours(state.table.action(state.rule))
        return context.request(
            progress_pb2.STEP_PURPOSE_IMPROVE,
            state.epoch,
            state.visits,
            table=state.table,
            candidates=[
                actions.unchanged(),
                *(actions.one_rule(state.rule, action) for action in neighbours),
            ],
            specimens=context.spec.search.specimens,
        )

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        scores = context.scores(request, outcome)
        best = _best(scores)
        gain = scoring.estimate_gain(scores[0], scores[best])
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_IMPROVE,
            rules=state.table.rule_count,
            score=scoring.estimate(scores[0]),
            gain=gain,
        )
        if best == 0:
            return _rule_done(state), report
        (change,) = request.candidates[best].actions.changes
        improved = progress_pb2.RuleImproved(
            rule=state.rule,
            before=action_message(state.table.action(state.rule)),
            after=change.action,
            gain=gain,
        )
        state = replace(state, table=actions.apply(state.table, request.candidates[best].actions))
        return state, replace(report, events=[progress_pb2.ProgressEvent(rule_improved=improved)])


def _best(scores: Sequence[Sequence[float]]) -> int:
    """The candidate with the highest mean; of equals the first, so that a tie is no improvement."""
    if not scores[0]:
        return 0
    means = [scoring.mean(row) for row in scores]
    return means.index(max(means))


def _rule_done(state: PaperState) -> PaperState:
    """ "Otherwise, increment the epoch number of the current rule and go back to step 2." """
    epochs = list(state.rule_epochs)
    epochs[state.rule] += 1
    return replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES, rule_epochs=tuple(epochs))


# Step 5 of section 4.3: "Subdivide the most-used rule".


class SplitRule:
    """ "Find the most-used rule, and the median memory value that triggers it. Split the rule at
    this point, producing eight new rules (one per dimension of the memory-space), each with the
    same action as before. Then return to step 1."

    One rule for each orthant around the point: 2^k with k signals. A rule too small to be divided
    on any signal leaves its turn to the next most-used one.
    """

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        return context.request(
            progress_pb2.STEP_PURPOSE_SPLIT,
            state.epoch,
            table=state.table,
            candidates=[actions.unchanged()],
            specimens=context.spec.search.specimens,
            recording=evaluation_pb2.RECORDING_MEMORY,
        )

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_SPLIT,
            rules=state.table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        state = replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES)
        split = split_most_used(state.table, outcome.outcomes)
        if split is None:
            return state, report
        table = state.table.split(split.rule, split.thresholds)
        return state.with_structure(table), replace(report, events=[split.event(table.rule_count)])


# Step 4 of section 4.3, "If we run out of rules in this epoch", behind a test of its own.
#
# The paper takes over whatever scored best on the 16 or so networks that it was chosen on. Here the
# epoch's table must also beat the one that the epoch began with on networks that had no part in the
# choice, or the epoch is rolled back.


class EndEpoch:
    """ "Increment the global epoch. If the new epoch is a multiple of a parameter, K, continue to
    step 5. Otherwise go back to step 1." """

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        return comparison_request(context, state, progress_pb2.STEP_PURPOSE_VALIDATE)

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        verdict = comparison_verdict(context, state, request, outcome)
        comparison = verdict.comparison
        record = progress_pb2.EpochRecord(
            epoch=state.epoch,
            rules=state.table.rule_count,
            rules_changed=len(actions.differences(state.epoch_table, state.table).changes),
            comparison=comparison,
            evaluations=state.effort.evaluations,
            simulated_packets=state.effort.simulated_packets,
        )
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            rules=state.table.rule_count,
            score=comparison.before if comparison.HasField("before") else None,
            gain=comparison.gain if comparison.HasField("gain") else None,
            epoch=record,
        )
        split_is_due = (state.epoch + 1) % context.spec.search.paper.epochs_per_split == 0
        purpose = (
            progress_pb2.STEP_PURPOSE_SPLIT
            if split_is_due
            else progress_pb2.STEP_PURPOSE_COUNT_USES
        )
        return state.next_epoch(purpose, verdict.table or state.epoch_table), report


def comparison_request(
    context: Context, state: PaperState, purpose: progress_pb2.StepPurpose
) -> evaluation_pb2.EvaluationRequest:
    """The epoch's first table (candidate 0) and its present one, on fresh specimens."""
    improved = actions.differences(state.epoch_table, state.table)
    candidates = [actions.unchanged()]
    if improved.changes:
        candidates.append(actions.several_rules(improved))
    return context.request(
        purpose,
        state.epoch,
        state.visits,
        table=state.epoch_table,
        candidates=candidates,
        specimens=context.spec.search.paper.validation_specimens,
    )


def comparison_verdict(
    context: Context,
    state: PaperState,
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
) -> Verdict:
    """Whether the epoch's present table may replace its first one."""
    scores = context.scores(request, outcome)
    comparison = scoring.compare(scores[0], scores[-1])
    table: RuleTable | None = state.table if comparison.accepted else None
    return Verdict(comparison, table)


# The paper's search (section 4.3) as a strategy: its steps, one after another.


_STEPS: dict[progress_pb2.StepPurpose, Step] = {
    progress_pb2.STEP_PURPOSE_COUNT_USES: ChooseRule(),
    progress_pb2.STEP_PURPOSE_IMPROVE: ImproveAction(),
    progress_pb2.STEP_PURPOSE_VALIDATE: EndEpoch(),
    progress_pb2.STEP_PURPOSE_SPLIT: SplitRule(),
}


class PaperSearch:
    """A greedy search, rule by rule. See `Strategy` for what the members promise."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        given: RuleTable | None = None,
        state: PaperState | None = None,
    ) -> None:
        grid = action_grid(spec.search.paper)
        self._context = Context(spec, specimen_score, Streams(spec), grid)
        # "Remy initializes a RemyCC with only a single rule."
        axes = [axis_of(signal) for signal in spec.signals]
        first = given or RuleTable(axes, [([], grid.initial)])
        self._state = state or PaperState.first(first)

    @classmethod
    def restore(
        cls,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        checkpoint: checkpoint_pb2.Checkpoint,
        given: RuleTable | None = None,
    ) -> PaperSearch:
        """The search that `save` wrote. Raises CheckpointError."""
        return cls(spec, specimen_score, given, PaperState.from_message(checkpoint.paper))

    def save(self, checkpoint: checkpoint_pb2.Checkpoint) -> None:
        checkpoint.paper.CopyFrom(self._state.to_message())

    @property
    def table(self) -> RuleTable:
        return self._state.epoch_table

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        # Looked at where a split is due, so that the last rules are honed as long as all others.
        state, stop = self._state, self._context.spec.stop
        split_is_due = state.purpose == progress_pb2.STEP_PURPOSE_SPLIT
        if split_is_due and stop.HasField("rules") and state.table.rule_count >= stop.rules:
            return progress_pb2.STOP_REASON_RULES
        return None

    @property
    def share_done(self) -> float | None:
        return None

    def request(self) -> evaluation_pb2.EvaluationRequest:
        return _STEPS[self._state.purpose].request(self._context, self._state)

    def receive(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> StepReport:
        state = self._state
        step = _STEPS[state.purpose]
        state = replace(state, effort=state.effort.with_outcome(outcome))
        self._state, report = step.receive(self._context, state, request, outcome)
        return report

    def closing_request(self) -> evaluation_pb2.EvaluationRequest | None:
        request = comparison_request(self._context, self._state, progress_pb2.STEP_PURPOSE_CLOSE)
        return request if len(request.candidates) > 1 else None

    def closing_verdict(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> Verdict:
        return comparison_verdict(self._context, self._state, request, outcome)
