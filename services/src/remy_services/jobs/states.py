"""Job states, the operations allowed in each, and edits of a job's record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2, spec_pb2
from remy_proto.v1.job_pb2 import JobState
from remy_services.jobs.progress import clear_live_fields

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

#: Allowed successors of each state.
TRANSITIONS: Final[Mapping[JobState, frozenset[JobState]]] = {
    PENDING: frozenset({SCHEDULING, PAUSED, CANCELLED}),
    # A coordinator that shuts down, or a job of higher priority, returns a job to the queue.
    SCHEDULING: frozenset({RUNNING, PENDING, PAUSING, CANCELLING, FAILED}),
    # A design may finish while a pause or cancellation is pending.
    RUNNING: frozenset({PENDING, PAUSING, RECOVERING, CANCELLING, SUCCEEDED, FAILED}),
    PAUSING: frozenset({PAUSED, CANCELLING, SUCCEEDED, FAILED}),
    PAUSED: frozenset({PENDING, CANCELLED}),
    RECOVERING: frozenset({RUNNING, PENDING, PAUSING, CANCELLING, FAILED}),
    CANCELLING: frozenset({CANCELLED, SUCCEEDED, FAILED}),
    # With new budgets.
    CANCELLED: frozenset({PENDING}),
    SUCCEEDED: frozenset({PENDING}),
    # Resumed after the cause of the failure was fixed.
    FAILED: frozenset({PENDING}),
}

#: A job in these states changes only on request.
FINAL: Final = frozenset({CANCELLED, SUCCEEDED, FAILED})
#: A coordinator runs the job, or did until it crashed.
ACTIVE: Final = frozenset({SCHEDULING, RUNNING, PAUSING, RECOVERING, CANCELLING})
#: The job is queued.
WAITING: Final = frozenset({PENDING})


def name_of(state: JobState) -> str:
    """Returns the state's name without prefix, such as "RUNNING"."""
    return JobState.Name(state).removeprefix("JOB_STATE_")


class Operation(Enum):
    """An operation on a job. The value is its participle in error messages."""

    PAUSE = "paused"
    RESUME = "resumed"
    CANCEL = "cancelled"
    EXTEND = "extended"
    DELETE = "deleted"


class WrongState(Exception):
    """The job's state does not allow the operation. The message is one sentence for users."""


# State after each operation, by present state. An unchanged state means that nothing is left to do.
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
    """Returns the state after an operation in `state`, which may be unchanged.

    Raises WrongState if the state does not allow the operation.
    """
    following = _FOLLOWING[operation]
    if state not in following:
        allowed = ", ".join(name_of(each) for each in sorted(following))
        raise WrongState(
            f"a job in state {name_of(state)} cannot be {operation.value}; its state must be one "
            f"of {allowed}"
        )
    return following[state]


class Draft:
    """Collects changes of a job's record that are committed together; copies the given record."""

    def __init__(self, record: job_pb2.JobRecord, now: Timestamp) -> None:
        self.record = job_pb2.JobRecord()
        self.record.CopyFrom(record)
        self.events: list[job_pb2.JobEvent] = []
        #: New designer snapshot; None keeps the previous one.
        self.snapshot: bytes | None = None
        #: New epochs; an epoch with an existing number replaces it.
        self.epochs: Sequence[job_pb2.JobEpoch] = ()
        self._now = now

    @property
    def job(self) -> job_pb2.Job:
        """The job with all changes so far."""
        return self.record.job

    def move(self, to: JobState, *, message: str = "", by: str = "") -> None:
        """Changes the job's state. Raises ValueError if the transition is not allowed.

        `message` is one sentence for users; `by` is the caller who asked for the change.
        """
        job = self.record.job
        if job.state and to not in TRANSITIONS[job.state]:
            raise ValueError(f"a job in state {name_of(job.state)} cannot change to {name_of(to)}")
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
            clear_live_fields(job.progress)
        self._add(job_pb2.JobEvent(state_changed=changed))

    def pause_inactive(self, *, message: str, by: str) -> None:
        """Pauses a job that no coordinator runs, from any non-final state."""
        if PAUSED not in TRANSITIONS[self.job.state]:
            self.move(PAUSING, message=message, by=by)
        self.move(PAUSED, message=message, by=by)

    def cancel(self, *, by: str) -> None:
        """Cancels a job that is not running."""
        self.move(CANCELLED, by=by)
        self.record.job.stop_reason = progress_pb2.STOP_REASON_CANCELLED

    def finish(self, reason: progress_pb2.StopReason, to: JobState) -> None:
        """Ends the job with a stop reason."""
        self.move(to)
        self.record.job.stop_reason = reason

    def fail(self, reason: job_pb2.FailureReason, message: str, to: JobState) -> None:
        """Ends the job with a failure reason."""
        self.move(to, message=message)
        self.record.job.failure_reason = reason

    def add_progress_events(self, events: Sequence[progress_pb2.ProgressEvent]) -> None:
        """Adds progress events to the history."""
        for event in events:
            self._add(job_pb2.JobEvent(progress=event))

    def add_outcomes(self, first: int, outcomes: Sequence[bytes]) -> None:
        """Adds the outcomes of an evaluation job's parts, numbered from `first`."""
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

    def record_recovery(self, step: int, coordinator: str) -> None:
        """Records that a coordinator resumed the job from its last snapshot."""
        self.record.job.progress.recoveries += 1
        self._add(job_pb2.JobEvent(recovered=job_pb2.Recovered(step=step, coordinator=coordinator)))

    def record_damaged_snapshot(self, revision: int, why: str) -> None:
        """Records that the snapshot of `revision` is damaged and was not used."""
        refused = job_pb2.SnapshotRefused(snapshot_revision=revision, why=why)
        self._add(job_pb2.JobEvent(snapshot_refused=refused))

    def change_budget(self, spec: spec_pb2.DesignSpec, by: str) -> None:
        """Replaces the job's specification, which differs in its budgets."""
        self.record.job.spec.CopyFrom(spec)
        self._add_budget_change(by)

    def change_priority(self, priority: int, by: str) -> None:
        """Changes the job's priority."""
        self.record.job.priority = priority
        self._add(job_pb2.JobEvent(budget_changed=job_pb2.BudgetChanged(priority=priority, by=by)))

    def set_measured_steps(self, spec: spec_pb2.DesignSpec) -> None:
        """Stores the number of steps in `spec` that a CPU-time budget was converted to."""
        job = self.record.job
        job.spec.search.CopyFrom(spec.search)
        self._add_budget_change(by="")

    def _add_budget_change(self, by: str) -> None:
        spec = self.record.job.spec
        changed = job_pb2.BudgetChanged(stop=spec.stop, joint_steps=spec.search.joint.steps, by=by)
        self._add(job_pb2.JobEvent(budget_changed=changed))

    def _add(self, event: job_pb2.JobEvent) -> None:
        job = self.record.job
        job.revision += 1
        event.revision = job.revision
        event.time.CopyFrom(self._now)
        self.events.append(event)


_ENDED = "its coordinator stopped"


def after_crash(draft: Draft) -> None:
    """Moves an active job to a state from which a new coordinator can continue."""
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
    """Receives notifications about jobs; this base class ignores them.

    Methods are called in the event loop, must not block, and must not modify jobs.
    """

    def state_changed(self, job: job_pb2.Job, before: JobState) -> None:
        """A state change has been committed; `job` has the new state."""

    def step(
        self, job: job_pb2.Job, request: evaluation_pb2.EvaluationRequest
    ) -> AbstractContextManager[None]:
        """Context around the evaluation of one request and the step that uses its outcome."""
        return nullcontext()

    def progressed(self, job: job_pb2.Job, event: progress_pb2.ProgressEvent) -> None:
        """A progress event has been committed."""

    def computed(self, job_id: str, seconds: float) -> None:
        """A designer has used this much CPU time."""

    def on_store_unavailable(self, job_id: str, why: str) -> None:
        """A commit failed because the store is unavailable, and will be retried."""

    def on_store_recovered(self, job_id: str) -> None:
        """The retried commit has succeeded."""

    def lost(self, job_id: str, why: str) -> None:
        """Another coordinator has acquired the job."""
