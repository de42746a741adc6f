"""Whose turn it is."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from remy_services.jobs.progress import Contender, QueueLimits, whose_turn

_MANY = QueueLimits(running_jobs=100, running_jobs_per_owner=100)


def _job(
    name: str, *, priority: int = 0, owner: str = "ada", since: int = 0, running: bool = False
) -> Contender:
    return Contender(name, owner, priority, since, running)


def test_higher_priority_first_then_first_come_first_served() -> None:
    jobs = [_job("late", since=2), _job("early", since=1), _job("urgent", priority=1, since=3)]
    assert whose_turn(jobs, QueueLimits(1, 100)) == {"urgent"}
    assert whose_turn(jobs, QueueLimits(2, 100)) == {"urgent", "early"}


def test_a_running_job_gives_way_to_a_higher_priority_alone() -> None:
    running = _job("running", since=5, running=True)
    assert whose_turn([running, _job("earlier", since=1)], QueueLimits(1, 100)) == {"running"}
    assert whose_turn([running, _job("urgent", priority=1)], QueueLimits(1, 100)) == {"urgent"}


def test_who_has_enough_running_lets_others_pass() -> None:
    jobs = [_job(f"ada-{number}", since=number) for number in range(3)]
    others = _job("bob", owner="bob", since=9)
    assert whose_turn([*jobs, others], QueueLimits(100, 2)) == {"ada-0", "ada-1", "bob"}


_contenders = st.lists(
    st.builds(
        Contender,
        job_id=st.uuids().map(str),
        owner=st.sampled_from("abc"),
        priority=st.integers(-2, 2),
        create_time_ns=st.integers(0, 5),
        is_running=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda contender: contender.job_id,
)
_limits = st.builds(QueueLimits, st.integers(1, 6), st.integers(1, 6))


@given(jobs=_contenders, limits=_limits)
def test_the_limits_hold_and_no_place_stays_empty(
    jobs: list[Contender], limits: QueueLimits
) -> None:
    chosen = whose_turn(jobs, limits)
    running = Counter(job.owner for job in jobs if job.job_id in chosen)
    assert len(chosen) <= limits.running_jobs
    assert max(running.values(), default=0) <= limits.running_jobs_per_owner
    for job in jobs:
        could_run = (
            len(chosen) < limits.running_jobs and running[job.owner] < limits.running_jobs_per_owner
        )
        assert job.job_id in chosen or not could_run


@given(jobs=_contenders, limits=_limits, data=st.data())
def test_neither_order_nor_a_second_look_changes_anything(
    jobs: list[Contender], limits: QueueLimits, data: st.DataObject
) -> None:
    chosen = whose_turn(jobs, limits)
    assert whose_turn(data.draw(st.permutations(jobs)), limits) == chosen
    after = [
        Contender(job.job_id, job.owner, job.priority, job.create_time_ns, job.job_id in chosen)
        for job in jobs
    ]
    assert whose_turn(after, limits) == chosen


@given(jobs=_contenders)
def test_without_limits_all_run(jobs: list[Contender]) -> None:
    assert whose_turn(jobs, _MANY) == {job.job_id for job in jobs}
