"""Tests the search for networks where a table loses, and their use in a design."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.specification import SpecError, extent, parse_spec, spec_from_tree
from remy_farm.specification.drawing import Networks
from remy_farm.specification.reading import read_yaml
from remy_farm.specification.senders import parse_sender
from remy_laboratory.studies.attack import (
    Attack,
    AttackEffort,
    AttackResult,
    AttackSpace,
    add_attack_networks,
    attack_yaml,
)
from remy_proto.v1 import evaluation_pb2
from remy_simulator import RuleTable, columns
from remy_simulator.messages import from_native

SPACE = """\
name: space
network:
  rate_mbps: {log_uniform: [1, 30]}
  rtt_ms: {uniform: [20, 100]}
  senders: [1, 2, 4]
  buffer: {packets: {integer_uniform: [5, 300]}}
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 500}
objective: {delta: 1}
search: {simulated_seconds: 4}
"""
#: A table that sends a packet every 5 ms, 2.4 Mbit/s, on every network.
STEADY = RuleTable([2], [([], (1.0, 100.0, 5.0))])
EFFORT = AttackEffort(networks=64, rounds=4, runs=2, reported=3, fresh_runs=8)


def _attack(
    threads: int, rival: str = "newreno", text: str = SPACE
) -> tuple[AttackSpace, AttackResult]:
    space = AttackSpace(parse_spec(text), "space.yaml")
    evaluator = LocalEvaluator(threads)
    try:
        attack = Attack(
            space,
            from_native(STEADY),
            evaluation_pb2.SenderGroup(),
            parse_sender(rival),
            evaluator.evaluate,
            seed=3,
        )
        return space, attack.run(EFFORT, lambda *_: None)
    finally:
        evaluator.close()


def test_attack_finds_networks_that_are_worse_than_average_for_a_known_reason() -> None:
    _, result = _attack(2)
    assert result.spread is not None
    losses = [each.loss.mean for each in result.networks if each.loss is not None]
    assert losses == sorted(losses, reverse=True)
    worst = result.networks[0]
    assert worst.loss is not None
    assert worst.loss.standard_error is not None
    assert worst.loss.mean > result.spread.mean + 3 * worst.loss.standard_error
    # A sender with a fixed rate loses most where its rate is far too high or far too low.
    offered_mbps = worst.network.senders.exact * 2.4
    ratio = offered_mbps / worst.network.rate_mbps.exact
    assert ratio > 1.5 or ratio < 0.25
    assert worst.score is not None
    assert worst.rival_score is not None
    assert worst.rival_score.mean - worst.score.mean == pytest.approx(worst.loss.mean)


def test_attack_depends_on_the_seed_and_not_on_threads() -> None:
    assert _attack(1)[1] == _attack(2)[1]


def test_no_table_is_better_than_omniscient() -> None:
    text = SPACE.replace("{packets: {integer_uniform: [5, 300]}}", "infinite")
    _, result = _attack(2, "omniscient", text)
    assert all(each.loss is not None and each.loss.mean > 0 for each in result.networks)


@given(point=st.lists(st.floats(0, 1, exclude_max=True), min_size=4, max_size=4))
def test_points_give_networks_within_the_specification(point: list[float]) -> None:
    space = AttackSpace(parse_spec(SPACE), "space.yaml")
    for (_, distribution), value in zip(space.quantities, space.values(tuple(point)), strict=True):
        low, high = extent(distribution)
        assert low <= value <= high
        if distribution.WhichOneof("kind") == "list":
            assert value in distribution.list.values
    specimens = columns.unpack_specimens(
        Networks(space.spec_at(tuple(point))).draw(seed=1, count=2)
    )
    assert specimens[0].key != specimens[1].key
    specimens[0].key = specimens[1].key
    assert specimens[0] == specimens[1]


def _tree(text: str) -> Any:
    return read_yaml(text, "spec.yaml")


def test_hardened_specification_has_the_attack_networks_as_models(tmp_path: Path) -> None:
    space, result = _attack(2)
    path = tmp_path / "found.yaml"
    path.write_text(
        attack_yaml(result, space, table="a", table_sha256="0", rival="newreno", seed=3)
    )
    hardened = add_attack_networks(_tree(SPACE), path, 0.25)
    spec = spec_from_tree(hardened)
    assert [model.weight for model in spec.models] == [0.75, *([0.25 / 3] * 3)]
    assert spec.models[0].network == space.spec.network
    for model, network in zip(spec.models[1:], result.networks, strict=True):
        assert model.network == network.network
    # A quarter of a step's 16 networks come from the attack.
    drawn = Networks(spec).draw(seed=5, count=16, stratified=True)
    rates = [each.link_rate_packets_per_ms for each in columns.unpack_specimens(drawn)]
    known = [each.network.rate_mbps.exact / 12 for each in result.networks]
    assert sum(rate in known for rate in rates) in (3, 4, 5)
    # A second attack keeps the proportions of the earlier models.
    again = spec_from_tree(add_attack_networks(hardened, path, 0.5))
    assert again.models[0].weight == pytest.approx(0.375)
    assert sum(model.weight for model in again.models) == pytest.approx(1)


_FIXED = "{rate_mbps: 4, rtt_ms: 20, senders: 2, traffic: {always: {}}}"


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (f"network: {_FIXED}", "has no quantity that varies"),
        (
            f"models: [{{network: {_FIXED}}}]",
            "models is given, but an attack needs a single network model",
        ),
    ],
)
def test_specification_that_cannot_be_attacked_is_refused(network: str, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        AttackSpace(parse_spec(f"name: space\n{network}\n"), "space.yaml")


def test_file_without_networks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "found.yaml"
    path.write_text("networks: []\n")
    with pytest.raises(SpecError, match="networks must be a list of networks"):
        add_attack_networks(_tree(SPACE), path, 0.25)
