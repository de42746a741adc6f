"""What is exported of those who evaluate: pure functions of what they tell of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from remy_farm.v1 import design_service_pb2
from remy_services.fleet.board import BoardSnapshot
from remy_services.telemetry.catalogue import Metric, fleet
from remy_services.telemetry.samples import Distribution, Sample

_DEPARTURES = ("goodbye", "lost")
_LEASE_ENDS = (
    *("lost", "goodbye", "silent", "returned"),
    *("bad result", "quarantined", "withdrawn", "done elsewhere"),
)
_FLAWS = ("digest", "encoding", "impossible")


def evaluator_samples(info: design_service_pb2.EvaluatorsInfo) -> Iterator[Sample]:
    """How many evaluate, and how much there is to do."""
    yield Sample(fleet.WORKERS_CONNECTED, info.workers)
    yield Sample(fleet.WORKERS_BUSY, info.busy_workers)
    yield Sample(fleet.WORKERS_QUARANTINED, info.quarantined_workers)
    yield Sample(fleet.THREADS_CONNECTED, info.threads)
    yield Sample(fleet.TASKS_WAITING, info.tasks_waiting)
    yield Sample(fleet.TASKS_RUNNING, info.tasks_running)


def board_samples(snapshot: BoardSnapshot) -> Iterator[Sample | Distribution]:
    """What has become of tasks, leases and workers."""
    counts = snapshot.counts
    yield Sample(fleet.WORKERS_SILENT, snapshot.silent_workers)
    yield Sample(fleet.TASKS_ASSIGNED, counts.tasks_assigned)
    yield Sample(fleet.TASKS, counts.tasks_done)
    yield Sample(fleet.TASKS_HEDGED, counts.hedged_tasks)
    yield Sample(fleet.TASKS_QUARANTINED, counts.quarantined_tasks)
    yield Sample(fleet.RESULTS_DUPLICATE, counts.duplicate_results)
    yield Sample(fleet.WORKERS_JOINED, counts.workers_joined)
    yield from _by_reason(fleet.WORKER_DEPARTURES, counts.workers_left, _DEPARTURES)
    yield from _by_reason(fleet.LEASES_ENDED, counts.leases_ended, _LEASE_ENDS)
    yield from _by_reason(fleet.RESULTS_REJECTED, counts.bad_results, _FLAWS)
    yield Distribution(fleet.TASK_DURATION, counts.task_durations, counts.task_duration_seconds)
    yield Distribution(fleet.TASK_QUEUE_TIME, counts.queue_times, counts.queue_seconds)


def _by_reason(metric: Metric, counts: Mapping[str, int], usual: Iterable[str]) -> Iterator[Sample]:
    """The usual reasons are there from the beginning, so that their first count is an increase."""
    for reason in sorted({*usual, *counts}):
        yield Sample(metric, counts.get(reason, 0), (reason.replace(" ", "_"),))
