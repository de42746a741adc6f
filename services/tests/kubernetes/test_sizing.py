"""How many workers a design gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from library.tests.evaluation.requests import numbered_request
from library.tests.evaluation.scheduler.simulated_fleet import SimulatedFleet
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import SchedulerSettings
from remy_proto.v1 import spec_pb2
from remy_services.kubernetes.manifest import Load
from remy_services.kubernetes.reconciliation import bounds, workers_wanted
from services.tests.kubernetes.objects import SETTINGS

NOTHING = spec_pb2.Workers()


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (NOTHING, (2, 8)),
        (spec_pb2.Workers(minimum=3), (3, 8)),
        (spec_pb2.Workers(minimum=12), (12, 12)),
        (spec_pb2.Workers(maximum=5), (2, 5)),
        (spec_pb2.Workers(maximum=1), (1, 1)),
        (spec_pb2.Workers(minimum=30, maximum=40), (20, 20)),
    ],
)
def test_a_specification_says_how_many_within_the_limits(
    workers: spec_pb2.Workers, expected: tuple[int, int]
) -> None:
    assert bounds(workers, SETTINGS) == expected


@pytest.mark.parametrize(
    ("load", "present", "running", "expected"),
    [
        # Nothing is known yet: the fewest, or what there is.
        (Load(), None, 0, 2),
        (Load(), 5, 5, 5),
        (Load(1000), 5, 5, 5),
        # Workers that are busy all the time become twice as many, up to the most.
        (Load(1000, 1.0), 2, 2, 4),
        (Load(1000, 1.0), 5, 5, 8),
        (Load(1000, 0.7), 2, 2, 3),
        # 6 simulations a step employ three workers of two threads, however busy two are.
        (Load(6, 1.0), 2, 2, 3),
        (Load(None, 1.0), 2, 2, 4),
        # They become fewer when half would do, and not before.
        (Load(1000, 0.3), 8, 8, 8),
        (Load(1000, 0.25), 8, 8, 4),
        (Load(1000, 0.0), 8, 8, 2),
        # Those that wait for a node are not given up because those that run are busy.
        (Load(1000, 1.0), 8, 2, 8),
        (Load(1000, 0.4), 8, 0, 8),
        # What is left of the budget employs three workers of two threads for a minute.
        (Load(1000, 1.0, 350.0), 8, 8, 3),
    ],
)
def test_the_number_follows_the_work_there_is(
    load: Load, present: int | None, running: int, expected: int
) -> None:
    assert workers_wanted(NOTHING, load, 2, present, running, SETTINGS) == expected


@given(
    st.integers(1, 10**9) | st.none(),
    st.floats(0, 1) | st.none(),
    st.floats(-10, 1e9) | st.none(),
    st.integers(1, 64),
    st.integers(1, 500) | st.none(),
    st.integers(0, 500),
)
def test_the_number_is_within_its_bounds_and_stays_where_it_is_put(
    simulations: int | None,
    share: float | None,
    left: float | None,
    threads: int,
    present: int | None,
    running: int,
) -> None:
    load = Load(simulations, share, left)
    wanted = workers_wanted(NOTHING, load, threads, present, running, SETTINGS)
    assert 2 <= wanted <= 8
    assert workers_wanted(NOTHING, load, threads, wanted, running, SETTINGS) == wanted


def _settled(*, simulations: int, seconds_between: float) -> int:
    """How many workers of a thread a design comes to whose steps are of so many simulations of
    50 ms, with so much time between two steps."""
    fleet, wanted = SimulatedFleet(SchedulerSettings()), 1
    one = replace(SETTINGS, minimum_workers=1, maximum_workers=20)
    for _ in range(8):
        for name in range(len(fleet.workers), wanted):
            fleet.join(f"worker-{name}", job_id="job")
        for name in range(wanted, len(fleet.workers)):
            fleet.leave(f"worker-{name}")
        began_at, busy = fleet.now, fleet.scheduler.saturated_seconds("job") or 0.0
        while fleet.now < began_at + 1.5:
            fleet.submit(Share("job"), numbered_request(1, simulations))
            fleet.run(fleet.now + 100.0, step=0.01)
            fleet.advance(seconds_between)
        share = (fleet.scheduler.saturated_seconds("job") or 0.0) - busy
        load = Load(simulations, share / (fleet.now - began_at))
        wanted = workers_wanted(NOTHING, load, 1, wanted, len(fleet.workers), one)
    return wanted


def test_a_design_of_short_steps_gets_the_workers_that_shorten_them() -> None:
    """A step of 32 simulations is 1.6 CPU-seconds, which one worker would be done with in time."""
    assert _settled(simulations=32, seconds_between=0.02) >= 12
    assert 3 <= _settled(simulations=32, seconds_between=0.4) <= 10
    assert _settled(simulations=3, seconds_between=0.02) <= 3
    assert _settled(simulations=32, seconds_between=5.0) == 1
