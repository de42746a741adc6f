"""Tests the queue policy."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from remy_proto.v1.job_pb2 import Job
from remy_services.jobs.progress import QueueLimits, select_running_jobs
from services.tests.jobs.records import at

_MANY = QueueLimits(running_jobs=100, running_jobs_per_owner=100)


def _job(name: str, *, priority: int = 0, owner: str = "ada", since: int = 0) -> Job:
    return Job(id=name, owner=owner, priority=priority, create_time=at(since))


def test_higher_priority_first_then_first_come_first_served() -> None:
    jobs = [_job("late", since=2), _job("early", since=1), _job("urgent", priority=1, since=3)]
    assert select_running_jobs(jobs, (), QueueLimits(1, 100)) == {"urgent"}
    assert select_running_jobs(jobs, (), QueueLimits(2, 100)) == {"urgent", "early"}


def test_only_a_higher_priority_preempts_a_running_job() -> None:
    running, limits = _job("running", since=5), QueueLimits(1, 100)
    assert select_running_jobs([running, _job("earlier", since=1)], {"running"}, limits) == {
        "running"
    }
    assert select_running_jobs([running, _job("urgent", priority=1)], {"running"}, limits) == {
        "urgent"
    }


def test_an_owner_at_the_limit_does_not_block_others() -> None:
    jobs = [_job(f"ada-{number}", since=number) for number in range(3)]
    others = _job("bob", owner="bob", since=9)
    assert select_running_jobs([*jobs, others], (), QueueLimits(100, 2)) == {
        "ada-0",
        "ada-1",
        "bob",
    }


_contenders = st.lists(
    st.builds(
        Job,
        id=st.uuids().map(str),
        owner=st.sampled_from("abc"),
        priority=st.integers(-2, 2),
        create_time=st.integers(0, 5).map(at),
    ),
    max_size=12,
    unique_by=lambda job: job.id,
)


@st.composite
def _some_running(draw: st.DrawFn) -> tuple[list[Job], set[str]]:
    """Draws jobs, and the ids of the running ones."""
    jobs = draw(_contenders)
    return jobs, {job.id for job in jobs if draw(st.booleans())}


_limits = st.builds(QueueLimits, st.integers(1, 6), st.integers(1, 6))


@given(drawn=_some_running(), limits=_limits)
def test_limits_are_respected_and_no_slot_stays_free(
    drawn: tuple[list[Job], set[str]], limits: QueueLimits
) -> None:
    jobs, before = drawn
    chosen = select_running_jobs(jobs, before, limits)
    running = Counter(job.owner for job in jobs if job.id in chosen)
    assert len(chosen) <= limits.running_jobs
    assert max(running.values(), default=0) <= limits.running_jobs_per_owner
    for job in jobs:
        could_run = (
            len(chosen) < limits.running_jobs and running[job.owner] < limits.running_jobs_per_owner
        )
        assert job.id in chosen or not could_run


@given(drawn=_some_running(), limits=_limits, data=st.data())
def test_the_choice_is_independent_of_order_and_idempotent(
    drawn: tuple[list[Job], set[str]], limits: QueueLimits, data: st.DataObject
) -> None:
    jobs, running = drawn
    chosen = select_running_jobs(jobs, running, limits)
    assert select_running_jobs(data.draw(st.permutations(jobs)), running, limits) == chosen
    assert select_running_jobs(jobs, chosen, limits) == chosen


@given(drawn=_some_running())
def test_all_jobs_run_without_limits(drawn: tuple[list[Job], set[str]]) -> None:
    jobs, running = drawn
    assert select_running_jobs(jobs, running, _MANY) == {job.id for job in jobs}
