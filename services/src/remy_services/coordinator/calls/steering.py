"""Calls that change jobs: PauseJob, ResumeJob, CancelJob, ExtendJob and DeleteJob."""

from __future__ import annotations

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.coordinator.access.caller import current_caller
from remy_services.coordinator.answering.refusal import not_now
from remy_services.coordinator.calls.ownership import check_may_change
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.keeping import JobKeeper
from remy_services.jobs.budgets import extended
from remy_services.jobs.draft import Draft
from remy_services.jobs.operations import NotNow, Operation, state_after
from remy_services.jobs.states import CANCELLED, CANCELLING


async def pause_job(farm: Farm, request: messages.PauseJobRequest) -> job_pb2.Job:
    """Has a job keep what it has, and wait until it is resumed."""
    return await _move(farm, request.job, Operation.PAUSE)


async def resume_job(farm: Farm, request: messages.ResumeJobRequest) -> job_pb2.Job:
    """Has a job go on when its turn comes."""
    return await _move(farm, request.job, Operation.RESUME)


async def cancel_job(farm: Farm, request: messages.CancelJobRequest) -> job_pb2.Job:
    """Ends a job. Asked a second time, it ends without its closing evaluation."""
    keeper = await _changeable(farm, request.job)
    run = farm.scheduler.run_of(keeper.job_id)
    if keeper.job.state == CANCELLING and run is not None:
        run.hurry()
    return await _move(farm, keeper.job_id, Operation.CANCEL)


async def extend_job(farm: Farm, request: messages.ExtendJobRequest) -> job_pb2.Job:
    """Changes a job's budgets; one that was finished goes on."""
    keeper = await _changeable(farm, request.job)
    stop = request.stop if request.HasField("stop") else None
    joint_steps = request.joint_steps if request.HasField("joint_steps") else None
    by = current_caller().name

    def extend(draft: Draft) -> None:
        following = _following(Operation.EXTEND, draft.job)
        spec = extended(draft.job.spec, stop=stop, joint_steps=joint_steps)
        draft.changed_budget(spec, by=by)
        if following != draft.job.state:
            draft.move(following, by=by)

    await farm.change(keeper, extend)
    return farm.shown(keeper)


async def delete_job(farm: Farm, request: messages.DeleteJobRequest) -> None:
    """Removes a job."""
    keeper = await _changeable(farm, request.job)
    _following(Operation.DELETE, keeper.job)
    await farm.delete(keeper)


async def _move(farm: Farm, name: str, operation: Operation) -> job_pb2.Job:
    keeper = await _changeable(farm, name)
    by = current_caller().name

    def move(draft: Draft) -> None:
        following = _following(operation, draft.job)
        if following == CANCELLED != draft.job.state:
            draft.cancel(by=by)
        elif following != draft.job.state:
            draft.move(following, by=by)

    await farm.change(keeper, move)
    return farm.shown(keeper)


async def _changeable(farm: Farm, name: str) -> JobKeeper:
    keeper = await farm.catalogue.find(name)
    check_may_change(keeper.job)
    return keeper


def _following(operation: Operation, job: job_pb2.Job) -> job_pb2.JobState:
    try:
        return state_after(operation, job.state)
    except NotNow as error:
        raise not_now("JOB_STATE", job.id, f"job {job.id}: {error}") from error
