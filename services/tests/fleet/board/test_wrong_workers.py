"""Workers whose results are wrong, damaged, or refused."""

from __future__ import annotations

import hashlib

import pytest

from remy_services.evaluation import Share
from remy_services.fleet.board import (
    BoardSettings,
    Completion,
    Refusal,
    WorkerFacts,
    WorkerQuarantined,
)
from services.tests.fleet.board.simulated_fleet import SimulatedFleet
from services.tests.fleet.requests import numbered_request, slice_outcome


def _fleet(*names: str, doubled_share: float = 1.0) -> SimulatedFleet:
    fleet = SimulatedFleet(BoardSettings(doubled_share=doubled_share, longest_task_seconds=0.2))
    for name in names:
        fleet.join(name)
    return fleet


def test_a_third_worker_decides() -> None:
    fleet = _fleet("right", "wrong", "third")
    fleet.workers["wrong"].off_by = 1
    number = fleet.submit(Share("job"), numbered_request(4, 4))
    fleet.run(20.0)

    end = fleet.ended[number]
    assert isinstance(end, Completion)
    assert fleet.expelled == {"wrong"}
    assert end.workers == {"right", "third"}
    assert fleet.board.snapshot().counts.disagreements == 1
    with pytest.raises(WorkerQuarantined, match="worker wrong is quarantined"):
        fleet.board.join(WorkerFacts("wrong", 1), fleet.now)


def test_what_a_wrong_worker_did_alone_is_done_again() -> None:
    fleet = _fleet("wrong", doubled_share=0.0)
    fleet.workers["wrong"].off_by = 1
    number = fleet.submit(Share("job"), numbered_request(8, 4))
    fleet.run(0.5)
    believed = fleet.board.progress(number)
    assert believed is not None
    assert believed.simulations_done > 0

    for name in ("right", "third"):
        fleet.join(name)
    fleet.advance()
    for lease_id in list(fleet.workers["wrong"].tasks):
        del fleet.workers["wrong"].tasks[lease_id]
        fleet.board.reject("wrong", lease_id, "digest", fleet.now)
    for _ in range(3):
        fleet.advance(0.1)
        for lease_id in list(fleet.workers["wrong"].tasks if "wrong" in fleet.workers else ()):
            del fleet.workers["wrong"].tasks[lease_id]
            fleet.board.reject("wrong", lease_id, "digest", fleet.now)
    fleet.run(20.0)

    assert fleet.expelled == {"wrong"}
    assert fleet.board.snapshot().counts.revoked_results > 0
    # The simulated fleet compares the outcome with the right one.
    assert isinstance(fleet.ended[number], Completion)


def test_of_two_workers_the_one_that_contradicts_itself_is_wrong() -> None:
    fleet = _fleet("right", "fickle")
    fleet.workers["fickle"].off_by = 1
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    for lie in range(2, 6):
        fleet.run(fleet.now + 0.2)
        if "fickle" in fleet.workers:
            fleet.workers["fickle"].off_by = lie
    fleet.run(20.0)
    assert fleet.expelled == {"fickle"}
    assert isinstance(fleet.ended[number], Completion)


def test_two_workers_that_stand_by_what_they_said_wait_for_a_third() -> None:
    fleet = _fleet("right", "wrong")
    fleet.workers["wrong"].off_by = 1
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.run(20.0)
    assert number not in fleet.ended
    # Each was asked twice, and no more.
    assert fleet.board.snapshot().counts.tasks_assigned == 4
    assert fleet.board.snapshot().tasks_waiting == 1

    fleet.join("third")
    fleet.run(40.0)
    assert fleet.expelled == {"wrong"}
    assert isinstance(fleet.ended[number], Completion)


def test_damaged_results_are_done_again_and_their_worker_is_quarantined_at_the_third() -> None:
    fleet = _fleet("noisy", "clean", doubled_share=0.0)
    number = fleet.submit(Share("job"), numbered_request(10, 4))
    damaged = 0
    while "noisy" in fleet.workers:
        fleet.advance(0.1)
        for lease_id in list(fleet.workers["noisy"].tasks if "noisy" in fleet.workers else ()):
            del fleet.workers["noisy"].tasks[lease_id]
            fleet.board.reject("noisy", lease_id, "digest", fleet.now)
            damaged += 1
    fleet.run(20.0)
    assert fleet.board.snapshot().counts.bad_results["digest"] == damaged >= 3
    assert isinstance(fleet.ended[number], Completion)


def _refuse_all(fleet: SimulatedFleet, name: str, why: str) -> None:
    for lease_id in list(fleet.workers[name].tasks if name in fleet.workers else ()):
        del fleet.workers[name].tasks[lease_id]
        fleet.board.refuse(name, lease_id, why, fleet.now)


def test_what_two_workers_refuse_makes_no_sense() -> None:
    fleet = _fleet("one", "two", doubled_share=0.0)
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    for _ in range(4):
        fleet.advance(0.1)
        for name in ("one", "two"):
            _refuse_all(fleet, name, "the link rate is negative")
    fleet.advance()
    assert fleet.ended[number] == Refusal("the link rate is negative")
    assert not fleet.expelled


def test_whoever_refuses_what_two_others_can_do_is_wrong() -> None:
    fleet = _fleet("squeamish", doubled_share=0.0)
    number = fleet.submit(Share("job"), numbered_request(2, 2))
    fleet.advance()
    fleet.join("one")
    fleet.join("two")
    _refuse_all(fleet, "squeamish", "no such recording")
    fleet.run(20.0)
    assert isinstance(fleet.ended[number], Completion)
    assert fleet.expelled == {"squeamish"}


def test_an_impossible_result_is_the_request_s_fault_if_others_say_the_same() -> None:
    fleet = _fleet("one", "two", doubled_share=0.0)
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    for _ in range(4):
        fleet.advance(0.1)
        for name in ("one", "two"):
            for lease_id in list(fleet.workers[name].tasks):
                del fleet.workers[name].tasks[lease_id]
                fleet.board.disbelieve(name, lease_id, b"same", "the delay is infinite", fleet.now)
    fleet.advance()
    assert fleet.ended[number] == Refusal("the delay is infinite")
    assert not fleet.expelled


def test_an_answer_of_another_worker_s_lease_means_nothing() -> None:
    fleet = _fleet("one", "two", doubled_share=0.0)
    number = fleet.submit(Share("job"), numbered_request(1, 1))
    fleet.advance()
    (name,) = [name for name, worker in fleet.workers.items() if worker.tasks]
    (lease_id, (assignment, _)) = next(iter(fleet.workers[name].tasks.items()))
    wrong = slice_outcome(assignment.whole, assignment.slice, off_by=1)
    digest = hashlib.sha256(wrong.SerializeToString()).digest()
    other = "two" if name == "one" else "one"
    fleet.board.complete(other, lease_id, wrong, digest, 0.1, fleet.now)
    assert fleet.board.snapshot().counts.unknown_leases == 1
    fleet.run(5.0)
    assert isinstance(fleet.ended[number], Completion)
