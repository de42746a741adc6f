"""How many actors a cluster gets, and when a connection to it is given up."""

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

_OURS = frozenset({"a-1", "a-2"})


def _nodes(*cpus: float, **resources: float) -> list[dict[str, float]]:
    return [{"CPU": each, **resources} for each in cpus]


def _answer(watch: ClusterWatch, known: frozenset[str], now: float = 0.0) -> None:
    watch.answered(own_node_is_alive=True, known=known, running=_OURS, now=now)


def test_every_cpu_gets_an_actor() -> None:
    missing = Sizing().missing(_nodes(4, 2), started=0, pending=0, free_cpus=6)
    assert missing == 6


def test_an_actor_of_several_threads_must_fit_on_one_node() -> None:
    # Seven CPUs, of which those of one node have room for two actors and those of the other none.
    assert Sizing(threads=2).capacity(_nodes(5, 1)) == 2


def test_nodes_without_the_resource_are_left_alone() -> None:
    nodes = [*_nodes(4), *_nodes(2, evaluation=1)]
    assert Sizing(resource="evaluation").capacity(nodes) == 2


def test_a_node_without_cpus_gets_nothing() -> None:
    assert Sizing().capacity([{}]) == 0


def test_cpus_that_others_use_are_not_waited_for() -> None:
    assert Sizing().missing(_nodes(4), started=1, pending=0, free_cpus=1) == 1


def test_actors_that_wait_have_the_free_cpus_already() -> None:
    assert Sizing().missing(_nodes(4), started=2, pending=2, free_cpus=2) == 0


def test_a_number_that_is_asked_for_is_asked_of_ray_whatever_is_free() -> None:
    assert Sizing(actors=9).missing(_nodes(1), started=2, pending=1, free_cpus=0) == 7


def test_what_waits_is_given_up_when_its_node_is_gone() -> None:
    assert Sizing().missing(_nodes(1), started=3, pending=1, free_cpus=0) == -1


@given(
    cpus=st.lists(st.integers(0, 64), max_size=5),
    threads=st.integers(1, 8),
    started=st.integers(0, 50),
    free=st.integers(0, 320),
    data=st.data(),
)
def test_there_are_never_more_actors_than_nodes_have_cpus_for(
    cpus: list[int], threads: int, started: int, free: int, data: st.DataObject
) -> None:
    sizing, nodes = Sizing(threads), _nodes(*cpus)
    pending = data.draw(st.integers(0, started))
    missing = sizing.missing(nodes, started=started, pending=pending, free_cpus=free)
    assert missing >= -pending
    assert missing <= 0 or started + missing <= sizing.capacity(nodes)


def test_a_cluster_that_knows_its_actors_is_kept() -> None:
    watch = ClusterWatch(60, 0)
    for _ in range(10):
        _answer(watch, frozenset({"a-2", "somebody's"}))


def test_a_head_that_has_forgotten_all_actors_is_another_one() -> None:
    watch = ClusterWatch(60, 0)
    for _ in range(2):
        _answer(watch, frozenset({"somebody's"}))
    with pytest.raises(ClusterLost, match="the head has forgotten all actors"):
        _answer(watch, frozenset({"somebody's"}))


def test_actors_that_are_seen_again_were_not_forgotten() -> None:
    watch = ClusterWatch(60, 0)
    for _ in range(5):
        _answer(watch, frozenset())
        _answer(watch, frozenset())
        _answer(watch, _OURS)


def test_a_cluster_without_actors_has_forgotten_none() -> None:
    watch = ClusterWatch(60, 0)
    for now in range(5):
        watch.answered(own_node_is_alive=True, known=frozenset(), running=frozenset(), now=now)


def test_a_driver_does_not_outlive_its_node() -> None:
    with pytest.raises(ClusterLost, match="the node of this driver is gone"):
        ClusterWatch(60, 0).answered(own_node_is_alive=False, known=_OURS, running=_OURS, now=1)


def test_silence_is_borne_for_a_while_after_each_answer() -> None:
    watch = ClusterWatch(60, 0)
    watch.silent(59)
    _answer(watch, _OURS, now=59.5)
    watch.silent(119)
    with pytest.raises(ClusterLost, match="the cluster has not answered for 60 s"):
        watch.silent(119.5)
