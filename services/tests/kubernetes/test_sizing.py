"""How many workers a design gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.v1 import spec_pb2
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
    ("load", "present", "expected"),
    [
        # Nothing is known yet: the fewest, or what there is.
        (Load(), None, 2),
        (Load(), 5, 5),
        # 24 CPU-seconds a step employ six workers of two threads for two seconds.
        (Load(step_cpu_seconds=24.0), 2, 6),
        (Load(step_cpu_seconds=1000.0), 2, 8),
        (Load(step_cpu_seconds=0.1), 2, 2),
        # They become fewer when half would do, and not before.
        (Load(step_cpu_seconds=17.0), 8, 8),
        (Load(step_cpu_seconds=16.0), 8, 4),
        # What is left of the budget employs three workers of two threads for a minute.
        (Load(step_cpu_seconds=1000.0, cpu_seconds_left=350.0), 8, 3),
    ],
)
def test_the_number_follows_the_work_there_is(
    load: Load, present: int | None, expected: int
) -> None:
    assert workers_wanted(NOTHING, load, 2, present, SETTINGS) == expected


@given(
    st.floats(0, 1e9) | st.none(),
    st.floats(-10, 1e9) | st.none(),
    st.integers(1, 64),
    st.integers(1, 500) | st.none(),
)
def test_the_number_is_within_its_bounds_and_stays_where_it_is_put(
    step: float | None, left: float | None, threads: int, present: int | None
) -> None:
    load = Load(step, left)
    wanted = workers_wanted(NOTHING, load, threads, present, SETTINGS)
    assert 2 <= wanted <= 8
    assert workers_wanted(NOTHING, load, threads, wanted, SETTINGS) == wanted
