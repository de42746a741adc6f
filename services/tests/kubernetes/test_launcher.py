"""Tests the launcher's loop, with refusals and outages of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from remy_services.kubernetes import launcher as launcher_module
from remy_services.kubernetes.launcher import Launcher, Report
from remy_services.kubernetes.manifest import (
    ClusterRefused,
    ClusterUnreachable,
    Design,
    WorkersPhase,
    job_of,
)
from services.tests.kubernetes.memory_cluster import MemoryCluster
from services.tests.kubernetes.objects import SETTINGS, design
from tests.waiting import wait_in_loop


class RunningLauncher:
    """A running launcher on a MemoryCluster, with its designs and last report."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.designs: list[Design] = []
        self.report = Report()
        self._reported = asyncio.Event()
        self.now = 1000.0
        self.launcher = Launcher(
            self.cluster, SETTINGS, lambda: self.designs, self._on_report, clock=lambda: self.now
        )

    def _on_report(self, report: Report) -> None:
        self.report = report
        self._reported.set()

    def set_designs(self, *designs: Design) -> None:
        self.designs = list(designs)
        self.launcher.notify_changed()


@asynccontextmanager
async def running_launcher() -> AsyncIterator[RunningLauncher]:
    made = RunningLauncher()
    task = asyncio.create_task(made.launcher.run())
    try:
        yield made
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_SECONDS", "_RETRY_SECONDS", "_MAX_RETRY_SECONDS"):
        monkeypatch.setattr(launcher_module, name, 0.02)
    monkeypatch.setattr(launcher_module, "_SETTLE_SECONDS", 0.0)


def test_jobs_match_the_designs() -> None:
    async def scenario() -> None:
        async with running_launcher() as launcher:
            launcher.set_designs(design())
            await wait_in_loop(lambda: len(launcher.cluster.jobs) == 1)
            (job,) = launcher.cluster.jobs.values()
            assert job["spec"]["parallelism"] == 2
            launcher.set_designs(design(phase=WorkersPhase.PAUSED))
            await wait_in_loop(
                lambda: all(each["spec"]["suspend"] for each in launcher.cluster.jobs.values())
            )
            launcher.set_designs()
            await wait_in_loop(lambda: not launcher.cluster.jobs)

    asyncio.run(scenario())


def test_existing_jobs_are_adopted_after_a_restart() -> None:
    async def scenario() -> None:
        async with running_launcher() as launcher:
            found = job_of(design(), SETTINGS, None)
            spec = {**found["spec"], "parallelism": 2, "suspend": False}
            found = {**found, "spec": spec, "metadata": {**found["metadata"], "uid": "before"}}
            launcher.cluster.jobs[found["metadata"]["name"]] = found
            launcher.set_designs(design())
            await wait_in_loop(lambda: "0001" in launcher.report.sentences)
            assert launcher.cluster.attempts == 0
            assert [each["metadata"]["uid"] for each in launcher.cluster.jobs.values()] == [
                "before"
            ]

    asyncio.run(scenario())


def test_an_unreachable_api_server_is_retried() -> None:
    async def scenario() -> None:
        async with running_launcher() as launcher:
            launcher.cluster.error = ClusterUnreachable(
                "the Kubernetes API cannot be reached: no route"
            )
            launcher.set_designs(design())
            await wait_in_loop(lambda: "no route" in launcher.report.sentences.get("0001", ""))
            launcher.cluster.error = None
            await wait_in_loop(lambda: len(launcher.cluster.jobs) == 1)
            launcher.cluster.break_down(
                ClusterUnreachable("the Kubernetes API cannot be reached: reset")
            )
            await wait_in_loop(lambda: "reset" in launcher.report.sentences["0001"])
            launcher.set_designs(design(), design("0002"))
            launcher.cluster.error = None
            await wait_in_loop(lambda: len(launcher.cluster.jobs) == 2)
            await wait_in_loop(lambda: "reset" not in launcher.report.sentences["0001"])

    asyncio.run(scenario())


def test_refusals_are_reported_and_retried_with_backoff() -> None:
    async def scenario() -> None:
        async with running_launcher() as launcher:
            launcher.cluster.refusal = ClusterRefused(
                'jobs.batch is forbidden: exceeded quota "small"'
            )
            launcher.set_designs(design())
            await wait_in_loop(lambda: "0001" in launcher.report.sentences)
            assert launcher.report.sentences["0001"] == (
                'no workers can be started: jobs.batch is forbidden: exceeded quota "small"'
            )
            launcher.set_designs(design(), design("0002"))
            await wait_in_loop(lambda: "0002" in launcher.report.sentences)
            assert launcher.cluster.attempts == 2
            launcher.cluster.refusal = None
            launcher.now += 3.0
            await wait_in_loop(lambda: len(launcher.cluster.jobs) == 2)
            await wait_in_loop(lambda: "requested" not in launcher.report.sentences["0001"])

    asyncio.run(scenario())
