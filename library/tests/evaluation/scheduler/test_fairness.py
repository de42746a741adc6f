"""Tests how CPU time is divided among jobs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library.tests.evaluation.requests import numbered_request
from library.tests.evaluation.scheduler.simulated_fleet import SECONDS_PER_PACKET, SimulatedFleet
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import Completion, SchedulerSettings

_LONGEST_SECONDS = 1.0


def _fleet(workers: int) -> SimulatedFleet:
    fleet = SimulatedFleet(SchedulerSettings(longest_task_seconds=_LONGEST_SECONDS))
    for number in range(workers):
        fleet.join(f"worker-{number}")
    return fleet


@settings(max_examples=40)
@given(
    st.lists(st.floats(0.1, 10.0), min_size=2, max_size=4),
    st.integers(1, 3),
    st.lists(st.sampled_from([1.0, 3.0, 10.0]), min_size=4, max_size=4),
)
def test_busy_jobs_share_cpu_time_by_weight(
    weights: list[float], workers: int, rates: list[float]
) -> None:
    """Whatever simulations cost, each job gets its share to within a few tasks."""
    fleet = _fleet(workers)
    for number, weight in enumerate(weights):
        request = numbered_request(400, 3, [rates[number]])
        fleet.submit(Share(f"job-{number}", weight=weight), request)
    fleet.run(20.0, step=0.25)

    assert not fleet.ended
    served = [fleet.given[f"job-{number}"] / weight for number, weight in enumerate(weights)]
    # CPU time counts when a task is assigned, so jobs differ by the tasks that the workers run. A
    # task exceeds the longest time by at most one simulation.
    longest = _LONGEST_SECONDS + 3 * 10.0 * 1e6 * SECONDS_PER_PACKET
    assert max(served) - min(served) <= (2 * workers + 2) * longest / min(weights)


def test_equal_jobs_get_equal_cpu_time_whatever_their_simulations_cost() -> None:
    fleet = _fleet(4)
    cheap = fleet.submit(Share("cheap"), numbered_request(600, 4, [0.5]))
    dear = fleet.submit(Share("dear"), numbered_request(60, 4, [5.0]))
    fleet.run(10.0)
    assert not {cheap, dear} & fleet.ended.keys()
    assert fleet.given["cheap"] == pytest.approx(fleet.given["dear"], rel=0.2)


def test_a_job_of_higher_priority_goes_first() -> None:
    fleet = _fleet(2)
    later = fleet.submit(Share("patient", priority=1), numbered_request(300, 4))
    fleet.run(5.0)
    urgent = fleet.submit(Share("urgent", priority=2), numbered_request(100, 4))
    fleet.run(5.0 + 100 * 4 * 0.05 / 2 + 3.0)
    assert isinstance(fleet.ended[urgent], Completion)
    assert later not in fleet.ended


def test_a_job_without_tasks_saves_up_no_cpu_time() -> None:
    fleet = _fleet(2)
    fleet.submit(Share("idle"), numbered_request(1, 1))
    fleet.submit(Share("busy"), numbered_request(500, 4))
    fleet.run(20.0)
    before = dict(fleet.given)
    fleet.submit(Share("idle"), numbered_request(500, 4))
    fleet.run(40.0)
    gained = {job: fleet.given[job] - before[job] for job in before}
    assert gained["busy"] == pytest.approx(gained["idle"], rel=0.2)


def test_a_worker_of_one_job_serves_only_that_job() -> None:
    fleet = _fleet(0)
    fleet.join("special", job_id="mine")
    other = fleet.submit(Share("other", priority=9), numbered_request(2, 2))
    mine = fleet.submit(Share("mine"), numbered_request(2, 2))
    fleet.run(30.0)
    assert mine in fleet.ended
    assert other not in fleet.ended
