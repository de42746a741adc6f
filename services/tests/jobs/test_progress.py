"""Tests how job progress is updated from designer and events."""

from __future__ import annotations

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_proto.v1 import evaluation_pb2, progress_pb2
from remy_services.jobs.progress import (
    cost,
    epochs_without_gain,
    update_from_designer,
    update_from_events,
)


def _epoch(accepted: bool, *, short_climb: int | None = None) -> progress_pb2.EpochRecord:
    return progress_pb2.EpochRecord(
        comparison=progress_pb2.Comparison(accepted=accepted), start=short_climb
    )


@pytest.mark.parametrize(
    ("epochs", "count"),
    [
        ([], 0),
        ([_epoch(True)], 0),
        ([_epoch(False), _epoch(True), _epoch(False), _epoch(False)], 2),
        ([_epoch(False), _epoch(False)], 2),
        ([_epoch(True), _epoch(False), _epoch(False, short_climb=1)], 1),
        ([_epoch(True, short_climb=0), _epoch(False)], 1),
    ],
)
def test_epochs_without_gain_counts_the_latest_consecutive_ones(
    epochs: list[progress_pb2.EpochRecord], count: int
) -> None:
    assert epochs_without_gain(epochs) == count


def test_progress_matches_the_designer_throughout_a_design() -> None:
    evaluate = AnalyticEvaluator(noise=2.0).evaluate
    designer, progress = Designer(small_joint_spec()), progress_pb2.JobProgress()
    shares = []
    while (request := designer.next_request()) is not None:
        events = designer.receive(evaluate(request))
        update_from_events(progress, events)
        update_from_designer(progress, designer)
        shares.append(progress.share_done)
        finished = events[0].step_finished
        assert progress.step == events[0].step
        assert progress.score == finished.score
        assert progress.candidates == len(request.candidates)

    assert shares == sorted(shares)
    assert shares[-1] == 1
    last = designer.epochs[-1]
    assert progress.epoch == len(designer.epochs)
    assert progress.epoch_gain == last.comparison.gain
    published = last.comparison.after if last.comparison.accepted else last.comparison.before
    assert progress.validated_score == published
    assert progress.rules == designer.table.rule_count
    assert progress.evaluations == designer.evaluations > 0
    assert progress.simulated_packets == designer.simulated_packets > 0


def test_climb_without_significant_slope_reports_that_it_stalled() -> None:
    def evaluate(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationOutcome:
        outcome = evaluation_pb2.EvaluationOutcome()
        outcome.CopyFrom(AnalyticEvaluator().evaluate(request))
        outcome.scores = bytes(len(outcome.scores))
        return outcome

    designer, progress = Designer(small_joint_spec(edition=2, steps=60)), progress_pb2.JobProgress()
    stalls, stalled_now = [], []
    while (request := designer.next_request()) is not None:
        events = designer.receive(evaluate(request))
        update_from_designer(progress, designer)
        stalls += [event.climb_rested.steps for event in events if event.HasField("climb_rested")]
        stalled_now.append(progress.resting_steps)
    assert stalls == [50]
    assert sorted({*stalled_now}) == [0, *range(50, 61)]
    assert stalled_now == sorted(stalled_now)


def test_validated_score_ignores_rolled_back_tables() -> None:
    progress = progress_pb2.JobProgress()
    before, after = (progress_pb2.Estimate(mean=mean, standard_error=0.1) for mean in (-1, -2))
    record = progress_pb2.EpochRecord(
        comparison=progress_pb2.Comparison(before=before, after=after, accepted=False)
    )
    ended = progress_pb2.ProgressEvent(epoch_finished=progress_pb2.EpochFinished(record=record))
    update_from_events(progress, [ended])
    assert progress.validated_score == before
    closing = progress_pb2.Comparison(before=before, after=after, accepted=True)
    finished = progress_pb2.DesignFinished(closing=closing)
    update_from_events(progress, [progress_pb2.ProgressEvent(design_finished=finished)])
    assert progress.validated_score == after
    # A design that ends with a complete epoch has no closing validation.
    nothing = progress_pb2.DesignFinished()
    update_from_events(progress, [progress_pb2.ProgressEvent(design_finished=nothing)])
    assert progress.validated_score == after


def test_open_ended_searches_have_no_share_done() -> None:
    progress = progress_pb2.JobProgress(share_done=0.5)
    update_from_designer(progress, Designer(small_spec()))
    assert not progress.HasField("share_done")


def test_cost_of_cpu_time() -> None:
    assert cost(7200, 0.04) == pytest.approx(0.08)
