"""Designs are paused, resumed and cancelled, and share a farm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.designs import write_spec
from tests.e2e.farm import Farm
from tests.e2e.settings import needs_cluster
from tests.waiting import wait_until

pytestmark = needs_cluster


@pytest.mark.ci
def test_paused_job_has_no_workers_until_it_is_resumed(farm: Farm, tmp_path: Path) -> None:
    job = farm.submit(write_spec(tmp_path, steps=5000), "pausing")
    wait_until(lambda: farm.workers_of(job), "workers")
    farm.wait_for_step(job, 3)
    farm.cli("pause", job)
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")
    (kept,) = farm.kubectl.objects("jobs", f"remy-farm/job-id={job}")
    assert kept["spec"]["suspend"] is True
    before = farm.step(job)
    farm.cli("resume", job)
    wait_until(lambda: farm.workers_of(job), "workers")
    farm.wait_for_step(job, before + 1)
    farm.cli("cancel", job)
    assert farm.wait_until_done(job) == "CANCELLED"
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")


def test_two_designs_have_separate_workers(farm: Farm, tmp_path: Path) -> None:
    low = farm.submit(write_spec(tmp_path, steps=5000, seed=1), "low")
    high = farm.submit(write_spec(tmp_path, steps=5000, seed=2), "high", "--priority", "5")
    for job in (low, high):
        wait_until(lambda job=job: farm.workers_of(job), f"workers of {job}")  # type: ignore[misc]
        farm.wait_for_step(job, 3)
    assert int(farm.job(high)["priority"]) == 5
    assert len(farm.kubectl.objects("jobs", "app.kubernetes.io/component=worker-job")) >= 2
    for job in (low, high):
        farm.cli("cancel", job)
        assert farm.wait_until_done(job) == "CANCELLED"
        farm.cli("delete", job, "--yes")
    wait_until(
        lambda: (
            not [
                each
                for job in (low, high)
                for each in farm.kubectl.objects("jobs,pods", f"remy-farm/job-id={job}")
            ]
        ),
        "nothing to be left of them",
    )


def test_unschedulable_workers_are_reported(farm: Farm, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, steps=50, workers="{cpus: 60}")
    job = farm.submit(spec, "too-large")
    wait_until(
        lambda: "Unschedulable" in farm.job(job).get("status_message", ""), "a sentence about it"
    )
    farm.cli("cancel", job)
    farm.wait_until_done(job)


def test_exceeded_quota_is_reported(farm: Farm, tmp_path: Path) -> None:
    farm.kubectl("create", "quota", "no-jobs", "--hard=count/jobs.batch=0")
    try:
        job = farm.submit(write_spec(tmp_path, steps=20), "quota")
        wait_until(
            lambda: "exceeded quota" in farm.job(job).get("status_message", ""),
            "a sentence about it",
        )
    finally:
        farm.kubectl("delete", "quota", "no-jobs")
    assert farm.wait_until_done(job) == "SUCCEEDED"
