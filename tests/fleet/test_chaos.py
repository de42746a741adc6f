"""A design on workers that fail all the time, in every way, comes to the same bytes."""

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
        # What a lost worker had waits for the end of its lease, and for nothing else.
        hedge_seconds=60.0,
        longest_task_seconds=0.05,
        shortest_task_seconds=0.002,
        # Whom SIGKILL ended was not ended by what it was doing, which nobody can tell.
        ended_workers=8,
    )
)


@pytest.fixture
def watched_boards(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was found wrong with schedulers: tasks that were lost for longer than a lease."""
    found: list[str] = []
    advance = TaskScheduler.advance

    def watched(scheduler: TaskScheduler, now: float) -> Effects:
        effects = advance(scheduler, now)
        for worker in scheduler._registry.workers.values():
            silence = now - worker.heard_at
            active = sum(lease.active for lease in worker.held.values())
            if silence >= scheduler.settings.lease_seconds and active:
                found.append(f"{active} tasks are with a worker silent for {silence:.3f} s")
        return effects

    monkeypatch.setattr(TaskScheduler, "advance", watched)
    return found


def test_a_design_under_constant_faults_is_the_same_bytes(watched_boards: list[str]) -> None:
    embedded = LocalEvaluator(1)
    expected = design(_SPEC, embedded)
    embedded.close()

    with Network() as network, WorkerFarm(_SETTINGS) as farm:
        faults = Faults(farm, network, _WORKERS, seed=1)
        with ThreadPoolExecutor(1) as pool:
            harm = pool.submit(faults.do, _FAULTS)
            while not harm.done():
                assert design(_SPEC, farm) == expected
            harm.result()
        counts = farm.fleet.snapshot().counts

    assert not watched_boards
    assert faults.counts.total() == _FAULTS
    # Every kind of fault was felt, and nothing was given up.
    assert counts.leases_ended["lost"] > 0
    assert counts.leases_ended["silent"] > 0
    assert counts.workers_left["signal"] >= faults.counts["tell_to_end"]
    assert counts.bad_results.total() > 0
    assert counts.quarantined_workers == faults.counts["corrupt"] > 0
    assert counts.quarantined_tasks == 0
