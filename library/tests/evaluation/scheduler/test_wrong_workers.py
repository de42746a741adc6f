"""Tests workers whose results are damaged, implausible, or different from those of others."""

from __future__ import annotations

import hashlib

import pytest

from library.tests.evaluation.requests import numbered_request, slice_outcome
from library.tests.evaluation.scheduler.simulated_fleet import SimulatedFleet
from remy_farm.evaluation.interface import ResultsDiffer, Share
from remy_farm.evaluation.scheduler.records import Completion, SchedulerSettings
from remy_farm.evaluation.scheduler.scheduler import WorkerQuarantined
from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_simulator import InvalidRequest


def _fleet(*names: str) -> SimulatedFleet:
    fleet = SimulatedFleet(SchedulerSettings(longest_task_seconds=0.2))
    for name in names:
        fleet.join(name)
    return fleet


def _hedged(fleet: SimulatedFleet, first: str, second: str) -> int:
    """Submits an evaluation with one task that is assigned to both workers by hedging."""
    fleet.join(first, reserve=0)
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.advance()
    fleet.workers[first].frozen = True
    fleet.join(second)
    fleet.advance(2 * fleet.scheduler.settings.hedge_seconds)
    assert len(fleet.workers[first].tasks) == len(fleet.workers[second].tasks) == 1
    return number


def _answer(fleet: SimulatedFleet, name: str) -> None:
    for lease_id in list(fleet.workers[name].tasks):
        fleet.answer(name, lease_id)


def test_a_second_equal_answer_counts_as_a_duplicate() -> None:
    fleet = _fleet()
    number = _hedged(fleet, "late", "quick")
    _answer(fleet, "quick")
    _answer(fleet, "late")
    fleet.advance()
    assert isinstance(fleet.ended[number], Completion)
    assert fleet.scheduler.snapshot().counts.duplicate_results == 1
    fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.workers["late"].frozen = False
    fleet.run(20.0)
    assert all(isinstance(end, Completion) for end in fleet.ended.values())


def test_a_second_different_answer_fails_the_job_and_names_both_workers() -> None:
    """The evaluation is complete with the first answer, so that the job's next evaluation fails."""
    fleet = _fleet()
    done = _hedged(fleet, "late", "quick")
    fleet.workers["late"].off_by = 1
    _answer(fleet, "quick")
    _answer(fleet, "late")
    of_another = fleet.submit(Share("other job"), numbered_request(1, 1))
    next_one = fleet.submit(Share("job"), numbered_request(1, 1))
    afterwards = fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.workers["late"].frozen = False
    fleet.workers["late"].off_by = 0
    fleet.run(20.0)

    end = fleet.ended[next_one]
    assert isinstance(end, ResultsDiffer)
    assert "worker quick (simulator 1.0 of quick)" in str(end)
    assert "worker late (simulator 1.0 of late)" in str(end)
    for number in (done, of_another, afterwards):
        assert isinstance(fleet.ended[number], Completion)
    assert not fleet.quarantined


def test_an_open_evaluation_fails_at_once_if_answers_differ() -> None:
    fleet = _fleet("late", "quick")
    number = fleet.submit(Share("job"), numbered_request(8, 4))
    fleet.advance()
    lost = dict(fleet.workers["late"].tasks)
    fleet.kill("late")
    fleet.run(0.5)
    fleet.join("late")
    fleet.advance()
    progress = fleet.scheduler.progress(number)
    assert progress is not None
    assert 0 < progress.simulations_done < progress.simulations
    # It now sends results from before its connection was lost; others have done the tasks since.
    fleet.workers["late"].tasks |= lost
    fleet.workers["late"].off_by = 1
    for lease_id in lost:
        fleet.answer("late", lease_id)
    fleet.advance()
    assert isinstance(fleet.ended[number], ResultsDiffer)


def test_a_refusal_after_a_result_fails_the_job() -> None:
    fleet = _fleet()
    number = _hedged(fleet, "late", "quick")
    _answer(fleet, "quick")
    _refuse_all(fleet, "late", "no such recording")
    fleet.contradicted.add("job")
    next_one = fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.advance()
    assert isinstance(fleet.ended[number], Completion)
    assert isinstance(fleet.ended[next_one], ResultsDiffer)


def test_a_worker_is_quarantined_after_its_third_damaged_result() -> None:
    fleet = _fleet("noisy", "clean")
    number = fleet.submit(Share("job"), numbered_request(10, 4))
    damaged = 0
    while "noisy" in fleet.workers:
        fleet.advance(0.1)
        for lease_id in list(fleet.workers["noisy"].tasks if "noisy" in fleet.workers else ()):
            del fleet.workers["noisy"].tasks[lease_id]
            fleet.scheduler.reject("noisy", lease_id, "digest", fleet.now)
            damaged += 1
    fleet.run(20.0)
    assert fleet.scheduler.snapshot().counts.bad_results["digest"] == damaged >= 3
    assert isinstance(fleet.ended[number], Completion)


def _refuse_all(fleet: SimulatedFleet, name: str, why: str) -> None:
    for lease_id in list(fleet.workers[name].tasks if name in fleet.workers else ()):
        del fleet.workers[name].tasks[lease_id]
        fleet.scheduler.refuse(name, lease_id, why, fleet.now)


def test_a_refused_task_fails_its_evaluation() -> None:
    fleet = _fleet("one", "two")
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.advance()
    for name in ("one", "two"):
        _refuse_all(fleet, name, "the link rate is negative")
    fleet.advance()
    assert repr(fleet.ended[number]) == repr(InvalidRequest("the link rate is negative"))
    assert not fleet.quarantined


def test_a_worker_is_quarantined_after_its_third_implausible_result() -> None:
    fleet = _fleet("wrong", "right")
    number = fleet.submit(Share("job"), numbered_request(10, 4))
    results = 0
    while "wrong" in fleet.workers:
        fleet.advance(0.1)
        for lease_id in list(fleet.workers["wrong"].tasks if "wrong" in fleet.workers else ()):
            del fleet.workers["wrong"].tasks[lease_id]
            results += 1
            fleet.scheduler.reject_implausible(
                "wrong", lease_id, b"%d" % results, "it is late", fleet.now
            )
    fleet.run(20.0)
    assert fleet.scheduler.snapshot().counts.bad_results["impossible"] == results >= 3
    assert isinstance(fleet.ended[number], Completion)
    with pytest.raises(WorkerQuarantined, match="of its results were damaged or implausible"):
        fleet.scheduler.join(WorkerFacts("wrong", 1), fleet.now)


def test_a_repeated_implausible_result_fails_the_request() -> None:
    fleet = _fleet("one", "two")
    # The count of the worker with the first result is corrected, so that none is quarantined.
    for _ in range(2 * fleet.scheduler.settings.bad_results):
        number = fleet.submit(Share("job"), numbered_request(1, 1))
        for _ in range(4):
            fleet.advance(0.1)
            for name in ("one", "two"):
                for lease_id in list(fleet.workers[name].tasks):
                    del fleet.workers[name].tasks[lease_id]
                    fleet.scheduler.reject_implausible(
                        name, lease_id, b"same", "it is infinite", fleet.now
                    )
        fleet.advance()
        assert repr(fleet.ended[number]) == repr(InvalidRequest("it is infinite"))
    assert not fleet.quarantined


def test_an_answer_to_another_worker_s_lease_is_ignored() -> None:
    fleet = _fleet("one", "two")
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.advance()
    (name,) = [name for name, worker in fleet.workers.items() if worker.tasks]
    (lease_id, (assignment, _)) = next(iter(fleet.workers[name].tasks.items()))
    wrong = slice_outcome(assignment.whole, assignment.slice, off_by=1)
    digest = hashlib.sha256(wrong.SerializeToString()).digest()
    other = "two" if name == "one" else "one"
    fleet.scheduler.complete(other, lease_id, wrong, digest, 0.1, fleet.now)
    assert fleet.scheduler.snapshot().counts.unknown_leases == 1
    fleet.run(5.0)
    assert isinstance(fleet.ended[number], Completion)
