"""Tests that `vary` changes one value and nothing else."""

from typing import Any

import pytest

from library.tests.small_network import SMALL_NETWORK
from remy_farm.specification import SpecError, parse_spec, spec_from_tree, to_yaml, vary
from remy_farm.specification.reading import read_yaml

TEXT = f"""
name: small
{SMALL_NETWORK}search: {{mode: joint}}
"""


@pytest.mark.parametrize(
    ("path", "value", "line", "changed"),
    [
        ("objective.delta", 0.1, None, "objective: {delta: 0.1}\n"),
        ("signals", ["rec_ewma", "rtt_ratio"], None, "signals: [rec_ewma, rtt_ratio]\n"),
        ("search.seed", 7, "search: {mode: joint}", "search: {mode: joint, seed: 7}"),
        ("search.joint.steps", 9, "{mode: joint}", "{mode: joint, joint: {steps: 9}}"),
        ("network.rtt_ms", [50, 80], "rtt_ms: 100", "rtt_ms: [50, 80]"),
        ("network.rtt_ms.uniform", [50, 80], "rtt_ms: 100", "rtt_ms: {uniform: [50, 80]}"),
        ("network.rate_mbps.uniform.low", 5, "[10, 20]", "{low: 5, high: 20}"),
        ("network.rate_mbps.exact", 5, "{uniform: [10, 20]}", "5"),
        (
            "network.traffic.exponential_bytes.mean_bytes",
            1e5,
            "exponential_time: {mean_ms: 1000}",
            "exponential_bytes: {mean_bytes: 1e5}",
        ),
    ],
)
def test_vary_equals_writing_the_value_into_the_file(
    path: str, value: Any, line: str | None, changed: str
) -> None:
    tree = read_yaml(TEXT, "test")
    varied = spec_from_tree(vary(tree, path, value))
    text = TEXT + changed if line is None else TEXT.replace(line, changed)
    assert to_yaml(varied) == to_yaml(parse_spec(text))
    assert tree == read_yaml(TEXT, "test")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("objective.dleta", "objective.dleta cannot be set to 5: 'dleta' is not a known key; did"),
        ("rtt_ms", "rtt_ms cannot be set to 5: 'rtt_ms' is not a known key; it belongs under"),
        ("objective.delta.low", "cannot be set to 5: 'delta' holds a value and has no keys"),
        ("signals.send_ewma", "cannot be set to 5: 'signals' holds a value and has no keys"),
        ("", "'' cannot be set to 5: '' is not a known key"),
        ("name.x", "name.x cannot be set to 5: 'name' holds a value and has no keys"),
    ],
)
def test_an_unknown_path_is_refused_with_path_and_value(path: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        vary(read_yaml(TEXT, "test"), path, 5, source="small.yaml")
    assert str(caught.value).startswith("small.yaml: ")
    assert message in str(caught.value)


def test_a_path_through_a_scalar_is_refused() -> None:
    with pytest.raises(SpecError, match="the value above 'delta' is 3, which has no keys"):
        vary({"objective": 3}, "objective.delta", 5)


def test_a_varied_value_is_checked_when_the_tree_is_read() -> None:
    with pytest.raises(SpecError, match=r"objective\.delta is -1, but must be a number at least 0"):
        spec_from_tree(vary(read_yaml(TEXT, "test"), "objective.delta", -1))
