"""When a connection to a cluster is given up."""

from __future__ import annotations

from remy_workers.ray.watch import ClusterWatch

_OURS = frozenset({"a-1", "a-2"})


def _answer(watch: ClusterWatch, known: frozenset[str], now: float = 0.0) -> str:
    return watch.answered(own_node_is_alive=True, known=known, running=_OURS, now=now)


def test_a_cluster_that_knows_its_actors_is_kept() -> None:
    watch = ClusterWatch(60, 0)
    for _ in range(10):
        assert not _answer(watch, frozenset({"a-2", "somebody's"}))


def test_a_head_that_has_forgotten_all_actors_is_another_one() -> None:
    watch = ClusterWatch(60, 0)
    answers = [_answer(watch, frozenset({"somebody's"})) for _ in range(3)]
    assert answers == ["", "", "the head has forgotten all actors"]


def test_actors_that_are_seen_again_were_not_forgotten() -> None:
    watch = ClusterWatch(60, 0)
    for _ in range(5):
        assert not _answer(watch, frozenset())
        assert not _answer(watch, frozenset())
        assert not _answer(watch, _OURS)


def test_a_cluster_without_actors_has_forgotten_none() -> None:
    watch = ClusterWatch(60, 0)
    for now in range(5):
        assert not watch.answered(
            own_node_is_alive=True, known=frozenset(), running=frozenset(), now=now
        )


def test_a_driver_does_not_outlive_its_node() -> None:
    why = ClusterWatch(60, 0).answered(own_node_is_alive=False, known=_OURS, running=_OURS, now=1)
    assert why == "the node of this driver is gone"


def test_silence_is_borne_for_a_while_after_each_answer() -> None:
    watch = ClusterWatch(60, 0)
    assert not watch.silent(59)
    assert not _answer(watch, _OURS, now=59.5)
    assert not watch.silent(119)
    assert watch.silent(119.5) == "the cluster has not answered for 60 s"
