"""Tests the members of a campaign: combinations, names and errors."""

import pytest

from remy_farm.analysis.campaign import members_of, parse_sweep
from remy_farm.specification import SpecError, parse_spec, to_yaml
from remy_farm.specification.reading import read_yaml

TEXT = """
name: small
network: {rate_mbps: 10, rtt_ms: 100, senders: 2,
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 1000}}
"""
TREE = read_yaml(TEXT, "test")


def test_members_are_all_combinations_with_the_last_sweep_fastest() -> None:
    sweeps = [
        parse_sweep("objective.delta=0.1,10"),
        parse_sweep("signals=[send_ewma,rtt_ratio],[rtt_ratio]"),
    ]
    members = members_of(TREE, sweeps)
    assert [member.name for member in members] == [
        "delta=0.1,signals=send_ewma+rtt_ratio",
        "delta=0.1,signals=rtt_ratio",
        "delta=10,signals=send_ewma+rtt_ratio",
        "delta=10,signals=rtt_ratio",
    ]
    assert members[1].settings == (("objective.delta", 0.1), ("signals", ["rtt_ratio"]))
    written = parse_spec(TEXT + "objective: {delta: 10}\nsignals: [rtt_ratio]\n")
    assert to_yaml(members[3].spec) == to_yaml(written)


def test_the_error_of_a_forbidden_value_names_its_member() -> None:
    with pytest.raises(SpecError) as caught:
        members_of(TREE, [parse_sweep("objective.delta=1,-1")], source="small.yaml")
    assert str(caught.value).startswith("small.yaml with delta=-1: objective.delta is -1, but must")


@pytest.mark.parametrize("other", ["network.rtt_ms=1,2", "network.rtt_ms.exact=3", "network={}"])
def test_two_sweeps_of_overlapping_paths_are_refused(other: str) -> None:
    with pytest.raises(SpecError, match="sweep only one of them"):
        members_of(TREE, [parse_sweep("network.rtt_ms=50,100"), parse_sweep(other)])


def test_names_that_are_too_long_are_replaced_by_numbers() -> None:
    rates = ",".join(str(rate) for rate in range(1, 60))
    long = members_of(TREE, [parse_sweep(f"network.rate_mbps=[{rates}],10")])
    assert [member.name for member in long] == ["member-1", "member-2"]


def test_too_many_members_are_refused() -> None:
    seeds = ",".join(str(seed) for seed in range(101))
    steps = ",".join(str(step) for step in range(1, 102))
    with pytest.raises(SpecError, match="has 10201 combinations of values; at most 10000"):
        members_of(TREE, [parse_sweep(f"search.seed={seeds}"), parse_sweep(f"stop.steps={steps}")])
