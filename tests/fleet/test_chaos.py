"""A design gives the same bytes on workers that fail continually and in every way."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.worker_farm import WorkerFarm
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.evaluation.scheduler.records import Effects, SchedulerSettings
from remy_farm.evaluation.scheduler.scheduler import TaskScheduler
from remy_services.transport.grpc import WorkerFleetSettings
from tests.fleet.designs import design, joint_spec
from tests.fleet.network import Network
from tests.fleet.worker_faults import Faults

_FAULTS = 1000 if os.environ.get("REMY_SOAK") else 50
_WORKERS = 4
_SPEC = joint_spec(seed=20130812, steps=60, simulated_seconds=2)
_SETTINGS = WorkerFleetSettings(
    SchedulerSettings(
        lease_seconds=1.5,
        # Longer than a lease, so that tasks of a lost worker come back only when leases expire.
        hedge_seconds=60.0,
        longest_task_seconds=0.05,
        shortest_task_seconds=0.002,
        # Killed workers count against their tasks, although the tasks are not the cause here.
        poison_losses=8,
    )
)


@pytest.fixture
def lease_violations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects tasks that a scheduler left with a silent worker for longer than a lease."""
    violations: list[str] = []
    advance = TaskScheduler.advance

    def checked(scheduler: TaskScheduler, now: float) -> Effects:
        effects = advance(scheduler, now)
        for worker in scheduler._registry.workers.values():
            silence = now - worker.last_seen_at
            active = sum(lease.active for lease in worker.held.values())
            if silence >= scheduler.settings.lease_seconds and active:
                violations.append(f"{active} tasks are with a worker silent for {silence:.3f} s")
        return effects

    monkeypatch.setattr(TaskScheduler, "advance", checked)
    return violations


def test_design_under_constant_faults_gives_the_same_bytes(lease_violations: list[str]) -> None:
    embedded = LocalEvaluator(1)
    expected = design(_SPEC, embedded)
    embedded.close()

    with Network() as network, WorkerFarm(_SETTINGS) as farm:
        faults = Faults(farm, network, _WORKERS, seed=1)
        with ThreadPoolExecutor(1) as pool:
            injection = pool.submit(faults.inject, _FAULTS)
            while not injection.done():
                assert design(_SPEC, farm) == expected
            injection.result()
        counts = farm.fleet.snapshot().counts

    assert not lease_violations
    assert faults.counts.total() == _FAULTS
    # Every kind of fault had an effect, and no task was quarantined.
    assert counts.leases_ended["lost"] > 0
    assert counts.leases_ended["silent"] > 0
    assert counts.workers_left["signal"] >= faults.counts["terminate"]
    assert counts.bad_results.total() > 0
    assert counts.quarantined_workers == faults.counts["corrupt"] > 0
    assert counts.quarantined_tasks == 0
