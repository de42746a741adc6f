"""Tests the parsing of sweeps, and the names of their values."""

from typing import Any

import pytest

from remy_farm.analysis.campaign import SweptSetting, labels, parse_sweep, value_name
from remy_farm.specification import SpecError


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("objective.delta=0.1,1,10", "objective.delta", (0.1, 1, 10)),
        ("signals=[rec_ewma, rtt_ratio],[send_ewma]", "signals", None),
        ("network.rtt_ms={uniform: [10, 20]},100", "network.rtt_ms", None),
        ("network.buffer=infinite,100", "network.buffer", ("infinite", 100)),
        ("search.seed=7", "search.seed", (7,)),
    ],
)
def test_values_are_yaml_separated_by_commas(text: str, path: str, values: Any) -> None:
    sweep = parse_sweep(text)
    assert sweep.path == path
    assert len(sweep.values) == (len(values) if values else 2)
    if values:
        assert sweep.values == values


def test_lists_and_mappings_are_values() -> None:
    sweep = parse_sweep("signals=[rec_ewma,rtt_ratio],[send_ewma]")
    assert sweep.values == (["rec_ewma", "rtt_ratio"], ["send_ewma"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("objective.delta", "must be PATH=VALUE,VALUE,..."),
        ("=1,2", "must be PATH=VALUE,VALUE,..."),
        ("objective.delta=", "has no value"),
        ("objective.delta=1,2,1", "has the value 1 twice"),
        ("signals=[rtt_ratio", "is not YAML"),
        ("signals=rtt_ratio]", "is not YAML"),
    ],
)
def test_an_invalid_sweep_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_sweep(text)
    assert text in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.1, "0.1"),
        (10.0, "10"),
        (True, "true"),
        (["send_ewma", "rtt_ratio"], "send_ewma+rtt_ratio"),
        ({"uniform": [10, 20]}, "uniform+10+20"),
        ("a/b c", "a-b-c"),
    ],
)
def test_value_names_are_valid_in_file_names(value: Any, name: str) -> None:
    assert value_name(value) == name


def test_labels_are_last_keys_unless_they_repeat() -> None:
    delta, seed = SweptSetting("objective.delta", (1,)), SweptSetting("search.seed", (1,))
    assert labels((delta, seed)) == ["delta", "seed"]
    paths = ("search.joint.steps", "stop.steps")
    assert labels(tuple(SweptSetting(path, (1,)) for path in paths)) == list(paths)
