"""How long to wait before calling again."""

from __future__ import annotations

import random

from remy_workers.backoff import Backoff


def test_waits_grow_to_a_bound_and_differ_between_workers() -> None:
    one, other = (Backoff(random.Random(seed)) for seed in (1, 2))
    waits = [one.seconds() for _ in range(12)]
    assert 0.125 <= waits[0] <= 0.25
    assert 7.5 <= waits[-1] <= 15.0
    assert max(waits) <= 15.0
    assert waits != [other.seconds() for _ in range(12)]

    one.reset()
    assert one.seconds() <= 0.25
