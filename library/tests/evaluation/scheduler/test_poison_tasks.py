"""Tests tasks whose workers are lost: poison tasks, and losses by chance."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from library.tests.evaluation.requests import numbered_request
from library.tests.evaluation.scheduler.simulated_fleet import SimulatedFleet
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import Completion, Quarantine, SchedulerSettings
from remy_simulator.columns import specimen_count, unpack_specimens

_POISON_SPECIMEN = 3
_SETTINGS = SchedulerSettings(shortest_task_seconds=0.06, longest_task_seconds=0.06)


def _kill_workers_with(fleet: SimulatedFleet, specimen: int, *, goodbye: bool = False) -> list[str]:
    """Kills the workers that run a task with this specimen, and returns their names."""
    killed = []
    for name, worker in list(fleet.workers.items()):
        assignments = [assignment for assignment, _ in worker.tasks.values()]
        running = assignments[: worker.facts.threads]
        if any(specimen in assignment.slice.specimens for assignment in running):
            killed.append(name)
            (fleet.leave if goodbye else fleet.kill)(name)
    return killed


def _run_with_restarts(
    fleet: SimulatedFleet,
    *,
    threads: int = 1,
    goodbye: bool = False,
    seconds: float = 20.0,
    job_id: str = "",
) -> list[str]:
    """Runs with workers that are replaced when the poison task kills them; returns their names."""
    killed: list[str] = []
    while fleet.now < seconds and not fleet.all_ended():
        while len(fleet.workers) < 3:
            fleet.join(
                f"worker-{fleet.scheduler.snapshot().counts.workers_joined}",
                threads=threads,
                job_id=job_id,
            )
        fleet.advance(0.02)
        killed += _kill_workers_with(fleet, _POISON_SPECIMEN, goodbye=goodbye)
        for name in list(fleet.workers):
            fleet.answer_finished_tasks(name)
    return killed


def test_a_task_that_kills_three_workers_is_quarantined() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    request = numbered_request(1, 12)
    number = fleet.submit(Share("job"), request)
    killed = _run_with_restarts(fleet)

    end = fleet.ended[number]
    assert isinstance(end, Quarantine)
    assert sorted(end.workers) == sorted(killed)
    assert len(killed) == 3
    # The reported request is the part of the request that the killed workers had.
    kept = [specimen.key for specimen in unpack_specimens(end.request.specimen_columns)]
    assert _POISON_SPECIMEN in kept
    assert len(kept) < specimen_count(request)
    assert end.request.tables == request.tables


def test_tasks_that_ran_beside_a_poison_task_are_completed() -> None:
    """All tasks of the first killed worker are suspected; two more losses identify the poison."""
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 40))
    other = fleet.submit(Share("other job"), numbered_request(40, 1))
    killed = _run_with_restarts(fleet, threads=4)

    assert isinstance(fleet.ended[number], Quarantine)
    assert len(killed) == 3
    assert isinstance(fleet.ended[other], Completion)


def test_workers_that_vanish_together_quarantine_no_task() -> None:
    """Their losses are noticed one after the other, and they get tasks until then."""
    fleet = SimulatedFleet(_SETTINGS)
    vanishing = [f"spot-{number}" for number in range(30)]
    for name in [*vanishing, "other"]:
        fleet.join(name)
    fleet.advance()
    for name in vanishing:
        fleet.workers[name].frozen = True
    # There are fewer tasks than workers, so that idle workers can take over returned tasks.
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    fleet.advance(0.01)
    for name in vanishing:
        fleet.kill(name)
        fleet.advance(0.01)
    fleet.run(60.0)
    assert isinstance(fleet.ended[number], Completion)
    assert fleet.scheduler.snapshot().counts.quarantined_tasks == 0


def test_a_poison_task_is_found_while_other_workers_vanish() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    killed: list[str] = []
    joined = 0
    while fleet.now < 60.0 and not fleet.all_ended():
        while len(fleet.workers) < 4:
            fleet.join(f"worker-{joined}")
            joined += 1
        fleet.advance(0.02)
        killed += _kill_workers_with(fleet, _POISON_SPECIMEN)
        for name in list(fleet.workers):
            fleet.answer_finished_tasks(name)
        if round(fleet.now / 0.02) % 25 == 0 and fleet.workers:
            # Twice a second, a worker vanishes that does not run the poison task.
            fleet.kill(min(fleet.workers))
    assert isinstance(fleet.ended[number], Quarantine)
    # Losses that may be a coincidence delay the quarantine a little.
    assert 3 <= len(killed) <= 6


_LONG_TASKS = SchedulerSettings(shortest_task_seconds=10, longest_task_seconds=10)


def _run_while_workers_vanish(fleet: SimulatedFleet, seed: int, poison: int = -1) -> int:
    """Runs with workers that stay for half a minute on average, or until the task kills them.

    `poison` is the specimen that kills workers. Returns the number of killed workers.
    """
    rng = random.Random(seed)
    joined = killed = 0
    while fleet.now < 3600.0 and not fleet.all_ended():
        while len(fleet.workers) < 10:
            fleet.join(f"worker-{joined}")
            joined += 1
        fleet.advance(0.5)
        killed += len(_kill_workers_with(fleet, poison))
        for name in list(fleet.workers):
            fleet.answer_finished_tasks(name)
            if rng.random() < 0.5 / 30:
                fleet.kill(name)
    assert joined > 30
    return killed


@pytest.mark.parametrize("seed", range(5))
def test_tasks_that_lose_workers_by_chance_are_not_quarantined(seed: int) -> None:
    """With tasks of 10 s, one in fifty loses three workers by chance."""
    fleet = SimulatedFleet(_LONG_TASKS)
    number = fleet.submit(Share("job"), numbered_request(1, 100, [200.0]))
    _run_while_workers_vanish(fleet, seed)
    assert isinstance(fleet.ended[number], Completion)


@pytest.mark.parametrize("seed", range(5))
def test_a_poison_task_kills_at_most_twelve_workers_while_many_vanish(seed: int) -> None:
    fleet = SimulatedFleet(_LONG_TASKS)
    number = fleet.submit(Share("job"), numbered_request(1, 100, [200.0]))
    killed = _run_while_workers_vanish(fleet, seed, _POISON_SPECIMEN)
    assert isinstance(fleet.ended[number], Quarantine)
    assert 3 < killed <= _LONG_TASKS.maximum_poison_losses


#: A task that was expected to take 2.5 s takes three minutes.
_SLOWNESS = 70.0


def _run_slowly(
    fleet: SimulatedFleet, workers: int, end_some: Callable[[SimulatedFleet], None]
) -> int:
    """Runs for at most an hour with slow workers, and returns how many were replaced."""
    joined = 0
    while fleet.now < 3600.0 and not fleet.all_ended():
        while len(fleet.workers) < workers:
            fleet.join(f"worker-{joined}")
            fleet.workers[f"worker-{joined}"].slowness = _SLOWNESS
            joined += 1
        fleet.advance(0.5)
        for name in list(fleet.workers):
            fleet.answer_finished_tasks(name)
        end_some(fleet)
    return joined - workers


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("parting", [SimulatedFleet.kill, SimulatedFleet.leave])
def test_a_task_that_takes_longer_than_workers_stay_is_divided(
    workers: int, parting: Callable[[SimulatedFleet, str], None]
) -> None:
    fleet = SimulatedFleet(_LONG_TASKS)
    number = fleet.submit(Share("job"), numbered_request(1, 52))

    def end_the_oldest_each_minute(fleet: SimulatedFleet) -> None:
        if fleet.now % 60 == 0:
            parting(fleet, next(iter(fleet.workers)))

    assert _run_slowly(fleet, workers, end_the_oldest_each_minute) > 0
    assert isinstance(fleet.ended[number], Completion)


def test_a_task_that_kills_late_is_narrowed_down_by_division() -> None:
    """The whole task kills one worker and the piece with the poison another; alone, the poisonous
    simulation kills three."""
    fleet = SimulatedFleet(_LONG_TASKS)
    number = fleet.submit(Share("job"), numbered_request(1, 52))

    def end_who_is_late_with_it(fleet: SimulatedFleet) -> None:
        for name, worker in list(fleet.workers.items()):
            for assignment, done_at in list(worker.tasks.values())[:1]:
                if _POISON_SPECIMEN in assignment.slice.specimens and fleet.now > done_at - 1.0:
                    fleet.kill(name)

    # It may kill one more, which had a copy of the whole task and then gets a piece of it.
    assert 5 <= _run_slowly(fleet, 3, end_who_is_late_with_it) <= 6
    end = fleet.ended[number]
    assert isinstance(end, Quarantine)
    assert specimen_count(end.request) == 1


def test_workers_that_say_goodbye_quarantine_no_task() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    fleet.submit(Share("job"), numbered_request(1, 12))
    killed = _run_with_restarts(fleet, goodbye=True, seconds=3.0)
    assert len(killed) > 10
    assert not fleet.ended


def test_workers_that_join_again_quarantine_no_task() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    for name in ("one", "two", "three"):
        fleet.join(name)
    for _ in range(5):
        for name in ("one", "two", "three"):
            fleet.advance()
            fleet.kill(name)
            fleet.join(name)
    fleet.run(20.0)
    assert isinstance(fleet.ended[number], Completion)


def test_workers_lost_without_a_reported_crash_quarantine_no_task() -> None:
    """If crashes are observed and none is reported, the machines were lost."""
    fleet = SimulatedFleet(_SETTINGS)
    fleet.scheduler.set_crashed_hosts(())
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    killed = _run_with_restarts(fleet, job_id="job", seconds=1.0)
    assert len(killed) > 3
    # The crash of one worker, or of other workers, is not enough.
    fleet.scheduler.set_crashed_hosts(["host of somebody else", f"host of {killed[0]}"])
    fleet.run(fleet.now + 20.0)
    assert isinstance(fleet.ended[number], Completion)
    assert fleet.scheduler.snapshot().counts.quarantined_tasks == 0


@pytest.mark.parametrize("reported", ["before", "after"])
def test_a_poison_task_is_quarantined_once_crashes_are_reported(reported: str) -> None:
    """A crash may be reported before or after the loss of the worker's connection is noticed."""
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    crashes = [f"host of worker-{number}" for number in range(200)]
    fleet.scheduler.set_crashed_hosts(crashes if reported == "before" else ())
    killed = _run_with_restarts(fleet, job_id="job", seconds=1.0)
    if reported == "after":
        assert len(killed) > 3
        assert not fleet.ended
        fleet.scheduler.set_crashed_hosts(crashes)
        fleet.advance()
    end = fleet.ended[number]
    assert isinstance(end, Quarantine)
    assert sorted(end.workers) == sorted(killed)


def test_a_reported_crash_counts_after_its_host_is_forgotten() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    fleet.scheduler.set_crashed_hosts(())
    known: set[str] = set()
    while len(known) < 3:
        fresh = set(_run_with_restarts(fleet, job_id="job", seconds=fleet.now + 0.1)) - known
        # Hosts of earlier crashes are not reported again.
        fleet.scheduler.set_crashed_hosts([f"host of {name}" for name in fresh])
        known |= fresh
    fleet.advance()
    assert isinstance(fleet.ended[number], Quarantine)


def test_losses_of_general_workers_count_without_reported_crashes() -> None:
    """Crashes are only observed for workers that serve a single job."""
    fleet = SimulatedFleet(_SETTINGS)
    fleet.scheduler.set_crashed_hosts(())
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    _run_with_restarts(fleet)
    assert isinstance(fleet.ended[number], Quarantine)


def test_a_worker_that_was_silent_for_long_does_not_count_as_killed() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    for name in ("one", "two", "three", "four"):
        fleet.join(name)
        while not fleet.workers[name].tasks:
            fleet.advance(0.1)
        fleet.workers[name].frozen = True
        fleet.advance(_SETTINGS.recent_contact_seconds + 1)
        fleet.kill(name)
    assert fleet.scheduler.snapshot().counts.workers_left == {"silent": 4}
    fleet.join("five")
    fleet.run(fleet.now + 20.0)
    assert isinstance(fleet.ended[number], Completion)
