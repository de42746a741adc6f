"""A joint search that takes a fraction of a second, its length given as CPU time."""

from __future__ import annotations

from remy_farm.v1 import spec_pb2
from remy_services.specification import parse_spec

JOINT_SPEC = """\
name: small-joint
network:
  link_rate_mbps: {uniform: [10, 20]}
  rtt_ms: 100
  senders: {integer_uniform: [1, 2]}
traffic:
  exponential_time: {mean_ms: 1000}
  mean_off_ms: 1000
search:
  mode: joint
  simulated_seconds: 1
  joint:
    cpu_seconds: 0.2
    first_split: 2
    steps_per_split: 3
    maximum_rules: 20
    steps_per_epoch: 5
    validation_specimens: 8
"""


def joint_spec() -> spec_pb2.DesignSpec:
    """The specification, complete."""
    return parse_spec(JOINT_SPEC)
