"""Tests with random sequences of events that each evaluation ends once, with the right outcome."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from library.tests.evaluation.requests import numbered_request
from library.tests.evaluation.scheduler.simulated_fleet import SimulatedFleet, settle
from remy_farm.evaluation.interface import ResultsDiffer, Share
from remy_farm.evaluation.scheduler.records import Completion, SchedulerSettings

_LEASE_SECONDS = 5.0
_NAMES = [f"worker-{number}" for number in range(5)]
_JOBS = ["fast", "slow"]


class RandomEvents(RuleBasedStateMachine):
    """Workers join, leave, freeze and reconnect while evaluations are submitted and withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = SimulatedFleet(
            SchedulerSettings(
                lease_seconds=_LEASE_SECONDS,
                longest_task_seconds=1.0,
                shortest_task_seconds=0.1,
                # Workers are lost at random here, not because of their tasks.
                poison_losses=1_000,
            )
        )

    @rule(
        job=st.sampled_from(_JOBS),
        priority=st.integers(0, 1),
        candidates=st.integers(0, 5),
        specimens=st.integers(1, 5),
    )
    def submit(self, job: str, priority: int, candidates: int, specimens: int) -> None:
        self.fleet.submit(Share(job, priority), numbered_request(candidates, specimens))

    @precondition(lambda self: self.fleet.requests)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        self.fleet.withdraw(data.draw(st.sampled_from(sorted(self.fleet.requests))))

    @rule(
        name=st.sampled_from(_NAMES),
        threads=st.integers(1, 3),
        job=st.sampled_from(["", *_JOBS]),
    )
    def join(self, name: str, threads: int, job: str) -> None:
        self.fleet.join(name, threads=threads, job_id=job)

    @precondition(lambda self: self._ordinary_workers())
    @rule(data=st.data(), how=st.sampled_from(["kill", "leave", "reconnect"]))
    def remove_or_reconnect(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(self._ordinary_workers()))
        getattr(self.fleet, how)(name)

    @precondition(lambda self: self._ordinary_workers())
    @rule(data=st.data(), frozen=st.booleans())
    def freeze(self, data: st.DataObject, frozen: bool) -> None:
        self.fleet.workers[data.draw(st.sampled_from(self._ordinary_workers()))].frozen = frozen

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, _LEASE_SECONDS]))
    def wait(self, seconds: float) -> None:
        self.fleet.advance(seconds)

    @precondition(lambda self: self._busy_workers())
    @rule(data=st.data(), how=st.sampled_from(["answer", "give back", "damage", "answer finished"]))
    def answer(self, data: st.DataObject, how: str) -> None:
        busy = self._busy_workers()
        name = data.draw(st.sampled_from(sorted(busy)))
        worker = self.fleet.workers[name]
        lease_id = data.draw(st.sampled_from(sorted(worker.tasks)))
        if how == "answer":
            self.fleet.answer(name, lease_id)
        elif how == "answer finished":
            self.fleet.answer_finished_tasks(name)
        else:
            del worker.tasks[lease_id]
            if how == "damage":
                self.fleet.scheduler.reject(name, lease_id, "digest", self.fleet.now)
            else:
                self.fleet.scheduler.give_back(name, [lease_id], self.fleet.now)

    def _busy_workers(self) -> list[str]:
        """The workers that have tasks and are not frozen."""
        workers = self.fleet.workers.items()
        return [name for name, worker in workers if worker.tasks and not worker.frozen]

    def _ordinary_workers(self) -> list[str]:
        """The workers that may have faults, unlike those that `teardown` adds."""
        return sorted(set(_NAMES) & set(self.fleet.workers))

    @invariant()
    def snapshot_counts_match(self) -> None:
        snapshot = self.fleet.scheduler.snapshot()
        open_requests = len(self.fleet.requests) - len(self.fleet.ended) - len(self.fleet.withdrawn)
        # An evaluation is closed before its end is reported.
        assert snapshot.evaluations <= open_requests
        assert snapshot.tasks_running >= 0

    def teardown(self) -> None:
        """Checks that all evaluations end once there are workers without faults."""
        self.fleet.advance()
        for name in self._ordinary_workers():
            self.fleet.kill(name)
        for number in range(3):
            self.fleet.join(f"late-{number}", threads=2)
        settle(self.fleet, within_seconds=4 * _LEASE_SECONDS + 60.0)
        self.check_ends()
        assert self.fleet.scheduler.snapshot().evaluations == 0
        assert self.fleet.scheduler.snapshot().tasks_waiting == 0

    def check_ends(self) -> None:
        """Checks that all evaluations completed; the simulated fleet checks their outcomes."""
        assert all(isinstance(end, Completion) for end in self.fleet.ended.values())


class RandomEventsWithWrongResults(RandomEvents):
    """Adds workers with wrong results. A job fails if and only if two answers differ."""

    def __init__(self) -> None:
        super().__init__()
        self.errors = 0

    @precondition(lambda self: self._ordinary_workers())
    @rule(data=st.data())
    def make_results_wrong(self, data: st.DataObject) -> None:
        # Each error is different, so that no two wrong results agree.
        self.errors += 1
        self.fleet.workers[
            data.draw(st.sampled_from(self._ordinary_workers()))
        ].off_by = self.errors

    def check_ends(self) -> None:
        """Checks that a job with different answers fails, at the latest in its next evaluation."""
        ends = self.fleet.ended.values()
        assert all(isinstance(end, Completion | ResultsDiffer) for end in ends)
        for job in sorted(self.fleet.not_failed_yet):
            self.fleet.submit(Share(job), numbered_request(1, 1))
        settle(self.fleet, within_seconds=60.0)
        assert not self.fleet.not_failed_yet


_SETTINGS = settings(
    max_examples=100, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow]
)
RandomEvents.TestCase.settings = _SETTINGS
RandomEventsWithWrongResults.TestCase.settings = _SETTINGS
TestRandomEvents = RandomEvents.TestCase
TestRandomEventsWithWrongResults = RandomEventsWithWrongResults.TestCase
