"""Tests budgets of CPU time and wall time."""

import pytest

from remy_farm.designer.budgets import Elapsed, estimate_seconds_left, exhausted_budget
from remy_proto.v1 import progress_pb2, spec_pb2


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (spec_pb2.Stop(), None),
        (spec_pb2.Stop(epochs=1, steps=1), None),
        (spec_pb2.Stop(cpu_seconds=21), None),
        (spec_pb2.Stop(cpu_seconds=20), progress_pb2.STOP_REASON_CPU_SECONDS),
        (spec_pb2.Stop(wall_seconds=11), None),
        (spec_pb2.Stop(wall_seconds=10), progress_pb2.STOP_REASON_WALL_SECONDS),
        (spec_pb2.Stop(cpu_seconds=20, wall_seconds=10), progress_pb2.STOP_REASON_CPU_SECONDS),
    ],
)
def test_a_budget_is_used_up_when_it_is_reached(
    stop: spec_pb2.Stop, reason: progress_pb2.StopReason | None
) -> None:
    assert exhausted_budget(stop, Elapsed(wall_seconds=10, cpu_seconds=20)) == reason


@pytest.mark.parametrize(
    ("stop", "seconds"),
    [
        (spec_pb2.Stop(), None),
        (spec_pb2.Stop(wall_seconds=15), 5),
        # 20 s of CPU time took 10 s of wall time.
        (spec_pb2.Stop(cpu_seconds=50), 15),
        # 5 steps and 2 epochs took 10 s.
        (spec_pb2.Stop(steps=6), 2),
        (spec_pb2.Stop(epochs=5), 15),
        (spec_pb2.Stop(wall_seconds=100, steps=6, epochs=5), 2),
        (spec_pb2.Stop(wall_seconds=1), 0),
        (spec_pb2.Stop(rules=5, epochs_without_gain=2), None),
    ],
)
def test_time_left_is_that_of_the_first_budget_to_run_out(
    stop: spec_pb2.Stop, seconds: float | None
) -> None:
    elapsed = Elapsed(wall_seconds=10, cpu_seconds=20)
    assert estimate_seconds_left(stop, elapsed, steps=5, epochs=2, share_done=None) == seconds


def test_time_left_is_unknown_before_the_first_step() -> None:
    stop = spec_pb2.Stop(cpu_seconds=50, steps=6, epochs=5)
    assert estimate_seconds_left(stop, Elapsed(), steps=0, epochs=0, share_done=None) is None


def test_time_left_of_a_search_of_fixed_length_follows_from_its_finished_share() -> None:
    elapsed = Elapsed(wall_seconds=30.0, cpu_seconds=60.0)
    seconds = estimate_seconds_left(spec_pb2.Stop(), elapsed, steps=5, epochs=2, share_done=0.25)
    assert seconds == 90.0
