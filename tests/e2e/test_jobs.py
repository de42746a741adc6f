"""Designs that are paused, resumed, cancelled, and that share a farm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.designs import write_spec
from tests.e2e.farm import Farm
from tests.e2e.settings import needs_cluster
from tests.e2e.waiting import wait_for

pytestmark = needs_cluster


@pytest.mark.ci
def test_pausing_removes_the_workers_and_resuming_brings_them_back(
    farm: Farm, tmp_path: Path
) -> None:
    job = farm.submit(write_spec(tmp_path, steps=5000), "pausing")
    wait_for("workers", lambda: farm.workers_of(job))
    wait_for("progress", lambda: farm.step(job) > 2)
    farm.cli("pause", job)
    wait_for("the end of its workers", lambda: not farm.workers_of(job))
    (kept,) = farm.kubectl.objects("jobs", f"remy-farm/job-id={job}")
    assert kept["spec"]["suspend"] is True
    before = farm.step(job)
    farm.cli("resume", job)
    wait_for("workers", lambda: farm.workers_of(job))
    wait_for("progress", lambda: farm.step(job) > before)
    farm.cli("cancel", job)
    assert farm.wait_until_done(job) == "CANCELLED"
    wait_for("the end of its workers", lambda: not farm.workers_of(job))


def test_two_designs_have_workers_of_their_own(farm: Farm, tmp_path: Path) -> None:
    low = farm.submit(write_spec(tmp_path, steps=5000, seed=1), "low")
    high = farm.submit(write_spec(tmp_path, steps=5000, seed=2), "high", "--priority", "5")
    for job in (low, high):
        wait_for(f"workers of {job}", lambda job=job: farm.workers_of(job))  # type: ignore[misc]
        wait_for("progress", lambda job=job: farm.step(job) > 2)  # type: ignore[misc]
    assert int(farm.job(high)["priority"]) == 5
    assert len(farm.kubectl.objects("jobs", "app.kubernetes.io/component=worker-job")) >= 2
    for job in (low, high):
        farm.cli("cancel", job)
        assert farm.wait_until_done(job) == "CANCELLED"
        farm.cli("delete", job, "--yes")
    wait_for(
        "nothing to be left of them",
        lambda: (
            not [
                each
                for job in (low, high)
                for each in farm.kubectl.objects("jobs,pods", f"remy-farm/job-id={job}")
            ]
        ),
    )


def test_what_keeps_workers_away_is_said(farm: Farm, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, steps=50, workers="{cpus: 60}")
    job = farm.submit(spec, "too-large")
    wait_for(
        "a sentence about it",
        lambda: "Unschedulable" in farm.job(job).get("status_message", ""),
    )
    farm.cli("cancel", job)
    farm.wait_until_done(job)


def test_a_quota_is_said(farm: Farm, tmp_path: Path) -> None:
    farm.kubectl("create", "quota", "no-jobs", "--hard=count/jobs.batch=0")
    try:
        job = farm.submit(write_spec(tmp_path, steps=20), "quota")
        wait_for(
            "a sentence about it",
            lambda: "exceeded quota" in farm.job(job).get("status_message", ""),
        )
    finally:
        farm.kubectl("delete", "quota", "no-jobs")
    assert farm.wait_until_done(job) == "SUCCEEDED"
