"""Tests the collection of a design's history from its events."""

from library.tests.analysis.small_design import small_events
from remy_farm.analysis.history import collect_history
from remy_proto.v1 import progress_pb2


def test_history_has_the_steps_that_improve_a_rule_by_visit() -> None:
    history = collect_history(small_events())
    assert [(point.step, point.visit) for point in history.steps] == [(2, 0), (5, 1)]


def test_epochs_splits_and_stalls_have_their_step() -> None:
    history = collect_history(small_events())
    assert [epoch.step for epoch in history.epochs] == [3, 6]
    assert [(split.step, split.rules) for split in history.splits] == [(3, 4)]
    stall = progress_pb2.ClimbRested(steps=50)
    history = collect_history([progress_pb2.ProgressEvent(step=70, climb_rested=stall)])
    assert history.stalls == [(70, 50)]


def test_merges_have_their_step() -> None:
    merged = progress_pb2.RulesMerged(pairs=3, rules=13)
    event = progress_pb2.ProgressEvent(sequence=1, step=7, rules_merged=merged)
    history = collect_history([event])
    assert [(merge.step, merge.rules) for merge in history.merges] == [(7, 13)]


def test_packets_simulations_and_times_are_summed() -> None:
    history = collect_history(small_events())
    assert history.simulated_packets == 6 * 1000
    assert history.evaluations == 6 * 27 * 16
    assert history.cpu_seconds[-1] == (6, 6.0)
    assert history.wall_seconds == 3.0
    assert history.finished is not None


def test_a_design_without_events_has_an_empty_history() -> None:
    history = collect_history([])
    assert not history.steps
    assert not history.epochs
    assert history.finished is None
