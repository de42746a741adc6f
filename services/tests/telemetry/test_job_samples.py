"""Tests the metrics of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from remy_proto.v1 import job_pb2
from remy_services.jobs.states import TRANSITIONS
from remy_services.kubernetes.observed import PodPhaseCounts
from remy_services.telemetry.samples import (
    FINISHED_JOBS_SHOWN,
    JobActivity,
    WorkerPods,
    job_samples,
)
from remy_services.telemetry.telemetry import Telemetry
from services.tests.telemetry.exported import Series, exported
from services.tests.telemetry.small_jobs import finished_job, running_job


def values(
    jobs: Iterable[job_pb2.Job], activity: JobActivity | None = None
) -> dict[tuple[str, tuple[str, ...]], float]:
    samples = job_samples(jobs, activity or JobActivity())
    return {(sample.metric.name, sample.labels): sample.value for sample in samples}


def test_running_jobs_export_their_progress() -> None:
    seen = values([running_job()])
    names = ("j1", "wide")
    assert seen["remy_farm_job_info", (*names, "ann", "", "joint", "")] == 1
    assert seen["remy_farm_job_state", (*names, "RUNNING")] == 1
    assert seen["remy_farm_job_score", names] == -0.5
    assert seen["remy_farm_job_score_standard_error", names] == 0.01
    assert seen["remy_farm_job_validated_score", names] == -0.625
    assert seen["remy_farm_job_validated_score_standard_error", names] == 0.002
    assert seen["remy_farm_job_candidates_left", names] == 10
    assert seen["remy_farm_job_cpu_seconds_total", names] == 36.0
    assert seen["remy_farm_job_recoveries_total", names] == 1


def test_unknown_values_are_not_exported() -> None:
    shown = {name for name, _ in values([running_job()])}
    assert shown.isdisjoint(
        {
            "remy_farm_job_cost_total",
            "remy_farm_job_eta_seconds",
            "remy_farm_job_done_ratio",
            "remy_farm_job_epoch_gain",
            "remy_farm_job_last_evaluation_timestamp_seconds",
            "remy_farm_job_last_checkpoint_timestamp_seconds",
        }
    )


def test_every_state_is_counted_even_without_jobs() -> None:
    counts = {labels: value for (name, labels), value in values([]).items()}
    assert len(counts) == len(TRANSITIONS)
    assert set(counts.values()) == {0}


def test_only_the_newest_finished_jobs_have_series() -> None:
    jobs = [finished_job(number) for number in range(FINISHED_JOBS_SHOWN + 30)]
    seen = values([*jobs, running_job()])
    shown = {labels[0] for name, labels in seen if name == "remy_farm_job_step"}
    newest = {f"finished-{number}" for number in range(30, FINISHED_JOBS_SHOWN + 30)}
    assert shown == newest | {"j1"}
    assert seen["remy_farm_jobs", ("SUCCEEDED",)] == len(jobs)


def test_last_result_and_checkpoint_are_exported() -> None:
    activity = JobActivity(clock=lambda: 1234.0)
    activity.taken("j1")
    activity.requested("j1")
    seen = values([running_job()], activity)
    names = ("j1", "wide")
    assert seen["remy_farm_job_last_evaluation_timestamp_seconds", names] == 1234
    assert seen["remy_farm_job_last_checkpoint_timestamp_seconds", names] == 1234
    assert ("remy_farm_job_checkpoint_bytes", names) not in seen
    activity.checkpointed("j1", 77)
    assert values([running_job()], activity)["remy_farm_job_checkpoint_bytes", names] == 77


def test_lost_workers_and_pods_are_exported() -> None:
    activity = JobActivity()
    lost = ("remy_farm_job_workers_lost_total", ("j1", "wide"))
    assert values([running_job()], activity)[lost] == 0
    activity.workers_lost = {"j1": 3, "another": 9}
    counts = PodPhaseCounts(
        desired=9,
        running=4,
        lost=1,
        preempted=7,
        failed=2,
        waiting={"Unschedulable": 3, "ContainerCreating": 1},
    )
    activity.worker_pods = {"j1": WorkerPods(*counts.by_phase_and_end())}
    seen = values([running_job()], activity)
    assert seen[lost] == 3
    pods = {
        labels[-1]: value
        for (name, labels), value in seen.items()
        if name.startswith("remy_farm_job_worker_pods")
    }
    assert pods == {
        "wanted": 9,
        "running": 4,
        "unschedulable": 3,
        "starting": 1,
        "lost": 1,
        "preempted": 7,
        "failed": 2,
    }


def test_series_of_deleted_jobs_disappear() -> None:
    jobs = {job.id: job for job in (running_job("a"), running_job("b"))}

    async def before_and_after() -> tuple[set[Series], set[Series], Telemetry]:
        telemetry = Telemetry()
        telemetry.watch(asyncio.get_running_loop(), jobs.values)
        for job_id in jobs:
            telemetry.activity.checkpointed(job_id, 5)
            telemetry.activity.evaluated(job_id)
        before = await asyncio.to_thread(exported, telemetry.registry)
        del jobs["a"]
        after = await asyncio.to_thread(exported, telemetry.registry)
        return set(before), set(after), telemetry

    def of(job_id: str, series: set[Series]) -> set[Series]:
        return {each for each in series if ("job_id", job_id) in each[1]}

    before, after, telemetry = asyncio.run(before_and_after())
    assert len(of("a", before)) == len(of("b", before)) > 15
    assert not of("a", after)
    assert of("b", after) == of("b", before)
    assert telemetry.activity.last_checkpoint("a") is None
    assert telemetry.activity.last_result("a") is None
