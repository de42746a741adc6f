"""Tasks that end their workers."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from library.tests.evaluation.requests import numbered_request
from library.tests.evaluation.scheduler.simulated_fleet import SimulatedFleet
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import Completion, Quarantine, SchedulerSettings
from remy_simulator.columns import specimen_count, unpack_specimens

_DEADLY_SPECIMEN = 3
_SETTINGS = SchedulerSettings(shortest_task_seconds=0.06, longest_task_seconds=0.06)


def _end_whoever_has(fleet: SimulatedFleet, specimen: int, *, goodbye: bool = False) -> list[str]:
    """Ends the workers whose first task has this specimen; their names."""
    ended = []
    for name, worker in list(fleet.workers.items()):
        assignments = [assignment for assignment, _ in worker.tasks.values()]
        running = assignments[: worker.facts.threads]
        if any(specimen in assignment.slice.specimens for assignment in running):
            ended.append(name)
            (fleet.leave if goodbye else fleet.end)(name)
    return ended


def _run_with_restarts(
    fleet: SimulatedFleet,
    *,
    threads: int = 1,
    goodbye: bool = False,
    seconds: float = 20.0,
    job_id: str = "",
) -> list[str]:
    """A fleet whose workers end when they do the deadly task, and are replaced."""
    ended: list[str] = []
    while fleet.now < seconds and not fleet.idle():
        while len(fleet.workers) < 3:
            fleet.join(
                f"worker-{fleet.scheduler.snapshot().counts.workers_joined}",
                threads=threads,
                job_id=job_id,
            )
        fleet.advance(0.02)
        ended += _end_whoever_has(fleet, _DEADLY_SPECIMEN, goodbye=goodbye)
        for name in list(fleet.workers):
            fleet.answer_what_is_done(name)
    return ended


def test_a_task_that_ended_three_workers_is_given_up() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    request = numbered_request(1, 12)
    number = fleet.submit(Share("job"), request)
    ended = _run_with_restarts(fleet)

    end = fleet.ended[number]
    assert isinstance(end, Quarantine)
    assert sorted(end.workers) == sorted(ended)
    assert len(ended) == 3
    # What is left reproduces it: the part of the request that those workers had.
    kept = [specimen.key for specimen in unpack_specimens(end.request.specimen_columns)]
    assert _DEADLY_SPECIMEN in kept
    assert len(kept) < specimen_count(request)
    assert end.request.tables == request.tables


def test_with_many_threads_the_innocent_are_cleared() -> None:
    """All that ran on the first worker is suspected; it takes no more than two more to tell."""
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 40))
    other = fleet.submit(Share("other job"), numbered_request(40, 1))
    ended = _run_with_restarts(fleet, threads=4)

    assert isinstance(fleet.ended[number], Quarantine)
    assert len(ended) == 3
    assert isinstance(fleet.ended[other], Completion)


def test_workers_that_vanish_together_were_not_ended_by_their_tasks() -> None:
    """Their connections are found lost one after the other; until then they are given tasks."""
    fleet = SimulatedFleet(_SETTINGS)
    vanishing = [f"spot-{place}" for place in range(30)]
    for name in [*vanishing, "other"]:
        fleet.join(name)
    fleet.advance()
    for name in vanishing:
        fleet.workers[name].frozen = True
    # Fewer tasks than workers: whoever has none is there for those that come back.
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    fleet.advance(0.01)
    for name in vanishing:
        fleet.end(name)
        fleet.advance(0.01)
    fleet.run(60.0)
    assert isinstance(fleet.ended[number], Completion)
    assert fleet.scheduler.snapshot().counts.quarantined_tasks == 0


def test_a_deadly_task_is_found_while_others_vanish_for_reasons_of_their_own() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    ended: list[str] = []
    joined = 0
    while fleet.now < 60.0 and not fleet.idle():
        while len(fleet.workers) < 4:
            fleet.join(f"worker-{joined}")
            joined += 1
        fleet.advance(0.02)
        ended += _end_whoever_has(fleet, _DEADLY_SPECIMEN)
        for name in list(fleet.workers):
            fleet.answer_what_is_done(name)
        if round(fleet.now / 0.02) % 25 == 0 and fleet.workers:
            # Twice a second one goes that does nothing deadly.
            fleet.end(min(fleet.workers))
    assert isinstance(fleet.ended[number], Quarantine)
    # Deaths in bad company count for nothing, but not for ever.
    assert 3 <= len(ended) <= 6


_LONG_TASKS = SchedulerSettings(shortest_task_seconds=10, longest_task_seconds=10)


def _run_while_workers_vanish(fleet: SimulatedFleet, seed: int, deadly: int = -1) -> int:
    """A worker is there for half a minute on average, or until it does the deadly task. Returns
    how many that task ended."""
    chance = random.Random(seed)
    joined = ended = 0
    while fleet.now < 3600.0 and not fleet.idle():
        while len(fleet.workers) < 10:
            fleet.join(f"worker-{joined}")
            joined += 1
        fleet.advance(0.5)
        ended += len(_end_whoever_has(fleet, deadly))
        for name in list(fleet.workers):
            fleet.answer_what_is_done(name)
            if chance.random() < 0.5 / 30:
                fleet.end(name)
    assert joined > 30
    return ended


@pytest.mark.parametrize("seed", range(5))
def test_tasks_that_many_workers_vanish_from_by_chance_are_not_given_up(seed: int) -> None:
    """A task takes 10 s: one of fifty is on three workers that vanish, whatever it does."""
    fleet = SimulatedFleet(_LONG_TASKS)
    number = fleet.submit(Share("job"), numbered_request(1, 100, [200.0]))
    _run_while_workers_vanish(fleet, seed)
    assert isinstance(fleet.ended[number], Completion)


@pytest.mark.parametrize("seed", range(5))
def test_a_deadly_task_takes_twelve_workers_at_most_where_many_vanish(seed: int) -> None:
    fleet = SimulatedFleet(_LONG_TASKS)
    number = fleet.submit(Share("job"), numbered_request(1, 100, [200.0]))
    ended = _run_while_workers_vanish(fleet, seed, _DEADLY_SPECIMEN)
    assert isinstance(fleet.ended[number], Quarantine)
    assert 3 < ended <= _LONG_TASKS.maximum_poison_losses


#: What was expected to take two seconds and a half takes three minutes.
_SLOWNESS = 70.0


def _run_slowly(
    fleet: SimulatedFleet, workers: int, end_some: Callable[[SimulatedFleet], None]
) -> int:
    """Runs for an hour at most with so many slow workers; how many were replaced."""
    joined = 0
    while fleet.now < 3600.0 and not fleet.idle():
        while len(fleet.workers) < workers:
            fleet.join(f"worker-{joined}")
            fleet.workers[f"worker-{joined}"].slowness = _SLOWNESS
            joined += 1
        fleet.advance(0.5)
        for name in list(fleet.workers):
            fleet.answer_what_is_done(name)
        end_some(fleet)
    return joined - workers


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("parting", [SimulatedFleet.end, SimulatedFleet.leave])
def test_what_takes_longer_than_workers_stay_is_done_in_pieces(
    workers: int, parting: Callable[[SimulatedFleet, str], None]
) -> None:
    fleet = SimulatedFleet(_LONG_TASKS)
    number = fleet.submit(Share("job"), numbered_request(1, 52))

    def end_the_oldest_each_minute(fleet: SimulatedFleet) -> None:
        if fleet.now % 60 == 0:
            parting(fleet, next(iter(fleet.workers)))

    assert _run_slowly(fleet, workers, end_the_oldest_each_minute) > 0
    assert isinstance(fleet.ended[number], Completion)


def test_what_ends_its_worker_late_is_found_in_pieces() -> None:
    """The whole ends one worker, the piece that has it another; alone it ends three."""
    fleet = SimulatedFleet(_LONG_TASKS)
    number = fleet.submit(Share("job"), numbered_request(1, 52))

    def end_who_is_late_with_it(fleet: SimulatedFleet) -> None:
        for name, worker in list(fleet.workers.items()):
            for assignment, done_at in list(worker.tasks.values())[:1]:
                if _DEADLY_SPECIMEN in assignment.slice.specimens and fleet.now > done_at - 1.0:
                    fleet.end(name)

    # And one more, which had a copy of the whole and goes on with a piece of it at once.
    assert 5 <= _run_slowly(fleet, 3, end_who_is_late_with_it) <= 6
    end = fleet.ended[number]
    assert isinstance(end, Quarantine)
    assert specimen_count(end.request) == 1


def test_goodbyes_are_no_failures() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    fleet.submit(Share("job"), numbered_request(1, 12))
    ended = _run_with_restarts(fleet, goodbye=True, seconds=3.0)
    assert len(ended) > 10
    assert not fleet.ended


def test_workers_that_come_back_had_not_ended() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    for name in ("one", "two", "three"):
        fleet.join(name)
    for _ in range(5):
        for name in ("one", "two", "three"):
            fleet.advance()
            fleet.end(name)
            fleet.join(name)
    fleet.run(20.0)
    assert isinstance(fleet.ended[number], Completion)


def test_losing_nodes_is_never_the_fault_of_the_task_that_was_on_them() -> None:
    """Whoever started the workers says nothing of crashes: their connections ended with nodes."""
    fleet = SimulatedFleet(_SETTINGS)
    fleet.scheduler.set_crashed_hosts(())
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    ended = _run_with_restarts(fleet, job_id="job", seconds=1.0)
    assert len(ended) > 3
    # Crashes of others are nothing to it.
    fleet.scheduler.set_crashed_hosts(["host of somebody else", f"host of {ended[0]}"])
    fleet.run(fleet.now + 20.0)
    assert isinstance(fleet.ended[number], Completion)
    assert fleet.scheduler.snapshot().counts.quarantined_tasks == 0


@pytest.mark.parametrize("told", ["before", "after"])
def test_a_deadly_task_is_given_up_once_its_workers_are_known_to_have_crashed(told: str) -> None:
    """What is said of a worker may come before its connection is found lost, or after."""
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    crashes = [f"host of worker-{place}" for place in range(200)]
    fleet.scheduler.set_crashed_hosts(crashes if told == "before" else ())
    ended = _run_with_restarts(fleet, job_id="job", seconds=1.0)
    if told == "after":
        assert len(ended) > 3
        assert not fleet.ended
        fleet.scheduler.set_crashed_hosts(crashes)
        fleet.advance()
    end = fleet.ended[number]
    assert isinstance(end, Quarantine)
    assert sorted(end.workers) == sorted(ended)


def test_what_is_proven_of_a_worker_stays_when_its_pod_is_gone() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    fleet.scheduler.set_crashed_hosts(())
    known: set[str] = set()
    while len(known) < 3:
        fresh = set(_run_with_restarts(fleet, job_id="job", seconds=fleet.now + 0.1)) - known
        # Nobody remembers the pods before.
        fleet.scheduler.set_crashed_hosts([f"host of {name}" for name in fresh])
        known |= fresh
    fleet.advance()
    assert isinstance(fleet.ended[number], Quarantine)


def test_others_are_not_waited_for() -> None:
    """Workers of any job are not started by whoever watches those of one."""
    fleet = SimulatedFleet(_SETTINGS)
    fleet.scheduler.set_crashed_hosts(())
    number = fleet.submit(Share("job"), numbered_request(1, 12))
    _run_with_restarts(fleet)
    assert isinstance(fleet.ended[number], Quarantine)


def test_a_worker_that_was_long_silent_went_with_its_machine() -> None:
    fleet = SimulatedFleet(_SETTINGS)
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    for name in ("one", "two", "three", "four"):
        fleet.join(name)
        while not fleet.workers[name].tasks:
            fleet.advance(0.1)
        fleet.workers[name].frozen = True
        fleet.advance(_SETTINGS.recent_contact_seconds + 1)
        fleet.end(name)
    assert fleet.scheduler.snapshot().counts.workers_left == {"silent": 4}
    fleet.join("five")
    fleet.run(fleet.now + 20.0)
    assert isinstance(fleet.ended[number], Completion)
