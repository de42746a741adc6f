import pytest

from remy_cli.design_progress import DesignProgress
from remy_cli.views import PlainView
from remy_proto.v1 import progress_pb2
from remy_services.jobs.formatting import describe_event

PROGRESS = progress_pb2.JobProgress(
    step=14,
    epoch=2,
    rules=8,
    candidates=125,
    candidates_done=77,
    simulated_packets=10,
    packets_per_second=12.34e6,
    wall_seconds=30,
    cpu_seconds=61,
    eta_seconds=100,
)


def changed(**fields: float | None) -> progress_pb2.JobProgress:
    """Returns PROGRESS with some fields replaced; None clears a field."""
    fields_before = {field.name: value for field, value in PROGRESS.ListFields()}
    return progress_pb2.JobProgress(**{**fields_before, **fields})


class PlainOutput:
    """Plain progress output of a design, with a clock that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0
        self.design = DesignProgress("demo", PlainView(clock=lambda: self.now))

    def report_after(self, seconds: float, progress: progress_pb2.JobProgress) -> None:
        self.now += seconds
        self.design.progress(progress)


def test_status_line_has_position_score_speed_and_eta(capsys: pytest.CaptureFixture[str]) -> None:
    output = PlainOutput()
    event = progress_pb2.ProgressEvent()
    event.step_finished.score.mean = -1.25
    event.step_finished.score.standard_error = 0.031
    output.design.event(event)
    output.report_after(11, PROGRESS)
    assert capsys.readouterr().err == (
        "epoch 2, 8 rules, step 14: 77 of 125 candidates, score -1.250 ± 0.031, "
        "12.3 M packets/s, 1 min 01 s CPU, ETA 1 min 40 s\n"
    )


def test_status_line_without_a_budget_has_no_eta(capsys: pytest.CaptureFixture[str]) -> None:
    output = PlainOutput()
    output.report_after(11, PROGRESS)
    output.report_after(11, changed(eta_seconds=None))
    first, second = capsys.readouterr().err.splitlines()
    assert "ETA" in first
    assert "ETA" not in second


def test_status_line_is_printed_at_most_every_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = PlainOutput()
    output.report_after(9, PROGRESS)
    assert capsys.readouterr().err == ""
    output.report_after(2, PROGRESS)
    assert capsys.readouterr().err != ""
    output.report_after(9, PROGRESS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("accepted", "ending"), [(True, "(gain +0.500 ± 0.010), kept"), (False, "rolled back")]
)
def test_epoch_sentence_says_whether_the_table_was_kept(accepted: bool, ending: str) -> None:
    event = progress_pb2.ProgressEvent()
    record = event.epoch_finished.record
    record.epoch, record.rules_changed = 3, 2
    record.comparison.accepted = accepted
    for estimate in (record.comparison.before, record.comparison.after, record.comparison.gain):
        estimate.mean, estimate.standard_error = 0.5, 0.01
    sentence = describe_event(event)
    assert sentence is not None
    assert sentence.startswith("epoch 3: 2 rules changed")
    assert sentence.endswith(ending)


def test_start_has_its_own_sentence() -> None:
    event = progress_pb2.ProgressEvent()
    record = event.epoch_finished.record
    record.epoch, record.rules_changed, record.start = 1, 1, 1
    for estimate in (record.comparison.before, record.comparison.after, record.comparison.gain):
        estimate.mean, estimate.standard_error = 0.5, 0.01
    assert describe_event(event) == (
        "start 1: score 0.500 ± 0.010 -> 0.500 ± 0.010 on the validation specimens "
        "(gain +0.500 ± 0.010)"
    )


def test_epoch_without_changes_has_no_comparison() -> None:
    event = progress_pb2.ProgressEvent()
    event.epoch_finished.record.epoch = 5
    assert describe_event(event) == "epoch 5: nothing to improve"


def test_final_sentence_reports_a_rolled_back_epoch() -> None:
    event = progress_pb2.ProgressEvent()
    event.design_finished.reason = progress_pb2.STOP_REASON_STEPS
    event.design_finished.closing.gain.mean = -0.5
    assert describe_event(event) == (
        "finished after 0 epochs because the number of steps allowed was made; "
        "the changes of the unfinished epoch were dropped (gain -0.5)"
    )


def test_a_climb_that_rests_is_told_of() -> None:
    event = progress_pb2.ProgressEvent()
    event.climb_rested.steps = 50
    assert describe_event(event) == ("the climb has stalled: no slope was significant for 50 steps")


def test_merged_rules_are_reported() -> None:
    event = progress_pb2.ProgressEvent()
    event.rules_merged.pairs, event.rules_merged.rules = 3, 13
    assert describe_event(event) == "3 pairs of rules merged: 13 rules"


def test_minor_event_has_no_sentence() -> None:
    event = progress_pb2.ProgressEvent()
    event.rule_improved.rule = 1
    assert describe_event(event) is None


def test_resumed_design_prints_its_step(capsys: pytest.CaptureFixture[str]) -> None:
    output = PlainOutput()
    output.design.started(0, resumed=False)
    assert capsys.readouterr().err == ""
    output.design.started(12, resumed=True)
    assert capsys.readouterr().err == "resumed after step 12\n"
