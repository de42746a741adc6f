"""How a run begins and leaves its job: changes of the record, for the commits that do so."""

from __future__ import annotations

from remy_farm.v1 import job_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.keeping import Environment
from remy_services.coordinator.keeping.job_keeper import Edit
from remy_services.coordinator.running.beginning import Begun
from remy_services.jobs.draft import Draft
from remy_services.jobs.states import (
    ACTIVE,
    CANCELLED,
    CANCELLING,
    FAILED,
    PAUSED,
    PENDING,
    RECOVERING,
    RUNNING,
    SCHEDULING,
    SUCCEEDED,
)


class BudgetsChanged(Exception):
    """The job was extended while its design came to its end."""


def schedule(draft: Draft) -> None:
    """The job's turn has come."""
    if draft.job.state == PENDING:
        draft.move(SCHEDULING)


def started(environment: Environment, begun: Begun) -> Edit:
    """The designer is there. Whoever has asked for something else meanwhile is heard later."""

    def edit(draft: Draft) -> None:
        for refused in begun.refused:
            draft.refused_snapshot(refused.revision, refused.why)
        if begun.spec.search != draft.job.spec.search:
            draft.measured_length(begun.spec)
        if draft.job.state == RECOVERING:
            draft.recovered(begun.designer.steps, environment.name)
        if draft.job.state in (SCHEDULING, RECOVERING):
            draft.move(RUNNING)

    return edit


def finished(reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec) -> Edit:
    """The design that went by `spec` is finished. Raises BudgetsChanged if the job does not go by
    it any more."""

    def edit(draft: Draft) -> None:
        if draft.job.state != CANCELLING and draft.job.spec != spec:
            raise BudgetsChanged
        is_cancelled = reason == progress_pb2.STOP_REASON_CANCELLED
        draft.finish(reason, CANCELLED if is_cancelled else SUCCEEDED)

    return edit


def settled(why_leave: str) -> Edit:
    """The run ends before the design does: as was asked for, or to wait for another turn."""

    def edit(draft: Draft) -> None:
        match draft.job.state:
            case job_pb2.JOB_STATE_PAUSING:
                draft.move(PAUSED)
            case job_pb2.JOB_STATE_CANCELLING:
                draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
            case _:
                draft.move(PENDING, message=why_leave)

    return edit


def failed(reason: job_pb2.FailureReason, message: str) -> Edit:
    """The job cannot go on."""

    def edit(draft: Draft) -> None:
        if draft.job.state in ACTIVE:
            draft.fail(reason, message, FAILED)

    return edit
