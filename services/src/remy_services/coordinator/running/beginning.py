"""What happens before a run's first step: the designer, and the length of its search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from remy_farm.v1 import evaluation_pb2, job_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.keeping import Environment, JobKeeper
from remy_services.coordinator.keeping.patience import patiently
from remy_services.coordinator.running.resume import designer_of, first_table
from remy_services.designer import Designer
from remy_services.designer.clock_budgets import Elapsed, exhausted
from remy_services.designer.joint.length_budget import is_by_budget
from remy_services.designer.rehearsal import Rehearsal
from remy_services.evaluation import Evaluation
from remy_services.jobs.states import CANCELLING, RUNNING
from remy_services.stores import RefusedSnapshot, newest_snapshot

# A step that took no time would buy any number of them.
_SHORTEST_STEP_SECONDS = 1e-6
_EVENTS_PER_PAGE = 1000
_BY_CLOCK = (progress_pb2.STOP_REASON_CPU_SECONDS, progress_pb2.STOP_REASON_WALL_SECONDS)

#: Evaluates a request; None if the run is to end.
Evaluate = Callable[[evaluation_pb2.EvaluationRequest], Awaitable[Evaluation | None]]


@dataclass(frozen=True)
class Begun:
    """A designer that is ready to go on."""

    designer: Designer
    #: What it goes by.
    spec: spec_pb2.DesignSpec
    #: Snapshots that could not be used, newest first.
    refused: tuple[RefusedSnapshot, ...]
    #: Of the last progress event in the history.
    last_sequence: int


async def begin(environment: Environment, keeper: JobKeeper, evaluate: Evaluate) -> Begun | None:
    """The job's designer; None if the run was to end meanwhile.

    Raises SnapshotsLost or DesignerError.
    """
    store, threads = environment.store, environment.threads
    snapshot, refused = await patiently(
        lambda: threads.store(newest_snapshot, store, keeper.job_id), on_trouble=keeper.in_trouble
    )
    keeper.well_again()
    record = keeper.record
    designer, spec = await threads.compute(designer_of, record, snapshot, refused), record.job.spec
    last_sequence = designer.event_sequence
    if snapshot is not None and refused:
        last_sequence = await _last_sequence(environment, keeper, snapshot.revision)
    if snapshot is None and is_by_budget(spec):
        resolved = await _rehearsed(environment, spec, evaluate)
        if resolved is None:
            return None
        spec = resolved
        designer = await threads.compute(Designer, spec, first_table=first_table(record))
    return Begun(designer, spec, tuple(refused), last_sequence)


def may_have_been_extended(
    job: job_pb2.Job, finished: progress_pb2.StopReason | None, elapsed: Elapsed
) -> bool:
    """Whether the job's budgets may let a designer go on that its snapshot left finished."""
    if job.state not in (RUNNING, CANCELLING):
        return False
    if finished in _BY_CLOCK:
        return exhausted(job.spec.stop, elapsed) is None
    return job.state == RUNNING or finished != progress_pb2.STOP_REASON_CANCELLED


async def _rehearsed(
    environment: Environment, spec: spec_pb2.DesignSpec, evaluate: Evaluate
) -> spec_pb2.DesignSpec | None:
    """The specification with steps in place of a budget."""
    compute = environment.threads.compute
    rehearsal = await compute(Rehearsal, spec)
    while (request := await compute(rehearsal.next_request)) is not None:
        evaluation = await evaluate(request)
        if evaluation is None:
            return None
        seconds = max(evaluation.cpu_seconds, _SHORTEST_STEP_SECONDS)
        await compute(rehearsal.receive, evaluation.outcome, seconds)
    return await compute(rehearsal.resolved)


async def _last_sequence(environment: Environment, keeper: JobKeeper, revision: int) -> int:
    """Of the last progress event after `revision`: the steps since the snapshot of that revision
    are made again, and are in the history already."""
    store, threads = environment.store, environment.threads
    last, after = 0, revision
    while True:
        page = await patiently(
            lambda after=after: threads.store(  # type: ignore[misc]
                store.events, keeper.job_id, after=after, limit=_EVENTS_PER_PAGE
            ),
            on_trouble=keeper.in_trouble,
        )
        for after, data in page:  # noqa: B007
            event = job_pb2.JobEvent.FromString(data)
            last = max(last, event.progress.sequence)
        if len(page) < _EVENTS_PER_PAGE:
            return last
