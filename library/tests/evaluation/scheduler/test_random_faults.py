"""Tests that all evaluations complete in hours of simulated time with constant faults."""

from __future__ import annotations

import random

import pytest

from library.tests.evaluation.scheduler.simulated_fleet import (
    SimulatedFleet,
    random_request,
    settle,
)
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import Completion, SchedulerSettings

_WORKERS = 6
_REQUESTS = 120
_FAULTS = ("kill", "leave", "reconnect", "freeze", "thaw", "slow")


@pytest.mark.parametrize("seed", range(8))
def test_every_evaluation_completes_under_constant_faults(seed: int) -> None:
    rng = random.Random(seed)
    fleet = SimulatedFleet(
        SchedulerSettings(
            lease_seconds=5.0,
            longest_task_seconds=2.0,
            shortest_task_seconds=0.2,
        )
    )
    names = [f"worker-{number}" for number in range(_WORKERS)]
    faults = 0
    while len(fleet.requests) < _REQUESTS:
        if rng.random() < 0.5:
            share = Share(f"job-{rng.randrange(4)}", rng.randrange(2), rng.choice([1, 3]))
            fleet.submit(share, random_request(rng))
        for name in names:
            if name not in fleet.workers and rng.random() < 0.5:
                fleet.join(name, threads=rng.randint(1, 3))
        if fleet.workers and rng.random() < 0.7:
            faults += 1
            _break(fleet, rng.choice(sorted(fleet.workers)), rng.choice(_FAULTS))
        fleet.run(fleet.now + rng.expovariate(1.0))
    fleet.join("at last")
    settle(fleet, within_seconds=3600.0)

    counts = fleet.scheduler.snapshot().counts
    assert faults > 50
    assert len(fleet.ended) == _REQUESTS
    assert all(isinstance(end, Completion) for end in fleet.ended.values())
    # Every kind of fault has happened.
    assert counts.leases_ended["lost"] > 10
    assert counts.leases_ended["goodbye"] > 0
    assert counts.leases_ended["silent"] > 0
    assert counts.hedged_tasks > 0
    assert counts.quarantined_workers == counts.quarantined_tasks == 0


def _break(fleet: SimulatedFleet, name: str, fault: str) -> None:
    if fault in ("kill", "leave", "reconnect"):
        getattr(fleet, fault)(name)
    elif fault == "slow":
        fleet.workers[name].slowness = 20.0
    else:
        fleet.workers[name].frozen = fault == "freeze"
