"""Tests the views of a watched job with constructed updates."""

import io

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.live import Live

from remy_cli.views import LiveView, PlainView
from remy_proto.v1 import job_pb2, progress_pb2
from remy_services.jobs.formatting import describe_history, describe_state

RUNNING, PAUSED = job_pb2.JOB_STATE_RUNNING, job_pb2.JOB_STATE_PAUSED


def job(**figures: float) -> job_pb2.Job:
    progress = progress_pb2.JobProgress(
        epoch=3,
        rules=12,
        step=140,
        candidates=60,
        candidates_done=20,
        score=progress_pb2.Estimate(mean=-0.5, standard_error=0.02, specimens=16),
    )
    for name, value in figures.items():
        setattr(progress, name, value)
    return job_pb2.Job(id="j1", name="demo", state=RUNNING, progress=progress)


def step(revision: int, score: float) -> job_pb2.JobEvent:
    finished = progress_pb2.StepFinished(score=progress_pb2.Estimate(mean=score))
    return job_pb2.JobEvent(
        revision=revision, progress=progress_pb2.ProgressEvent(step_finished=finished)
    )


def changed(to: job_pb2.JobState, **more: str) -> job_pb2.JobEvent:
    return job_pb2.JobEvent(state_changed=job_pb2.StateChanged(to=to, **more))


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (step(1, 0.5), None),
        (changed(RUNNING), "running"),
        (changed(PAUSED, by="ann", message="lunch"), "paused by ann: lunch"),
        (
            job_pb2.JobEvent(recovered=job_pb2.Recovered(step=7, coordinator="c2")),
            "recovered after step 7 by c2",
        ),
        (
            job_pb2.JobEvent(
                snapshot_refused=job_pb2.SnapshotRefused(snapshot_revision=9, why="its hash")
            ),
            "snapshot of revision 9 skipped: its hash",
        ),
        (job_pb2.JobEvent(budget_changed=job_pb2.BudgetChanged(by="bob")), "budget changed by bob"),
        (job_pb2.JobEvent(), None),
    ],
)
def test_history_sentence_of_an_event(event: job_pb2.JobEvent, sentence: str | None) -> None:
    assert describe_history(event) == sentence


@pytest.mark.parametrize("reason", job_pb2.FailureReason.values()[1:])
def test_every_failure_reason_has_a_sentence(reason: job_pb2.FailureReason) -> None:
    failed = job_pb2.Job(state=job_pb2.JOB_STATE_FAILED, failure_reason=reason)
    assert describe_state(failed).startswith("failed: ")
    assert "does not know" not in describe_state(failed)


class Screen:
    """A terminal that is refreshed when the test reads it, not by a clock."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
        console = Console(file=self._file, force_terminal=True, width=100, color_system=None)
        self.live = Live(console=console, auto_refresh=False)

    def text(self) -> str:
        self.live.refresh()
        self._file.flush()
        assert isinstance(self._file.buffer, io.BytesIO)
        return self._file.buffer.getvalue().decode(self._file.encoding)


def test_live_view_shows_progress() -> None:
    screen = Screen()
    with screen.live:
        view = LiveView(screen.live)
        for revision, score in enumerate((-3.0, -2.0, -1.0), start=1):
            view.show_event(step(revision, score), is_past=True)
        view.show_job(job(share_done=0.35, packets_per_second=2.5e6, workers=4, eta_seconds=90))
        text = screen.text()
    for expected in (
        "demo (j1) running",
        "epoch 3, 12 rules, step 140",
        "35%, 20 of 60 candidates",
        "score ▁▅█ -0.500 ± 0.020",
        "2.5 M packets/s",
        "4 workers",
        "ETA 1 min 30 s",
    ):
        assert expected in text


def test_live_view_in_ascii() -> None:
    screen = Screen("ascii")
    with screen.live:
        view = LiveView(screen.live)
        for revision, score in enumerate((1.0, 2.0), start=1):
            view.show_event(step(revision, score), is_past=True)
        view.show_job(job())
        assert "score _@ -0.500" in screen.text()


def test_live_view_shows_a_lost_connection() -> None:
    screen = Screen()
    with screen.live:
        view = LiveView(screen.live)
        view.show_job(job())
        view.connection_lost("nobody there")
        assert "nobody there; retrying" in screen.text()
        before = len(screen.text())
        view.connection_restored()
        assert "retrying" not in screen.text()[before:].rpartition("demo (j1)")[2]


def test_plain_view_prints_lines(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView()
    view.show_event(changed(RUNNING), is_past=True)
    view.show_job(job())
    view.show_event(changed(PAUSED), is_past=False)
    view.connection_lost("nobody there")
    view.connection_restored()
    assert capsys.readouterr().err.splitlines() == [
        "paused",
        "nobody there; retrying",
        "the coordinator is reachable again",
    ]


def test_plain_view_of_a_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView()
    first, second = job_pb2.Job(id="1", name="a"), job_pb2.Job(id="2", name="b")
    first.state = second.state = job_pb2.JOB_STATE_PENDING
    view.show_campaign([first, second])
    view.connection_lost("nobody there")
    view.connection_lost("nobody there")
    second.state = RUNNING
    view.show_campaign([first, second])
    assert capsys.readouterr().err.splitlines() == [
        "a is pending",
        "b is pending",
        "nobody there; retrying",
        "b is running",
    ]


def test_live_view_of_a_campaign() -> None:
    screen = Screen()
    ended = job_pb2.Job(
        id="1", name="a", state=job_pb2.JOB_STATE_SUCCEEDED, create_time=Timestamp(seconds=1)
    )
    with screen.live:
        LiveView(screen.live).show_campaign([ended, job()])
        text = screen.text()
    assert "1 of 2 ended: 1 running, 1 succeeded" in text
    assert "demo" in text
