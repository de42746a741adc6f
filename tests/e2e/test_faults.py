"""During a design, everything that can be lost is lost once; the bytes are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.designs import embedded, write_spec
from tests.e2e.farm import COORDINATOR, REDIS, Farm
from tests.e2e.kubectl import nodes, run
from tests.e2e.settings import kill_node, kills_nodes, needs_cluster, start_node
from tests.waiting import wait_until

pytestmark = [needs_cluster, kills_nodes]

#: Enough to be at work for longer than all that happens meanwhile, on a machine of two CPUs.
STEPS, SPECIMENS = 1600, 64
_ENDED = 1 << 30


@pytest.fixture
def whole_again(farm: Farm) -> object:
    """Brings all nodes back after the test, whatever became of it."""
    before = set(nodes())
    yield None
    for name in sorted(before):
        if not nodes().get(name, False):
            start_node(name)
    run(["kubectl", "uncordon", *sorted(before)])


@pytest.mark.ci
def test_a_node_that_vanishes_costs_a_design_nothing_but_time(
    farm: Farm, tmp_path: Path, whole_again: object
) -> None:
    spec = write_spec(tmp_path, steps=400, workers="{minimum: 2, maximum: 2}")
    job = farm.submit(spec, "vanishing")
    _progress(farm, job, 5)
    lost = _node_of_a_worker(farm, job)
    kill_node(lost)
    _progress(farm, job, 10)
    start_node(lost)
    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)


def test_a_design_outlives_the_loss_of_everything_that_may_be_lost(
    farm: Farm, tmp_path: Path, whole_again: object
) -> None:
    three = "{minimum: 3, maximum: 3}"
    spec = write_spec(tmp_path, steps=STEPS, specimens=SPECIMENS, workers=three)
    job = farm.submit(spec, "faults")
    _progress(farm, job, 5)
    others = sorted(set(nodes()) - _home(farm))
    lost, drained = others[0], others[-1]

    # A spot node vanishes without notice.
    kill_node(lost)
    _progress(farm, job, 10)
    # Another one is drained.
    if drained != lost:
        drain = ["kubectl", "drain", drained, "--ignore-daemonsets", "--delete-emptydir-data"]
        run([*drain, "--force", "--timeout=120s"])
        _progress(farm, job, 5)
    start_node(lost)
    run(["kubectl", "uncordon", *others])
    wait_until(lambda: nodes().get(lost, False), "the lost node")
    wait_until(lambda: len(farm.workers_of(job)) == 3, "three workers")

    # Coordinator and Redis are killed, one after the other.
    farm.kubectl("delete", "pod", "-l", COORDINATOR, "--wait=false")
    _progress(farm, job, 5)
    farm.kubectl("delete", "pod", "-l", REDIS, "--grace-period=0", "--force")
    _progress(farm, job, 5)

    # The coordinator's node vanishes.
    node = farm.kubectl.node_of(COORDINATOR)
    kill_node(node)
    if node == _node_of_redis(farm):
        # A StatefulSet waits for its node to be given up, as a cloud's controller does.
        run(["kubectl", "delete", "node", node])
    _progress(farm, job, 5)
    start_node(node)

    assert farm.wait_until_done(job, seconds=900) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)
    progress = farm.job(job)["progress"]
    assert int(progress["recoveries"]) >= 1
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")


def _progress(farm: Farm, job: str, steps: int) -> None:
    """The design makes so many steps more."""
    before = wait_until(lambda: [_step(farm, job)], "the design's state")[0]
    after = wait_until(
        lambda: [step for step in [_step(farm, job)] if step >= before + steps],
        f"{steps} steps more",
        seconds=300,
    )[0]
    assert after < _ENDED, "the design ended while it was to lose something: give it more steps"


def _step(farm: Farm, job: str) -> int:
    try:
        if farm.state(job) == "SUCCEEDED":
            return _ENDED
        return farm.step(job)
    except AssertionError:
        return -1


def _home(farm: Farm) -> set[str]:
    """The nodes of the coordinator and of Redis."""
    return {farm.kubectl.node_of(COORDINATOR), farm.kubectl.node_of(REDIS)}


def _node_of_a_worker(farm: Farm, job: str) -> str:
    """A node that has a worker of this design, and neither coordinator nor Redis."""
    return wait_until(
        lambda: next(iter(sorted(_nodes_of_workers(farm, job) - _home(farm))), ""),
        "a worker on a node of its own",
    )


def _nodes_of_workers(farm: Farm, job: str) -> set[str]:
    return {str(pod["spec"]["nodeName"]) for pod in farm.workers_of(job)}


def _node_of_redis(farm: Farm) -> str:
    return str(farm.kubectl.objects("pods", REDIS)[0]["spec"].get("nodeName", ""))
