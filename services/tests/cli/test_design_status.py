import pytest

from remy_cli.design_progress import DesignProgress
from remy_cli.views import PlainView
from remy_proto.v1 import progress_pb2
from remy_services.jobs.wording import event_sentence

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
    """PROGRESS with other fields; None is absent."""
    told = {field.name: value for field, value in PROGRESS.ListFields()}
    return progress_pb2.JobProgress(**{**told, **fields})


class Lines:
    """What a design says in plain lines, by a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.design = DesignProgress("demo", PlainView(clock=lambda: self.now))

    def after(self, seconds: float, progress: progress_pb2.JobProgress) -> None:
        self.now += seconds
        self.design.progress(progress)


def test_the_status_has_all_that_a_user_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    event = progress_pb2.ProgressEvent()
    event.step_finished.score.mean = -1.25
    event.step_finished.score.standard_error = 0.031
    lines.design.event(event)
    lines.after(11, PROGRESS)
    assert capsys.readouterr().err == (
        "epoch 2, 8 rules, step 14: 77 of 125 candidates, score -1.250 ± 0.031, "
        "12.3 M packets/s, 1 min 01 s CPU, ETA 1 min 40 s\n"
    )


def test_without_a_budget_there_is_no_eta(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.after(11, PROGRESS)
    lines.after(11, changed(eta_seconds=None))
    first, second = capsys.readouterr().err.splitlines()
    assert "ETA" in first
    assert "ETA" not in second


def test_before_the_first_step_and_soon_after_a_line_there_is_nothing_to_tell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines()
    lines.after(9, PROGRESS)
    assert capsys.readouterr().err == ""
    lines.after(2, PROGRESS)
    assert capsys.readouterr().err != ""
    lines.after(9, PROGRESS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("accepted", "words"), [(True, "(gain +0.500 ± 0.010), kept"), (False, "rolled back")]
)
def test_an_epoch_says_whether_its_table_was_kept(accepted: bool, words: str) -> None:
    event = progress_pb2.ProgressEvent()
    record = event.epoch_finished.record
    record.epoch, record.rules_changed = 3, 2
    record.comparison.accepted = accepted
    for estimate in (record.comparison.before, record.comparison.after, record.comparison.gain):
        estimate.mean, estimate.standard_error = 0.5, 0.01
    sentence = event_sentence(event)
    assert sentence is not None
    assert sentence.startswith("epoch 3: 2 rules changed")
    assert sentence.endswith(words)


def test_a_start_is_told_from_an_epoch() -> None:
    event = progress_pb2.ProgressEvent()
    record = event.epoch_finished.record
    record.epoch, record.rules_changed, record.start = 1, 1, 1
    for estimate in (record.comparison.before, record.comparison.after, record.comparison.gain):
        estimate.mean, estimate.standard_error = 0.5, 0.01
    assert event_sentence(event) == (
        "start 1: score 0.500 ± 0.010 -> 0.500 ± 0.010 on the validation specimens "
        "(gain +0.500 ± 0.010)"
    )


def test_an_epoch_that_changed_nothing_has_no_comparison_to_show() -> None:
    event = progress_pb2.ProgressEvent()
    event.epoch_finished.record.epoch = 5
    assert event_sentence(event) == "epoch 5: nothing to improve"


def test_the_end_says_what_became_of_an_unfinished_epoch() -> None:
    event = progress_pb2.ProgressEvent()
    event.design_finished.reason = progress_pb2.STOP_REASON_STEPS
    event.design_finished.closing.gain.mean = -0.5
    assert event_sentence(event) == (
        "finished after 0 epochs because the number of steps allowed was made; "
        "the changes of the unfinished epoch were dropped (gain -0.5)"
    )


def test_a_climb_that_rests_is_told_of() -> None:
    event = progress_pb2.ProgressEvent()
    event.climb_rested.steps = 50
    assert event_sentence(event) == (
        "the climb rests, as for 50 steps no slope has stood out of its noise"
    )


def test_merged_rules_are_told_of() -> None:
    event = progress_pb2.ProgressEvent()
    event.rules_merged.pairs, event.rules_merged.rules = 3, 13
    assert event_sentence(event) == "3 pairs of rules merged: 13 rules"


def test_small_events_only_move_the_status() -> None:
    event = progress_pb2.ProgressEvent()
    event.rule_improved.rule = 1
    assert event_sentence(event) is None


def test_a_run_that_goes_on_says_from_where(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.design.started(0, resumed=False)
    assert capsys.readouterr().err == ""
    lines.design.started(12, resumed=True)
    assert capsys.readouterr().err == "resumed after step 12\n"
