"""The launcher's loop: what it does when the cluster refuses, is silent, or comes back."""

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


class Scene:
    """A launcher at work, what it is told and what it says."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.designs: list[Design] = []
        self.report = Report()
        self._said = asyncio.Event()
        self.now = 1000.0
        self.launcher = Launcher(
            self.cluster, SETTINGS, lambda: self.designs, self._hear, clock=lambda: self.now
        )

    def _hear(self, report: Report) -> None:
        self.report = report
        self._said.set()

    def want(self, *designs: Design) -> None:
        self.designs = list(designs)
        self.launcher.look()


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    task = asyncio.create_task(made.launcher.run())
    try:
        yield made
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_SECONDS", "_RETRY_SECONDS", "_MOST_RETRY_SECONDS"):
        monkeypatch.setattr(launcher_module, name, 0.02)
    monkeypatch.setattr(launcher_module, "_SETTLE_SECONDS", 0.0)


def test_jobs_follow_the_designs() -> None:
    async def story() -> None:
        async with scene() as now:
            now.want(design())
            await wait_in_loop(lambda: len(now.cluster.jobs) == 1)
            (job,) = now.cluster.jobs.values()
            assert job["spec"]["parallelism"] == 2
            now.want(design(phase=WorkersPhase.PAUSED))
            await wait_in_loop(
                lambda: all(each["spec"]["suspend"] for each in now.cluster.jobs.values())
            )
            now.want()
            await wait_in_loop(lambda: not now.cluster.jobs)

    asyncio.run(story())


def test_what_is_there_is_adopted_after_a_restart() -> None:
    async def story() -> None:
        async with scene() as now:
            found = job_of(design(), SETTINGS, None)
            spec = {**found["spec"], "parallelism": 2, "suspend": False}
            found = {**found, "spec": spec, "metadata": {**found["metadata"], "uid": "before"}}
            now.cluster.jobs[found["metadata"]["name"]] = found
            now.want(design())
            await wait_in_loop(lambda: "0001" in now.report.sentences)
            assert now.cluster.tries == 0
            assert [each["metadata"]["uid"] for each in now.cluster.jobs.values()] == ["before"]

    asyncio.run(story())


def test_an_api_server_that_cannot_be_reached_is_asked_again() -> None:
    async def story() -> None:
        async with scene() as now:
            now.cluster.trouble = ClusterUnreachable(
                "the Kubernetes API cannot be reached: no route"
            )
            now.want(design())
            await wait_in_loop(lambda: "no route" in now.report.sentences.get("0001", ""))
            now.cluster.trouble = None
            await wait_in_loop(lambda: len(now.cluster.jobs) == 1)
            now.cluster.break_down(
                ClusterUnreachable("the Kubernetes API cannot be reached: reset")
            )
            await wait_in_loop(lambda: "reset" in now.report.sentences["0001"])
            now.want(design(), design("0002"))
            now.cluster.trouble = None
            await wait_in_loop(lambda: len(now.cluster.jobs) == 2)
            await wait_in_loop(lambda: "reset" not in now.report.sentences["0001"])

    asyncio.run(story())


def test_a_refusal_is_told_and_not_repeated_in_a_hurry() -> None:
    async def story() -> None:
        async with scene() as now:
            now.cluster.refusal = ClusterRefused('jobs.batch is forbidden: exceeded quota "small"')
            now.want(design())
            await wait_in_loop(lambda: "0001" in now.report.sentences)
            assert now.report.sentences["0001"] == (
                'no workers can be started: jobs.batch is forbidden: exceeded quota "small"'
            )
            now.want(design(), design("0002"))
            await wait_in_loop(lambda: "0002" in now.report.sentences)
            assert now.cluster.tries == 2
            now.cluster.refusal = None
            now.now += 3.0
            await wait_in_loop(lambda: len(now.cluster.jobs) == 2)
            await wait_in_loop(lambda: "asked for" not in now.report.sentences["0001"])

    asyncio.run(story())
