"""Tests that written specifications read back unchanged, and that digests identify content."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from hypothesis import given

from library.tests.specification.specs import MINIMAL, specs, with_line
from remy_farm.specification import (
    check_spec,
    content_digest,
    parse_spec,
    to_yaml,
)
from remy_farm.specification.writing import DEFAULTS_AND_SEARCH_VERSION, _differences_of_spec
from remy_proto.v1 import spec_pb2

_DIGEST = """
import sys
from remy_farm.specification import content_digest, parse_spec
print(content_digest(parse_spec(sys.stdin.read())))
"""


@given(specs())
def test_a_written_specification_reads_back_unchanged(spec: spec_pb2.DesignSpec) -> None:
    text = to_yaml(spec)
    check_spec(spec)
    assert parse_spec(text) == spec
    assert to_yaml(parse_spec(text)) == text


@given(specs())
def test_written_text_is_valid_yaml_1_1(spec: spec_pb2.DesignSpec) -> None:
    """A YAML 1.1 parser finds the same keys and names."""
    tree = yaml.safe_load(to_yaml(spec))
    given = {field.name for field, _ in spec.ListFields()}
    assert list(tree) == [field.name for field in spec.DESCRIPTOR.fields if field.name in given]
    assert tree["name"] == spec.name


@given(specs(), specs())
def test_digests_are_equal_if_and_only_if_contents_are(
    one: spec_pb2.DesignSpec, other: spec_pb2.DesignSpec
) -> None:
    assert (content_digest(one) == content_digest(other)) == (one == other)
    assert content_digest(parse_spec(to_yaml(one))) == content_digest(one)


def test_zeros_of_either_sign_have_equal_digests() -> None:
    one, other = (
        parse_spec(MINIMAL.replace("exponential_time: {mean_ms: 5000}", "flow_lengths: {}"))
        for _ in range(2)
    )
    one.network.traffic.flow_lengths.shift_bytes = 0.0
    other.network.traffic.flow_lengths.shift_bytes = -0.0
    assert content_digest(one) == content_digest(other)


def test_the_digest_is_the_same_in_every_process() -> None:
    """Checkpoints identify their specification by this digest."""
    text = with_line("signals: [rec_ewma, send_ewma]")
    expected = content_digest(parse_spec(text))
    result = subprocess.run(
        [sys.executable, "-c", _DIGEST], input=text, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == expected


def test_the_canonical_text_of_a_minimal_specification() -> None:
    assert to_yaml(parse_spec(MINIMAL)) == (
        """\
name: small
edition: 3
network:
  rate_mbps: 15
  rtt_ms: 150
  senders: 2
  buffer: infinite
  loss_probability: 0
  traffic: {exponential_time: {mean_ms: 5000}, mean_off_ms: 5000}
  packet_bytes: 1500
objective:
  alpha: 1
  beta: 1
  delta: 1
  throughput: equal_share
  minimum_on_ms: 0
signals: [send_ratio, rtt_ratio, age]
rules: scale_free
search:
  mode: joint
  specimens: 16
  simulated_seconds: 30
  seed: 1
  joint:
    steps: 1200
    starts: 1
    start_steps: 200
    perturbation: 0.15
    step_size: 0.015
    fine_share: 0.35
    validation_specimens: 128
    window_multiple: {minimum: 0, maximum: 1}
    splits: orthants
    window_increment_percent: {minimum: 0, maximum: 1000}
    intersend_ratio: {minimum: 0.02, maximum: 10}
    overgrowth: 1
stop:
  epochs: 4
workers: {}
"""
    )


@given(specs())
def test_the_digest_names_fields_by_number(spec: spec_pb2.DesignSpec) -> None:
    """Renaming a field therefore changes no digest."""
    waiting: list[object] = [_differences_of_spec(spec)]
    while waiting:
        match waiting.pop():
            case dict() as fields:
                assert all(key.isdecimal() for key in fields)
                waiting += fields.values()
            case list() as items:
                waiting += items


def test_values_equal_to_defaults_do_not_change_the_digest() -> None:
    spelt = to_yaml(parse_spec(MINIMAL))
    assert "perturbation: 0.15" in spelt
    assert content_digest(parse_spec(spelt)) == content_digest(parse_spec(MINIMAL))


def test_a_new_version_of_defaults_and_search_changes_the_digest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = content_digest(parse_spec(MINIMAL))
    name = "remy_farm.specification.writing.DEFAULTS_AND_SEARCH_VERSION"
    monkeypatch.setattr(name, DEFAULTS_AND_SEARCH_VERSION + 1)
    assert content_digest(parse_spec(MINIMAL)) != before


def test_json_reads_like_yaml() -> None:
    tree = yaml.safe_load(MINIMAL)
    assert parse_spec(json.dumps(tree), json=True) == parse_spec(MINIMAL)
    assert parse_spec(json.dumps(tree)) == parse_spec(MINIMAL)
