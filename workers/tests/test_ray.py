"""The number of actors on a Ray cluster, and the detection of a lost cluster."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

if importlib.util.find_spec("ray") is None:
    pytest.skip(
        "Ray is not installed here (remy-farm-worker with its extra 'ray')",
        allow_module_level=True,
    )

from remy_workers.ray import ClusterLost, ClusterWatch, Sizing

_RUNNING = frozenset({"a-1", "a-2"})


def _nodes(*cpus: float, **resources: float) -> list[dict[str, float]]:
    return [{"CPU": each, **resources} for each in cpus]


def _answer(watch: ClusterWatch, known: frozenset[str], now: float = 0.0) -> None:
    watch.record_poll(own_node_is_alive=True, known=known, running=_RUNNING, now=now)


def test_one_actor_per_cpu_is_started() -> None:
    missing = Sizing().missing(_nodes(4, 2), started=0, pending=0, free_cpus=6)
    assert missing == 6


def test_actor_of_several_threads_must_fit_on_one_node() -> None:
    # One node has room for two actors, the other for none.
    assert Sizing(threads=2).capacity(_nodes(5, 1)) == 2


def test_nodes_without_the_resource_are_not_used() -> None:
    nodes = [*_nodes(4), *_nodes(2, evaluation=1)]
    assert Sizing(resource="evaluation").capacity(nodes) == 2


def test_node_without_cpus_gets_no_actor() -> None:
    assert Sizing().capacity([{}]) == 0


def test_busy_cpus_get_no_pending_actors() -> None:
    assert Sizing().missing(_nodes(4), started=1, pending=0, free_cpus=1) == 1


def test_pending_actors_count_against_free_cpus() -> None:
    assert Sizing().missing(_nodes(4), started=2, pending=2, free_cpus=2) == 0


def test_fixed_number_of_actors_ignores_free_cpus() -> None:
    assert Sizing(actors=9).missing(_nodes(1), started=2, pending=1, free_cpus=0) == 7


def test_pending_actors_are_cancelled_when_their_node_is_gone() -> None:
    assert Sizing().missing(_nodes(1), started=3, pending=1, free_cpus=0) == -1


@given(
    cpus=st.lists(st.integers(0, 64), max_size=5),
    threads=st.integers(1, 8),
    started=st.integers(0, 50),
    free=st.integers(0, 320),
    data=st.data(),
)
def test_pool_never_exceeds_the_capacity_of_the_nodes(
    cpus: list[int], threads: int, started: int, free: int, data: st.DataObject
) -> None:
    sizing, nodes = Sizing(threads), _nodes(*cpus)
    pending = data.draw(st.integers(0, started))
    missing = sizing.missing(nodes, started=started, pending=pending, free_cpus=free)
    assert missing >= -pending
    assert missing <= 0 or started + missing <= sizing.capacity(nodes)


def test_cluster_that_knows_its_actors_is_kept() -> None:
    watch = ClusterWatch(60, 0)
    for _ in range(10):
        _answer(watch, frozenset({"a-2", "somebody's"}))


def test_head_without_any_known_actor_is_lost() -> None:
    watch = ClusterWatch(60, 0)
    for _ in range(2):
        _answer(watch, frozenset({"somebody's"}))
    with pytest.raises(ClusterLost, match="the head restarted and lost all actors"):
        _answer(watch, frozenset({"somebody's"}))


def test_known_actor_resets_the_count_of_misses() -> None:
    watch = ClusterWatch(60, 0)
    for _ in range(5):
        _answer(watch, frozenset())
        _answer(watch, frozenset())
        _answer(watch, _RUNNING)


def test_cluster_without_actors_is_kept() -> None:
    watch = ClusterWatch(60, 0)
    for now in range(5):
        watch.record_poll(own_node_is_alive=True, known=frozenset(), running=frozenset(), now=now)


def test_cluster_is_lost_with_the_drivers_own_node() -> None:
    with pytest.raises(ClusterLost, match="the node of this driver has left the cluster"):
        ClusterWatch(60, 0).record_poll(
            own_node_is_alive=False, known=_RUNNING, running=_RUNNING, now=1
        )


def test_cluster_is_lost_after_a_time_without_response() -> None:
    watch = ClusterWatch(60, 0)
    watch.record_timeout(59)
    _answer(watch, _RUNNING, now=59.5)
    watch.record_timeout(119)
    with pytest.raises(ClusterLost, match="the cluster has not responded for 60 s"):
        watch.record_timeout(119.5)
