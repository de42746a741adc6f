"""Tests the paper's search sentence by sentence of section 4.3 of "TCP ex Machina"."""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator, bucket_of
from library.tests.designer.recorded_design import specimen_keys
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_farm.designer.scoring import paired, scores
from remy_proto.v1 import evaluation_pb2, progress_pb2
from remy_simulator import RuleTable
from remy_simulator.columns import memory_summaries, specimen_count
from remy_simulator.messages import axis_of, native_action, to_native

COUNT = progress_pb2.STEP_PURPOSE_COUNT_USES
IMPROVE = progress_pb2.STEP_PURPOSE_IMPROVE
VALIDATE = progress_pb2.STEP_PURPOSE_VALIDATE
SPLIT = progress_pb2.STEP_PURPOSE_SPLIT

_K = 2
SPEC = small_spec(epochs_per_split=_K, epochs=5)


@dataclass(frozen=True)
class Step:
    """One step of a design: its request, its outcome and its events."""

    purpose: progress_pb2.StepPurpose
    epoch: int
    request: evaluation_pb2.EvaluationRequest
    outcome: evaluation_pb2.EvaluationOutcome
    events: list[progress_pb2.ProgressEvent]

    @property
    def table(self) -> RuleTable:
        return to_native(self.request.tables[0])

    def event(self, kind: str) -> progress_pb2.ProgressEvent | None:
        return next((event for event in self.events if event.WhichOneof("event") == kind), None)

    def uses(self) -> list[int]:
        return list(self.outcome.rule_uses)

    def scores(self) -> list[list[float]]:
        """Returns scores by candidate, on the specimens on which all candidates have one."""
        return paired(scores(self.request, self.outcome, SPEC.objective))


@cache
def all_steps() -> list[Step]:
    """Returns all steps of a design."""
    designer, evaluator = Designer(SPEC), AnalyticEvaluator(noise=1.0)
    steps = []
    while (request := designer.next_request()) is not None:
        outcome = evaluator.evaluate(request)
        events = designer.receive(outcome)
        first = events[0]
        steps.append(Step(first.step_finished.purpose, first.epoch, request, outcome, events))
    return steps


def steps_for(purpose: progress_pb2.StepPurpose) -> list[Step]:
    return [step for step in all_steps() if step.purpose == purpose]


def visits() -> list[list[Step]]:
    """Returns the rounds of improving a rule, for each rule that was chosen."""
    rounds: list[list[Step]] = []
    for step in all_steps():
        if step.purpose == COUNT and step.event("rule_chosen"):
            rounds.append([])
        elif step.purpose == IMPROVE:
            rounds[-1].append(step)
    return rounds


def test_the_design_has_splits_improvements_and_rollbacks() -> None:
    assert len(steps_for(SPLIT)) == 2
    assert max(step.table.rule_count for step in all_steps()) >= 15
    assert max(len(rounds) for rounds in visits()) > 2
    ends = [step.event("epoch_finished") for step in steps_for(VALIDATE)]
    records = [event.epoch_finished.record for event in ends if event is not None]
    assert any(record.comparison.accepted for record in records)
    assert any(record.rules_changed and not record.comparison.accepted for record in records)


def test_drawing_16_or_more_network_specimens_and_simulating_100_seconds() -> None:
    """ "A single evaluation step ... consists of drawing 16 or more network specimens" """
    spec = small_spec(simulated_seconds=100)
    request = Designer(spec).next_request()
    assert request is not None
    assert specimen_count(request) == spec.search.specimens >= 16
    assert request.duration_ms == 100_000


def test_the_objective_of_each_sender_produces_an_overall_figure_of_merit() -> None:
    """ "the objective function for each sender ... is totaled" (here: averaged)"""
    for step in steps_for(IMPROVE)[:3]:
        rows = step.scores()
        score = step.events[0].step_finished.score
        assert score.mean == pytest.approx(sum(rows[0]) / len(rows[0]))


def test_remy_initializes_a_remycc_with_only_a_single_rule() -> None:
    """ "Any values of the three state variables ... are mapped to a default action" """
    table = Designer(SPEC).table
    paper = SPEC.search.paper
    assert table.rule_count == 1
    assert table.action(0) == (
        paper.window_multiple.initial,
        paper.window_increment.initial,
        paper.intersend_ms.initial,
    )


def test_the_global_epoch_is_initialized_to_0() -> None:
    assert Designer(SPEC).epoch == 0


def test_set_all_rules_to_the_current_epoch() -> None:
    """In a new epoch any rule may be chosen again, so the most-used one comes first."""
    for epoch in range(5):
        first = next(step for step in steps_for(COUNT) if step.epoch == epoch)
        chosen = first.event("rule_chosen")
        assert chosen is not None
        assert first.uses()[chosen.rule_chosen.rule] == max(first.uses())


def test_see_which_rule_in_the_current_epoch_receives_the_most_use() -> None:
    done: dict[int, set[int]] = {}
    for step in steps_for(COUNT):
        chosen = step.event("rule_chosen")
        if chosen is None:
            continue
        rule, uses = chosen.rule_chosen.rule, step.uses()
        in_epoch = [r for r in range(len(uses)) if r not in done.setdefault(step.epoch, set())]
        assert rule == max(in_epoch, key=lambda r: (uses[r], -r))
        assert chosen.rule_chosen.uses == uses[rule] > 0
        done[step.epoch].add(rule)


def test_simulate_the_current_remycc() -> None:
    """Uses are counted in the table with the epoch's improvements so far."""
    for step in steps_for(COUNT):
        assert len(step.request.candidates) == 1
        assert not step.request.candidates[0].actions.changes
    improved = next(step for step in all_steps() if step.event("rule_improved"))
    following = all_steps()[all_steps().index(improved) + 1 :]
    counted = next(step for step in following if step.purpose == COUNT)
    assert counted.table != improved.table


def test_if_no_such_rules_were_used_go_to_step_4() -> None:
    for step, following in pairwise(all_steps()):
        if step.purpose == COUNT:
            assert following.purpose == (IMPROVE if step.event("rule_chosen") else VALIDATE)


def test_unused_rules_are_not_improved() -> None:
    for step in steps_for(COUNT):
        if step.event("rule_chosen") is None:
            improved = {
                s.request.candidates[1].actions.changes[0].rule
                for s in steps_for(IMPROVE)
                if s.epoch == step.epoch
            }
            assert all(rule in improved for rule, uses in enumerate(step.uses()) if uses)


def test_focus_on_this_rule() -> None:
    """ "Focus on this rule and find the best action for it." """
    for step in steps_for(IMPROVE):
        changed = [candidate.actions.changes for candidate in step.request.candidates]
        assert len(changed[0]) == 0
        assert {len(changes) for changes in changed[1:]} == {1}
        assert len({changes[0].rule for changes in changed[1:]}) == 1


def test_draw_at_least_16_network_specimens_for_each_chosen_rule() -> None:
    keys = [key for rounds in visits() for key in specimen_keys(rounds[0].request)]
    assert len(keys) == len(set(keys)) == 16 * len(visits())


def test_the_modified_action_is_substituted_into_all_senders() -> None:
    for step in steps_for(IMPROVE):
        assert len(step.request.tables) == 1
        for kind in step.request.specimen_columns.kinds:
            assert {group.table for group in kind.senders} == {0}


def test_the_same_random_seed_and_specimens_for_each_candidate_and_round() -> None:
    """ "repeat the search, still with the same specimen networks and random seed" """
    for rounds in visits():
        first = rounds[0].request
        for step in rounds[1:]:
            assert step.request.seed == first.seed
            assert step.request.specimen_columns == first.specimen_columns
    seeds = [rounds[0].request.seed for rounds in visits()]
    assert len(set(seeds)) == len(seeds)


def test_if_any_of_the_candidates_is_an_improvement_the_best_replaces_the_action() -> None:
    for rounds in visits():
        for step, following in pairwise(rounds):
            rows = step.scores()
            best = max(range(len(rows)), key=lambda number: (sum(rows[number]), -number))
            (change,) = step.request.candidates[best].actions.changes
            event = step.event("rule_improved")
            assert event is not None
            assert event.rule_improved.after == change.action
            assert following.table == step.table.with_action(
                change.rule, native_action(change.action)
            )


def test_otherwise_increment_the_epoch_of_the_rule_and_go_back_to_step_2() -> None:
    for rounds in visits():
        last = rounds[-1]
        rows = last.scores()
        assert max(sum(row) for row in rows) == sum(rows[0])
        assert last.event("rule_improved") is None
        assert all_steps()[all_steps().index(last) + 1].purpose == COUNT


def test_each_rule_is_chosen_once_an_epoch() -> None:
    chosen = [
        (step.epoch, event.rule_chosen.rule)
        for step in steps_for(COUNT)
        if (event := step.event("rule_chosen"))
    ]
    assert len(chosen) == len(set(chosen))


def test_if_we_run_out_of_rules_increment_the_global_epoch() -> None:
    for step, following in pairwise(all_steps()):
        assert following.epoch == step.epoch + (step.purpose == VALIDATE)


def test_if_the_new_epoch_is_a_multiple_of_k_continue_to_step_5() -> None:
    for step, following in pairwise(all_steps()):
        if step.purpose == VALIDATE:
            assert following.purpose == (SPLIT if following.epoch % _K == 0 else COUNT)
    assert [step.epoch for step in steps_for(SPLIT)] == [2, 4]


def test_subdivide_the_most_used_rule() -> None:
    for step in steps_for(SPLIT):
        event = step.event("rule_split")
        assert event is not None
        uses = step.uses()
        assert uses[event.rule_split.rule] == max(uses)


def test_split_at_the_median_memory_value_that_triggers_it() -> None:
    """Half of the rule's look-ups lie on either side of the point, on every signal."""
    step = steps_for(SPLIT)[0]
    event = step.event("rule_split")
    assert event is not None
    for threshold in event.rule_split.thresholds:
        axis = axis_of(threshold.signal)
        buckets, counts = memory_summaries(step.outcome)[event.rule_split.rule, axis]
        limit = bucket_of(axis, threshold.value)
        below = sum(count for bucket, count in zip(buckets, counts, strict=True) if bucket < limit)
        assert below == pytest.approx(sum(counts) / 2, rel=0.1)


def test_producing_eight_new_rules_each_with_the_same_action_as_before() -> None:
    for step in steps_for(SPLIT):
        event = step.event("rule_split")
        assert event is not None
        rule, before = event.rule_split.rule, step.table
        after = all_steps()[all_steps().index(step) + 1].table
        assert after.rule_count == before.rule_count + 7
        assert {after.action(rule + child) for child in range(8)} == {before.action(rule)}
        untouched = [r for r in range(after.rule_count) if not rule <= r < rule + 8]
        assert [after.action(r) for r in untouched] == [
            before.action(r) for r in range(before.rule_count) if r != rule
        ]


def test_then_return_to_step_1() -> None:
    for step, following in pairwise(all_steps()):
        if step.purpose == SPLIT:
            assert following.purpose == COUNT


def test_validation_specimens_are_not_used_by_other_steps() -> None:
    """Not in the paper: the validation at the end of every epoch."""
    seen: set[int] = set()
    for step in all_steps():
        keys = set(specimen_keys(step.request))
        if step.purpose == VALIDATE:
            assert len(keys) == SPEC.search.paper.validation_specimens
            assert not keys & seen
        seen |= keys


def test_an_epoch_without_gain_in_validation_is_rolled_back() -> None:
    for step in steps_for(VALIDATE):
        event = step.event("epoch_finished")
        assert event is not None
        comparison = event.epoch_finished.record.comparison
        assert comparison.accepted == (comparison.gain.mean > 0)
        following = all_steps().index(step) + 1
        if following < len(all_steps()) and not comparison.accepted:
            assert all_steps()[following].table == step.table
