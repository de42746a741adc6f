"""How many actors a cluster gets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remy_workers.ray.sizing import Node, Sizing


def _nodes(*cpus: float, **resources: float) -> list[Node]:
    return [Node(f"node-{number}", {"CPU": each, **resources}) for number, each in enumerate(cpus)]


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
    assert Sizing().capacity([Node("head", {})]) == 0


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
