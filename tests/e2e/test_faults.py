"""A design gives the same bytes although nodes, coordinator and Redis are lost."""

from __future__ import annotations

import math
import resource
import time
from itertools import cycle
from pathlib import Path

import pytest

from tests.e2e.conftest import Report
from tests.e2e.designs import digest_of, embedded, write_spec
from tests.e2e.farm import COORDINATOR, REDIS, Farm
from tests.e2e.kubectl import nodes, run
from tests.e2e.settings import kill_node, kills_nodes, needs_cluster, start_node
from tests.waiting import wait_until

pytestmark = [needs_cluster, kills_nodes]

#: Numbers of steps with which a design of workers with a quarter of a CPU outlasts all faults, and
#: with which it outlasts the loss of a coordinator's node.
STEPS, STEPS_OF_ONE_LOSS, SPECIMENS = 1200, 500, 64
_LOSSES, _BETWEEN_LOSSES_SECONDS = 20, 30.0


@pytest.fixture
def restored_nodes(farm: Farm) -> object:
    """Starts all nodes again after the test, even if it fails."""
    before = set(nodes())
    yield None
    for name in sorted(before):
        if not nodes().get(name, False):
            start_node(name)
    run(["kubectl", "uncordon", *sorted(before)])


@pytest.mark.ci
def test_lost_node_only_delays_a_design(farm: Farm, tmp_path: Path, restored_nodes: object) -> None:
    spec = write_spec(tmp_path, steps=400, workers="{minimum: 2, maximum: 2}")
    job = farm.submit(spec, "vanishing")
    farm.wait_for_more_steps(job, 5)
    lost = _node_of_a_worker(farm, job)
    kill_node(lost)
    farm.wait_for_more_steps(job, 10)
    start_node(lost)
    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)


def test_design_survives_the_loss_of_every_part(
    farm: Farm, tmp_path: Path, restored_nodes: object, report: Report
) -> None:
    began = time.monotonic()
    three = "{minimum: 3, maximum: 3, cpus: 0.25}"
    spec = write_spec(tmp_path, steps=STEPS, specimens=SPECIMENS, workers=three)
    job = farm.submit(spec, "faults")
    farm.wait_for_more_steps(job, 5)
    others = sorted(set(nodes()) - _core_nodes(farm))
    lost, drained = others[0], others[-1]

    # A spot node is lost without notice.
    kill_node(lost)
    farm.wait_for_more_steps(job, 10)
    # Another node is drained.
    if drained != lost:
        drain = ["kubectl", "drain", drained, "--ignore-daemonsets", "--delete-emptydir-data"]
        run([*drain, "--force", "--timeout=120s"])
        farm.wait_for_more_steps(job, 5)
    start_node(lost)
    run(["kubectl", "uncordon", *others])
    wait_until(lambda: nodes().get(lost, False), "the lost node")
    wait_until(lambda: len(farm.workers_of(job)) == 3, "three workers")

    # The coordinator is killed, then Redis.
    farm.kubectl("delete", "pod", "-l", COORDINATOR, "--wait=false")
    farm.wait_for_more_steps(job, 5)
    farm.kubectl("delete", "pod", "-l", REDIS, "--grace-period=0", "--force")
    farm.wait_for_more_steps(job, 5)

    # The coordinator's node is lost.
    node = farm.kubectl.node_of(COORDINATOR)
    kill_node(node)
    if node == _node_of_redis(farm):
        # A StatefulSet waits until the lost node is deleted, which a cloud's controller does.
        run(["kubectl", "delete", "node", node])
    farm.wait_for_more_steps(job, 5)
    start_node(node)

    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)
    report(
        f"two nodes lost, one drained, coordinator and Redis killed in "
        f"{time.monotonic() - began:.0f} s, {STEPS} steps, {digest_of(farm.fetch(job))}"
    )
    progress = farm.job(job)["progress"]
    assert int(progress["recoveries"]) >= 1
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")


def test_coordinator_of_a_lost_node_resumes_its_design_on_another(
    farm: Farm, tmp_path: Path, restored_nodes: object, report: Report
) -> None:
    """The report has the measured times of docs/how-to/kubernetes.md, "A lost node"."""
    two = "{minimum: 2, maximum: 2, cpus: 0.25}"
    spec = write_spec(tmp_path, steps=STEPS_OF_ONE_LOSS, specimens=SPECIMENS, seed=33, workers=two)
    job = farm.submit(spec, "taken-over")
    # Redis stays on its node, because moving it depends on the cluster's storage.
    home = _node_of_redis(farm)
    run(["kubectl", "cordon", home])
    farm.kubectl("delete", "pod", "-l", COORDINATOR)
    wait_until(lambda: farm.kubectl.pods(COORDINATOR), "a coordinator on another node")
    run(["kubectl", "uncordon", home])
    farm.wait_for_more_steps(job, 5)
    node = farm.kubectl.node_of(COORDINATOR)
    assert node != home

    kill_node(node)
    began = time.monotonic()
    wait_until(lambda: not nodes()[node], "the node to be missed", every_seconds=0.5)
    missed = time.monotonic() - began
    wait_until(lambda: _is_ready_elsewhere(farm, node), "another coordinator", every_seconds=0.5)
    ready = time.monotonic() - began
    farm.wait_for_more_steps(job, 1)
    report(
        f"the node missed after {missed:.0f} s, another coordinator ready after {ready:.0f} s, "
        f"the next step seen after {time.monotonic() - began:.0f} s"
    )
    start_node(node)
    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)
    report(f"{STEPS_OF_ONE_LOSS} steps, {digest_of(farm.fetch(job))}")


def test_design_survives_a_lost_spot_node_every_half_minute(
    farm: Farm, tmp_path: Path, restored_nodes: object, report: Report
) -> None:
    """A node is lost without notice every 30 s for ten minutes, and returns after 15 s."""
    step_cpu_seconds = _cpu_seconds_of_a_step(tmp_path)
    # Workers with so little CPU that the design outlasts the losses on any machine.
    workers, cpus = 2, 0.15
    steps = math.ceil(_LOSSES * _BETWEEN_LOSSES_SECONDS * workers * cpus / step_cpu_seconds)
    slow = f"{{minimum: {workers}, maximum: {workers}, cpus: {cpus}}}"
    spec = write_spec(tmp_path, steps=steps, seed=32, workers=slow)
    spot = sorted(set(nodes()) - {_move_to_one_node(farm)})
    job = farm.submit(spec, "spot")
    farm.wait_for_more_steps(job, 5)
    began = time.monotonic()
    with_workers = 0
    for number, name in zip(range(_LOSSES), cycle(spot), strict=False):
        assert farm.state(job) == "RUNNING", f"the design ended after {number} losses"
        with_workers += name in _nodes_of_workers(farm, job)
        kill_node(name)
        time.sleep(_BETWEEN_LOSSES_SECONDS / 2)
        start_node(name)
        due = began + (number + 1) * _BETWEEN_LOSSES_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
    losing = time.monotonic() - began
    # Workers return between two losses, and not minutes later.
    assert with_workers >= _LOSSES // 2, f"only {with_workers} lost nodes had workers"
    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)
    report(
        f"{_LOSSES} nodes lost in {losing:.0f} s, {with_workers} of them with workers; {steps} "
        f"steps in {time.monotonic() - began:.0f} s, {digest_of(farm.fetch(job))}"
    )


def _cpu_seconds_of_a_step(folder: Path) -> float:
    """Measures the CPU seconds of a step, without the start of the process."""
    few, many = 50, 200
    used = [_cpu_seconds_of_children()]
    for steps in (few, many):
        embedded(write_spec(folder, steps=steps, seed=31))
        used.append(_cpu_seconds_of_children())
    return (used[2] - 2 * used[1] + used[0]) / (many - few)


def _cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _move_to_one_node(farm: Farm) -> str:
    """Moves the coordinator to the node of Redis, where workers are not allowed; returns that node.

    All other nodes can then be lost.
    """
    home = _node_of_redis(farm)
    others = sorted(set(nodes()) - {home})
    run(["kubectl", "cordon", *others])
    if _core_nodes(farm) != {home}:
        farm.kubectl("delete", "pod", "-l", COORDINATOR)
        farm.kubectl("wait", "pod", "-l", COORDINATOR, "--for=condition=Ready", "--timeout=180s")
        # The port-forward leads to the previous coordinator.
        farm.close()
    run(["kubectl", "uncordon", *others])
    run(["kubectl", "cordon", home])
    return home


def _core_nodes(farm: Farm) -> set[str]:
    """Returns the nodes of the coordinator and of Redis."""
    return {farm.kubectl.node_of(COORDINATOR), farm.kubectl.node_of(REDIS)}


def _node_of_a_worker(farm: Farm, job: str) -> str:
    """Returns a node that runs a worker of this design, but neither coordinator nor Redis."""
    return wait_until(
        lambda: next(iter(sorted(_nodes_of_workers(farm, job) - _core_nodes(farm))), ""),
        "a worker on a node of its own",
    )


def _nodes_of_workers(farm: Farm, job: str) -> set[str]:
    return {str(pod["spec"]["nodeName"]) for pod in farm.workers_of(job)}


def _is_ready_elsewhere(farm: Farm, node: str) -> bool:
    """Whether a coordinator on another node serves calls."""
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for pod in farm.kubectl.pods(COORDINATOR)
        if pod["spec"]["nodeName"] != node
        for each in pod["status"]["conditions"]
    )


def _node_of_redis(farm: Farm) -> str:
    return str(farm.kubectl.objects("pods", REDIS)[0]["spec"].get("nodeName", ""))
