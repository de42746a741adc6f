"""Tests evaluation on a real Ray cluster whose processes are killed.

A run has 50 faults of all kinds; REMY_SOAK=1 adds a run with 1,000 (`make soak`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remy_simulator
from remy_farm.evaluation.interface import TaskQuarantined
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.evaluation.scheduler.records import SchedulerSettings
from remy_proto.v1 import evaluation_pb2
from remy_services.transport.grpc import WorkerFleetSettings
from remy_services.transport.ray import RaySettings
from remy_services.transport.reproductions import reproduction_writer
from tests.fleet.designs import design, first_simulation, joint_spec, requests

if TYPE_CHECKING:
    from benchmarks.ray_cluster import RayCluster

_LEASE_SECONDS = 3.0
_IN_SOAK = pytest.mark.skipif(not os.environ.get("REMY_SOAK"), reason="REMY_SOAK is not set")


@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=_IN_SOAK)])
def test_design_gives_the_same_bytes_through_faults(ray_cluster: RayCluster, count: int) -> None:
    from benchmarks.ray_farm import RayFarm
    from tests.fleet.ray_faults import Faults, mixture

    spec = joint_spec(seed=3, steps=20, simulated_seconds=60)
    with closing(LocalEvaluator(1)) as embedded:
        expected = design(spec, embedded)
    settings = RaySettings(address=ray_cluster.address, patience_seconds=15, log_level="warning")
    scheduler = SchedulerSettings(lease_seconds=_LEASE_SECONDS)
    with RayFarm(ray_cluster, settings, workers=WorkerFleetSettings(scheduler)) as farm:
        farm.wait_for_workers(2)
        faults = Faults(ray_cluster, farm, mixture(count), _LEASE_SECONDS)
        faults.start()
        while not faults.are_over:
            assert design(spec, farm) == expected
        faults.finish()
        assert design(spec, farm) == expected
        assert farm.call_in_loop(farm.fleet.snapshot).counts.quarantined_tasks == 0
    assert faults.done == count


def test_task_that_keeps_ending_actors_is_quarantined(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    from benchmarks.ray_cluster import wait_until
    from benchmarks.ray_farm import RayFarm

    request = first_simulation(requests("joint", 1)[0])
    # An endless simulation.
    request.duration_ms = 1e12
    outcome: list[BaseException | evaluation_pb2.EvaluationOutcome] = []

    with RayFarm(ray_cluster, keep_reproduction=reproduction_writer(tmp_path)) as farm:
        farm.wait_for_workers(2)

        def evaluate() -> None:
            try:
                outcome.append(farm.evaluate(request))
            except BaseException as error:
                outcome.append(error)

        def actors_lost() -> int:
            return farm.call_in_loop(farm.fleet.snapshot).counts.workers_left["lost"]

        def kill_actors_until_lost_more_than(count: int) -> bool:
            # Repeated while the task runs, because it may have moved to another actor meanwhile.
            if farm.call_in_loop(farm.fleet.snapshot).tasks_running:
                for actor in ray_cluster.actors:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(actor, signal.SIGKILL)
            return not evaluating.is_alive() or actors_lost() > count

        evaluating = threading.Thread(target=evaluate)
        evaluating.start()
        while evaluating.is_alive():
            wait_until(partial(kill_actors_until_lost_more_than, actors_lost()), "lost actors")
        evaluating.join()
    assert isinstance(outcome[0], TaskQuarantined)
    [path] = tmp_path.iterdir()
    kept = evaluation_pb2.EvaluationRequest.FromString(path.read_bytes())
    assert kept == request


def test_actors_run_only_on_nodes_with_the_resource(ray_cluster: RayCluster) -> None:
    from benchmarks.ray_farm import RayFarm

    settings = RaySettings(address=ray_cluster.address, resource="evaluation", log_level="warning")
    request = requests("paper", 1)[0]
    with RayFarm(ray_cluster, settings) as farm:
        farm.wait_for_workers(1)
        assert farm.evaluate(request) == remy_simulator.evaluate_columns(request)
        assert ray_cluster.others[0].actors
        assert not ray_cluster.head.actors
