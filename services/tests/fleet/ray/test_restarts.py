"""How soon a driver is started again."""

from __future__ import annotations

from remy_services.fleet.ray.restarts import Restarts


def test_failure_after_failure_is_waited_longer_for_up_to_a_bound() -> None:
    restarts = Restarts()
    waits = [restarts.wait_seconds(1.0, had_workers=False) for _ in range(10)]
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits == sorted(waits)
    assert waits[-1] == waits[-2] == 30.0


def test_a_driver_that_was_of_use_is_started_again_at_once() -> None:
    restarts = Restarts()
    for _ in range(8):
        restarts.wait_seconds(1.0, had_workers=False)
    assert restarts.wait_seconds(1.0, had_workers=True) == 0.5
    assert restarts.wait_seconds(1.0, had_workers=False) == 1.0
    assert restarts.wait_seconds(100.0, had_workers=False) == 0.5
