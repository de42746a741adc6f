"""Tests that the launcher converges after random events."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from remy_services.kubernetes.manifest import Design, WorkersPhase
from remy_services.kubernetes.observed import Past
from remy_services.kubernetes.reconciliation import Plan, reconcile
from services.tests.kubernetes.model_cluster import ModelCluster
from services.tests.kubernetes.objects import SETTINGS, design

IDS = ["0001", "0002", "Odd_Id", "x" * 80]
#: Longer than retry_seconds and finish_seconds.
LONG_SECONDS = 400.0


def step(cluster: ModelCluster, designs: list[Design], past: dict[str, Past]) -> Plan:
    jobs, pods = list(cluster.jobs.values()), list(cluster.pods.values())
    plan = reconcile(designs, jobs, pods, SETTINGS, None, past, cluster.now)
    for action in plan.actions:
        cluster.act(action)
    cluster.settle()
    return plan


@given(st.data())
@settings(max_examples=60)
def test_the_cluster_converges_to_the_designs(data: st.DataObject) -> None:
    cluster, past = ModelCluster(), dict[str, Past]()
    designs: list[Design] = []
    for _ in range(data.draw(st.integers(1, 6), "rounds")):
        phases = data.draw(
            st.dictionaries(st.sampled_from(IDS), st.sampled_from(WorkersPhase)), "phases"
        )
        designs = [
            design(each, phase, ended_at=cluster.now if phase is WorkersPhase.ENDED else None)
            for each, phase in phases.items()
        ]
        past = dict(step(cluster, designs, past).past)
        _disturb(cluster, data)
        cluster.now += data.draw(st.sampled_from([1.0, 30.0, LONG_SECONDS]), "seconds")
    for _ in range(4):
        cluster.now += LONG_SECONDS
        past = dict(step(cluster, designs, past).past)
    assert step(cluster, designs, past).actions == ()
    _check(cluster, designs)


def _disturb(cluster: ModelCluster, data: st.DataObject) -> None:
    for name in list(cluster.pods):
        if data.draw(st.booleans(), f"{name} ends"):
            cluster.end(name, disruption=data.draw(st.sampled_from([None, "DeletionByPodGC"])))
    for name in list(cluster.jobs):
        event = data.draw(st.sampled_from(["nothing", "failed", "vanished"]), name)
        if event == "failed":
            cluster.fail(name, "BackoffLimitExceeded")
        elif event == "vanished":
            del cluster.jobs[name]
            cluster.pods = {n: each for n, each in cluster.pods.items() if each.job_name != name}


def _check(cluster: ModelCluster, designs: list[Design]) -> None:
    live = [pod for pod in cluster.pods.values() if pod.phase == "Running"]
    running = [each for each in designs if each.phase is WorkersPhase.RUNNING]
    jobs = [job for job in cluster.jobs.values() if not job.suspended and not job.finished]
    assert len({job.job_id for job in jobs}) == len(jobs) == len(running)
    assert len(live) == SETTINGS.minimum_workers * len(running)
    for job in cluster.jobs.values():
        assert len(job.name) <= 63
