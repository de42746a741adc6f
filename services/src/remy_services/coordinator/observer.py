"""What a coordinator tells whoever watches it work: the one place for metrics, logs and traces."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from remy_farm.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_farm.v1.job_pb2 import JobState


class Observer(Protocol):
    """Is called in the event loop, and should return at once. Jobs must not be modified."""

    def state_changed(self, job: job_pb2.Job, before: JobState) -> None:
        """The change has been committed; `job` is as it is now."""

    def step(
        self, job: job_pb2.Job, request: evaluation_pb2.EvaluationRequest
    ) -> AbstractContextManager[None]:
        """Surrounds the evaluation of one request, and the step that its outcome makes."""

    def progressed(self, job: job_pb2.Job, event: progress_pb2.ProgressEvent) -> None:
        """The event has been committed."""

    def computed(self, job_id: str, seconds: float) -> None:
        """A designer has computed for so long."""

    def store_in_trouble(self, job_id: str, why: str) -> None:
        """A commit could not be made, and will be tried again."""

    def store_well_again(self, job_id: str) -> None:
        """That commit has been made."""

    def lost(self, job_id: str, why: str) -> None:
        """Another coordinator has the job now."""


class SilentObserver:
    """Tells nobody."""

    def state_changed(self, job: job_pb2.Job, before: JobState) -> None:
        pass

    def step(
        self, job: job_pb2.Job, request: evaluation_pb2.EvaluationRequest
    ) -> AbstractContextManager[None]:
        return nullcontext()

    def progressed(self, job: job_pb2.Job, event: progress_pb2.ProgressEvent) -> None:
        pass

    def computed(self, job_id: str, seconds: float) -> None:
        pass

    def store_in_trouble(self, job_id: str, why: str) -> None:
        pass

    def store_well_again(self, job_id: str) -> None:
        pass

    def lost(self, job_id: str, why: str) -> None:
        pass
