"""Tests the number of workers per design."""

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
from remy_services.kubernetes.reconciliation import bounds, desired_workers
from services.tests.kubernetes.objects import SETTINGS

NO_BOUNDS = spec_pb2.Workers()


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (NO_BOUNDS, (2, 8)),
        (spec_pb2.Workers(minimum=3), (3, 8)),
        (spec_pb2.Workers(minimum=12), (12, 12)),
        (spec_pb2.Workers(maximum=5), (2, 5)),
        (spec_pb2.Workers(maximum=1), (1, 1)),
        (spec_pb2.Workers(minimum=30, maximum=40), (20, 20)),
    ],
)
def test_worker_bounds_are_clamped_to_the_limits(
    workers: spec_pb2.Workers, expected: tuple[int, int]
) -> None:
    assert bounds(workers, SETTINGS) == expected


@pytest.mark.parametrize(
    ("load", "present", "running", "expected"),
    [
        # Load unknown: the minimum, or the present number.
        (Load(), None, 0, 2),
        (Load(), 5, 5, 5),
        (Load(1000), 5, 5, 5),
        # Saturated workers are doubled, up to the maximum.
        (Load(1000, 1.0), 2, 2, 4),
        (Load(1000, 1.0), 5, 5, 8),
        (Load(1000, 0.7), 2, 2, 3),
        # 6 simulations per step can use at most three workers of two threads.
        (Load(6, 1.0), 2, 2, 3),
        (Load(None, 1.0), 2, 2, 4),
        # Scale down only if half the workers suffice.
        (Load(1000, 0.3), 8, 8, 8),
        (Load(1000, 0.25), 8, 8, 4),
        (Load(1000, 0.0), 8, 8, 2),
        # Busy running workers do not reduce the pending ones.
        (Load(1000, 1.0), 8, 2, 8),
        (Load(1000, 0.4), 8, 0, 8),
        # The remaining budget can occupy three workers of two threads for a minute.
        (Load(1000, 1.0, 350.0), 8, 8, 3),
    ],
)
def test_desired_workers_follow_the_load(
    load: Load, present: int | None, running: int, expected: int
) -> None:
    assert desired_workers(NO_BOUNDS, load, 2, present, running, SETTINGS) == expected


@given(
    st.integers(1, 10**9) | st.none(),
    st.floats(0, 1) | st.none(),
    st.floats(-10, 1e9) | st.none(),
    st.integers(1, 64),
    st.integers(1, 500) | st.none(),
    st.integers(0, 500),
)
def test_desired_workers_are_bounded_and_stable(
    simulations: int | None,
    saturated_share: float | None,
    cpu_seconds_left: float | None,
    threads: int,
    present: int | None,
    running: int,
) -> None:
    load = Load(simulations, saturated_share, cpu_seconds_left)
    wanted = desired_workers(NO_BOUNDS, load, threads, present, running, SETTINGS)
    assert 2 <= wanted <= 8
    assert desired_workers(NO_BOUNDS, load, threads, wanted, running, SETTINGS) == wanted


def _converged_workers(*, simulations: int, seconds_between: float) -> int:
    """Returns the number of single-threaded workers to which a design converges.

    Each step has `simulations` of 50 ms, and `seconds_between` pass between steps.
    """
    fleet, wanted = SimulatedFleet(SchedulerSettings()), 1
    settings = replace(SETTINGS, minimum_workers=1, maximum_workers=20)
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
        wanted = desired_workers(NO_BOUNDS, load, 1, wanted, len(fleet.workers), settings)
    return wanted


def test_short_steps_still_scale_out() -> None:
    """A step of 32 simulations has 1.6 CPU-seconds, so more workers shorten it."""
    assert _converged_workers(simulations=32, seconds_between=0.02) >= 12
    assert 3 <= _converged_workers(simulations=32, seconds_between=0.4) <= 10
    assert _converged_workers(simulations=3, seconds_between=0.02) <= 3
    assert _converged_workers(simulations=32, seconds_between=5.0) == 1
