"""A change of a job in the making: its new record, and the entries of its history that say why."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.v1 import job_pb2, progress_pb2, spec_pb2
from remy_farm.v1.job_pb2 import JobState
from remy_services.jobs.progress import come_to_rest
from remy_services.jobs.states import (
    ACTIVE,
    CANCELLED,
    FINAL,
    PAUSED,
    PAUSING,
    RUNNING,
    TRANSITIONS,
    name_of,
)


class Draft:
    """Changes that are committed together. The record that it begins with stays as it is."""

    def __init__(self, record: job_pb2.JobRecord, now: Timestamp) -> None:
        self.record = job_pb2.JobRecord()
        self.record.CopyFrom(record)
        self.events: list[job_pb2.JobEvent] = []
        self._now = now

    @property
    def job(self) -> job_pb2.Job:
        """The job as it will be."""
        return self.record.job

    def move(self, to: JobState, *, message: str = "", by: str = "") -> None:
        """Changes the job's state. Raises ValueError if that one does not follow the present one.

        `message` is one sentence for people, `by` who asked for it.
        """
        job = self.record.job
        if job.state and to not in TRANSITIONS[job.state]:
            raise ValueError(f"a job that is {name_of(job.state)} cannot become {name_of(to)}")
        changed = job_pb2.StateChanged(to=to, message=message, by=by)
        setattr(changed, "from", job.state)
        job.state = to
        job.status_message = message
        if to == RUNNING and not job.HasField("start_time"):
            job.start_time.CopyFrom(self._now)
        if to in FINAL:
            job.end_time.CopyFrom(self._now)
        else:
            for field in ("end_time", "stop_reason", "failure_reason"):
                job.ClearField(field)
        if to not in ACTIVE:
            come_to_rest(job.progress)
        self._add(job_pb2.JobEvent(state_changed=changed))

    def rest(self, *, message: str, by: str) -> None:
        """Pauses a job that nobody is at work on any more, whatever its state says."""
        if PAUSED not in TRANSITIONS[self.job.state]:
            self.move(PAUSING, message=message, by=by)
        self.move(PAUSED, message=message, by=by)

    def cancel(self, *, by: str) -> None:
        """Somebody ended the job, which was not at work."""
        self.move(CANCELLED, by=by)
        self.record.job.stop_reason = progress_pb2.STOP_REASON_CANCELLED

    def finish(self, reason: progress_pb2.StopReason, to: JobState) -> None:
        """The design has come to its end, for this reason."""
        self.move(to)
        self.record.job.stop_reason = reason

    def fail(self, reason: job_pb2.FailureReason, message: str, to: JobState) -> None:
        """The job cannot go on."""
        self.move(to, message=message)
        self.record.job.failure_reason = reason

    def made_progress(self, events: Sequence[progress_pb2.ProgressEvent]) -> None:
        """The designer reported these."""
        for event in events:
            self._add(job_pb2.JobEvent(progress=event))

    def recovered(self, step: int, coordinator: str) -> None:
        """A coordinator took the job up where its last snapshot left it."""
        self.record.job.progress.recoveries += 1
        self._add(job_pb2.JobEvent(recovered=job_pb2.Recovered(step=step, coordinator=coordinator)))

    def refused_snapshot(self, revision: int, why: str) -> None:
        """The snapshot that was committed with `revision` cannot be used."""
        refused = job_pb2.SnapshotRefused(snapshot_revision=revision, why=why)
        self._add(job_pb2.JobEvent(snapshot_refused=refused))

    def changed_budget(self, spec: spec_pb2.DesignSpec, by: str) -> None:
        """The job's specification differs in its budgets from now on."""
        self.record.job.spec.CopyFrom(spec)
        self._changed_budget(by)

    def measured_length(self, spec: spec_pb2.DesignSpec) -> None:
        """A budget of CPU time has come to a number of steps, which `spec` has."""
        job = self.record.job
        job.spec.search.CopyFrom(spec.search)
        self._changed_budget(by="")

    def _changed_budget(self, by: str) -> None:
        spec = self.record.job.spec
        changed = job_pb2.BudgetChanged(stop=spec.stop, joint_steps=spec.search.joint.steps, by=by)
        self._add(job_pb2.JobEvent(budget_changed=changed))

    def _add(self, event: job_pb2.JobEvent) -> None:
        job = self.record.job
        job.revision += 1
        event.revision = job.revision
        event.time.CopyFrom(self._now)
        self.events.append(event)
