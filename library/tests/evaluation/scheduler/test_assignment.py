"""Tests which tasks are assigned to which workers, of which size, and when."""

from __future__ import annotations

import pytest

from library.tests.evaluation.requests import numbered_request, slice_outcome
from library.tests.evaluation.scheduler.simulated_fleet import SECONDS_PER_PACKET, SimulatedFleet
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import Assignment, Completion, SchedulerSettings
from remy_farm.evaluation.scheduler.scheduler import TaskScheduler
from remy_farm.evaluation.scheduler.workers import WorkerFacts

_SETTINGS = SchedulerSettings()


def _seconds(assignment: Assignment) -> float:
    return assignment.slice.simulations * 1e6 * SECONDS_PER_PACKET


def _record_sizes(fleet: SimulatedFleet) -> list[float]:
    """A list to which the CPU seconds of each assigned task will be appended."""
    sizes: list[float] = []
    assign = fleet.assign

    def record(assignment: Assignment) -> None:
        sizes.append(_seconds(assignment))
        assign(assignment)

    fleet.assign = record  # type: ignore[method-assign]
    return sizes


def test_tasks_take_about_a_second_once_costs_are_measured() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    for name in ("one", "two"):
        fleet.join(name)
    sizes = _record_sizes(fleet)
    fleet.submit(Share("job"), numbered_request(600, 4))
    fleet.run(25.0)
    assert all(0.5 <= size <= 1.1 for size in sizes[10:30])


def test_a_short_step_is_spread_over_all_threads_in_shrinking_tasks() -> None:
    """The step has 16 antithetic pairs, whose CPU time is little more than that of one task."""
    fleet = SimulatedFleet(SchedulerSettings(shortest_task_seconds=0.01))
    for name in ("one", "two"):
        fleet.join(name, threads=2)
    fleet.submit(Share("job"), numbered_request(2, 16))
    sizes = _record_sizes(fleet)
    fleet.run(10.0, step=0.001)
    assert sum(sizes) == pytest.approx(32 * 0.05)
    # Each of four threads does about a quarter of the work.
    assert fleet.now < 1.5 * sum(sizes) / 4
    assert sizes[-1] <= sizes[0] / 2
    assert len(sizes) <= 6 * 4


def test_idle_threads_get_tasks_before_reserves() -> None:
    scheduler = TaskScheduler(_SETTINGS)
    for name in ("one", "two", "three"):
        scheduler.join(WorkerFacts(name, threads=1), 0.0)
        scheduler.credit(name, 3, 0.0)
    scheduler.submit(Share("job"), numbered_request(1, 5))
    workers = [assignment.worker_id for assignment in scheduler.advance(0.0).assignments]
    assert sorted(workers[:3]) == ["one", "three", "two"]


def test_a_worker_gets_no_more_tasks_than_its_credit() -> None:
    scheduler = TaskScheduler(_SETTINGS)
    scheduler.join(WorkerFacts("one", threads=1), 0.0)
    number = scheduler.submit(Share("job"), numbered_request(100, 100))
    assert not scheduler.advance(0.0).assignments
    scheduler.credit("one", 2, 0.0)
    first, second = scheduler.advance(0.0).assignments
    assert not scheduler.advance(0.0).assignments
    # An answer of any kind gives credit for one task.
    scheduler.complete(
        "one", first.lease_id, slice_outcome(first.whole, first.slice), b"", 0.1, 1.0
    )
    scheduler.give_back("one", [second.lease_id], 1.0)
    assert len(scheduler.advance(1.0).assignments) == 2
    scheduler.withdraw(number)
    cancelled = scheduler.advance(1.0).cancelled
    assert len(cancelled["one"]) == 2
    scheduler.give_back("one", cancelled["one"], 1.0)
    scheduler.submit(Share("job"), numbered_request(100, 100))
    assert len(scheduler.advance(1.0).assignments) == 2


def test_a_late_task_is_hedged_and_the_first_answer_counts() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    fleet.join("slow", reserve=0)
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.advance()
    fleet.workers["slow"].frozen = True
    fleet.join("quick")
    fleet.advance(0.1)
    assert not fleet.workers["quick"].tasks
    fleet.run(_SETTINGS.hedge_seconds + 1.0)
    assert number in fleet.ended
    counts = fleet.scheduler.snapshot().counts
    assert counts.hedged_tasks == 1
    # This is long before the slow worker's lease has expired.
    assert fleet.now < _SETTINGS.lease_seconds / 2
    fleet.workers["slow"].frozen = False
    fleet.advance(0.1)
    assert not fleet.workers["slow"].tasks


def test_no_task_is_hedged_while_new_tasks_wait() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    fleet.join("stuck", reserve=0)
    fleet.submit(Share("job"), numbered_request(200, 4))
    fleet.advance()
    fleet.workers["stuck"].slowness = 1000.0
    fleet.join("busy")
    fleet.run(10.0)
    assert fleet.scheduler.snapshot().counts.hedged_tasks == 0


def test_a_worker_that_joins_gets_tasks_at_once() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    fleet.join("early")
    fleet.submit(Share("job"), numbered_request(400, 4))
    fleet.run(5.0)
    fleet.join("late")
    fleet.advance()
    assert fleet.workers["late"].tasks


def test_workers_may_join_and_leave_during_an_evaluation() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    fleet.join("first")
    number = fleet.submit(Share("job"), numbered_request(40, 4))
    fleet.run(2.0)
    fleet.join("second")
    fleet.advance()
    assert fleet.workers["second"].tasks
    fleet.kill("first")
    began = fleet.now
    fleet.run(60.0)
    assert isinstance(fleet.ended[number], Completion)
    # The second worker did all remaining work without waiting for the first one's lease.
    assert fleet.now - began < 160 * 1e6 * SECONDS_PER_PACKET
