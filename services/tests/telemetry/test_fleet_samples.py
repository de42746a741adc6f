"""Tests the export of scheduler counters and of time by phase."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from library.tests.evaluation.requests import numbered_request
from library.tests.evaluation.scheduler.simulated_fleet import SimulatedFleet
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_farm.evaluation.scheduler.records import SchedulerSettings, SchedulerSnapshot
from remy_services.telemetry.telemetry import Telemetry
from services.tests.telemetry.exported import Series, exported


def busy_fleet() -> SimulatedFleet:
    """Returns a fleet whose tasks waited 5 s for a worker, and that lost a worker with tasks."""
    fleet = SimulatedFleet(SchedulerSettings())
    fleet.submit(Share("job"), numbered_request(40, 4))
    fleet.advance()
    fleet.advance(5.0)
    fleet.join("one")
    fleet.advance()
    fleet.kill("one")
    fleet.join("two")
    fleet.run(120.0)
    assert fleet.all_ended()
    return fleet


class _Fleet(ThreadPoolEvaluator):
    """An evaluator that reports the scheduler of a simulated fleet."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        super().__init__(1)
        self._simulated = fleet

    def snapshot(self) -> SchedulerSnapshot:
        return self._simulated.scheduler.snapshot()


def read(fleet: SimulatedFleet) -> dict[Series, float]:
    """Returns all series exported for a fleet."""

    async def scrape() -> dict[Series, float]:
        telemetry = Telemetry()
        evaluator = telemetry.evaluator(_Fleet(fleet))
        telemetry.watch(asyncio.get_running_loop(), list)
        try:
            return await asyncio.to_thread(exported, telemetry.registry)
        finally:
            await evaluator.close()

    return asyncio.run(scrape())


def test_tasks_leases_and_times_are_exported() -> None:
    fleet = busy_fleet()
    counts = fleet.scheduler.snapshot().counts
    values = read(fleet)

    def value(name: str, *labels: tuple[str, str]) -> float:
        return values[f"remy_farm_{name}", labels]

    assert value("tasks_total") == counts.tasks_done > 1
    assert value("tasks_assigned_total") == counts.tasks_assigned > counts.tasks_done
    assert value("workers_joined_total") == 2
    assert value("worker_departures_total", ("reason", "lost")) == 1
    assert value("leases_ended_total", ("reason", "lost")) == counts.leases_ended["lost"] > 0
    assert value("task_duration_seconds_count") == sum(counts.task_durations.counts)
    assert value("task_duration_seconds_bucket", ("le", "+Inf")) == sum(
        counts.task_durations.counts
    )
    assert value("task_queue_seconds_count") == sum(counts.queue_times.counts) > 1
    # Every task waited 5 s, until the first worker joined.
    assert value("task_queue_seconds_bucket", ("le", "2.5")) == 0
    assert value("step_phase_seconds_total", ("phase", "waiting")) == pytest.approx(
        counts.queue_times.seconds
    )
    assert value("step_phase_seconds_total", ("phase", "transfer")) == pytest.approx(
        max(counts.task_durations.seconds - counts.cpu_seconds, 0)
    )


def test_known_reasons_are_exported_at_zero() -> None:
    values = read(SimulatedFleet(SchedulerSettings()))
    assert values["remy_farm_leases_ended_total", (("reason", "lost"),)] == 0
    assert values["remy_farm_worker_departures_total", (("reason", "lost"),)] == 0
    for reason in ("digest", "impossible"):
        assert values["remy_farm_results_rejected_total", (("reason", reason),)] == 0


def test_departures_are_counted_by_reason() -> None:
    fleet = SimulatedFleet(SchedulerSettings())
    fleet.submit(Share("wide"), numbered_request(40, 4))
    for name in ("announced", "taken", "lost", "idle and lost", "powerless"):
        fleet.join(name, job_id="other" if name == "idle and lost" else "")
        fleet.advance(0.1)
    fleet.scheduler.record_goodbye("announced", "signal")
    fleet.scheduler.record_goodbye("taken", "spot_interruption")
    fleet.workers["powerless"].frozen = True
    for name in ("announced", "taken", "lost", "idle and lost"):
        fleet.kill(name)
    fleet.advance(11.0)
    fleet.kill("powerless")
    values = read(fleet)
    for reason, times in {"signal": 1, "spot_interruption": 1, "lost": 2, "silent": 1}.items():
        assert values["remy_farm_worker_departures_total", (("reason", reason),)] == times
    # Lost workers count for the jobs whose tasks they had, and for the job they were dedicated to.
    assert fleet.scheduler.snapshot().counts.workers_lost == {"wide": 2, "other": 1}


def test_reasons_have_underscores_in_labels() -> None:
    fleet = SimulatedFleet(SchedulerSettings())
    fleet.scheduler.snapshot().counts.leases_ended["bad result"] += 3
    assert read(fleet)["remy_farm_leases_ended_total", (("reason", "bad_result"),)] == 3


def test_phase_seconds_are_available_without_scrapes() -> None:
    fleet = busy_fleet()

    async def phase_seconds() -> Mapping[str, float]:
        telemetry = Telemetry()
        evaluator = telemetry.evaluator(_Fleet(fleet))
        try:
            return telemetry.phase_seconds()
        finally:
            await evaluator.close()

    waited = asyncio.run(phase_seconds())["waiting"]
    assert waited == pytest.approx(fleet.scheduler.snapshot().counts.queue_times.seconds)
    assert waited > 0
