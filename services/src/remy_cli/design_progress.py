"""Passes the progress of a design in this process to a view."""

from __future__ import annotations

from remy_cli.views import ProgressView
from remy_farm.driver import DesignObserver
from remy_proto.v1 import job_pb2, progress_pb2


class DesignProgress(DesignObserver):
    """Shows a design in this process like a coordinator's job."""

    def __init__(self, name: str, view: ProgressView) -> None:
        self._view = view
        self._job = job_pb2.Job(name=name, state=job_pb2.JOB_STATE_RUNNING)

    def started(self, steps: int, *, resumed: bool) -> None:
        if resumed:
            self._view.milestone(f"resumed after step {steps}")

    def progress(self, progress: progress_pb2.JobProgress) -> None:
        self._job.progress.ClearField("eta_seconds")
        self._job.progress.MergeFrom(progress)
        self._view.show_job(self._job)

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        if event.HasField("step_finished") and event.step_finished.HasField("score"):
            self._job.progress.score.CopyFrom(event.step_finished.score)
        self._view.show_event(job_pb2.JobEvent(progress=event))
