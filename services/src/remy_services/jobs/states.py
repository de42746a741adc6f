"""The states of a job, what may be asked in each, and the changes of its record that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2, spec_pb2
from remy_proto.v1.job_pb2 import JobState
from remy_services.jobs.progress import come_to_rest

PENDING: Final = job_pb2.JOB_STATE_PENDING
SCHEDULING: Final = job_pb2.JOB_STATE_SCHEDULING
RUNNING: Final = job_pb2.JOB_STATE_RUNNING
PAUSING: Final = job_pb2.JOB_STATE_PAUSING
PAUSED: Final = job_pb2.JOB_STATE_PAUSED
RECOVERING: Final = job_pb2.JOB_STATE_RECOVERING
CANCELLING: Final = job_pb2.JOB_STATE_CANCELLING
CANCELLED: Final = job_pb2.JOB_STATE_CANCELLED
SUCCEEDED: Final = job_pb2.JOB_STATE_SUCCEEDED
FAILED: Final = job_pb2.JOB_STATE_FAILED

#: What may follow each state.
TRANSITIONS: Final[Mapping[JobState, frozenset[JobState]]] = {
    PENDING: frozenset({SCHEDULING, PAUSED, CANCELLED}),
    # A coordinator that ends, or a job of higher priority, sends a job back to wait.
    SCHEDULING: frozenset({RUNNING, PENDING, PAUSING, CANCELLING, FAILED}),
    # A design may end while it is asked to pause or to end.
    RUNNING: frozenset({PENDING, PAUSING, RECOVERING, CANCELLING, SUCCEEDED, FAILED}),
    PAUSING: frozenset({PAUSED, CANCELLING, SUCCEEDED, FAILED}),
    PAUSED: frozenset({PENDING, CANCELLED}),
    RECOVERING: frozenset({RUNNING, PENDING, PAUSING, CANCELLING, FAILED}),
    CANCELLING: frozenset({CANCELLED, SUCCEEDED, FAILED}),
    # Extended.
    CANCELLED: frozenset({PENDING}),
    SUCCEEDED: frozenset({PENDING}),
    # Its cause was put right.
    FAILED: frozenset({PENDING}),
}

#: Nothing happens to a job any more unless somebody asks for it.
FINAL: Final = frozenset({CANCELLED, SUCCEEDED, FAILED})
#: A coordinator is at work on the job, or was when it ended.
ACTIVE: Final = frozenset({SCHEDULING, RUNNING, PAUSING, RECOVERING, CANCELLING})
#: Waits for its turn.
WAITING: Final = frozenset({PENDING})


def name_of(state: JobState) -> str:
    """The state as it is shown to people: "RUNNING"."""
    return JobState.Name(state).removeprefix("JOB_STATE_")


class Operation(Enum):
    """What somebody asks of a job, as it is called in sentences."""

    PAUSE = "paused"
    RESUME = "resumed"
    CANCEL = "cancelled"
    EXTEND = "extended"
    DELETE = "deleted"


class NotNow(Exception):
    """The job's state does not allow it. One sentence for people."""


# The state that follows each state; the same one where nothing is left to do.
_FOLLOWING: Final[Mapping[Operation, Mapping[JobState, JobState]]] = {
    Operation.PAUSE: {
        PENDING: PAUSED,
        SCHEDULING: PAUSING,
        RUNNING: PAUSING,
        RECOVERING: PAUSING,
        PAUSING: PAUSING,
        PAUSED: PAUSED,
    },
    Operation.RESUME: {
        PAUSED: PENDING,
        FAILED: PENDING,
        PENDING: PENDING,
        SCHEDULING: SCHEDULING,
        RUNNING: RUNNING,
        RECOVERING: RECOVERING,
    },
    Operation.CANCEL: {
        PENDING: CANCELLED,
        PAUSED: CANCELLED,
        SCHEDULING: CANCELLING,
        RUNNING: CANCELLING,
        RECOVERING: CANCELLING,
        PAUSING: CANCELLING,
        CANCELLING: CANCELLING,
        CANCELLED: CANCELLED,
    },
    Operation.EXTEND: {
        PENDING: PENDING,
        SCHEDULING: SCHEDULING,
        RUNNING: RUNNING,
        RECOVERING: RECOVERING,
        PAUSED: PAUSED,
        SUCCEEDED: PENDING,
        CANCELLED: PENDING,
    },
    Operation.DELETE: {state: state for state in (PAUSED, *FINAL)},
}


def state_after(operation: Operation, state: JobState) -> JobState:
    """The state that the operation leads to from `state`; the same if it changes none.

    Raises NotNow where the state does not allow it.
    """
    following = _FOLLOWING[operation]
    if state not in following:
        allowed = ", ".join(name_of(each) for each in sorted(following))
        raise NotNow(
            f"a job that is {name_of(state)} cannot be {operation.value}; it must be one of "
            f"{allowed}"
        )
    return following[state]


class Draft:
    """Changes that are committed together. The record that it begins with stays as it is."""

    def __init__(self, record: job_pb2.JobRecord, now: Timestamp) -> None:
        self.record = job_pb2.JobRecord()
        self.record.CopyFrom(record)
        self.events: list[job_pb2.JobEvent] = []
        #: The designer's state to be kept with them; None: the last one stays the newest.
        self.snapshot: bytes | None = None
        #: New epochs, or those that take the place of others of their numbers.
        self.epochs: Sequence[job_pb2.JobEpoch] = ()
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

    def evaluated(self, first: int, outcomes: Sequence[bytes]) -> None:
        """The parts of an evaluation job from `first` on came to these."""
        self.epochs = [
            job_pb2.JobEpoch(
                record=progress_pb2.EpochRecord(epoch=number),
                part=job_pb2.EvaluatedPart(outcome=outcome),
                time=self._now,
            )
            for number, outcome in enumerate(outcomes, start=first)
        ]
        parts = self.record.job.progress.step = first + len(outcomes)
        self._add(job_pb2.JobEvent(parts_evaluated=job_pb2.PartsEvaluated(parts=parts)))

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

    def changed_priority(self, priority: int, by: str) -> None:
        """The job runs before others, or after them, from now on."""
        self.record.job.priority = priority
        self._add(job_pb2.JobEvent(budget_changed=job_pb2.BudgetChanged(priority=priority, by=by)))

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


_ENDED = "its coordinator ended"


def after_crash(draft: Draft) -> None:
    """Moves the job on to a state that a new coordinator can go on from."""
    match draft.job.state:
        case job_pb2.JOB_STATE_SCHEDULING:
            draft.move(PENDING, message=f"{_ENDED} before its first step")
        case job_pb2.JOB_STATE_RUNNING:
            draft.move(RECOVERING, message=f"{_ENDED}; its last checkpoint is being read")
        case job_pb2.JOB_STATE_PAUSING:
            draft.move(PAUSED)
        case job_pb2.JOB_STATE_CANCELLING:
            draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)


class JobObserver:
    """Is called in the event loop, and should return at once; jobs must not be modified. This one
    does nothing."""

    def state_changed(self, job: job_pb2.Job, before: JobState) -> None:
        """The change has been committed; `job` is as it is now."""

    def step(
        self, job: job_pb2.Job, request: evaluation_pb2.EvaluationRequest
    ) -> AbstractContextManager[None]:
        """Surrounds the evaluation of one request, and the step that its outcome makes."""
        return nullcontext()

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
