"""A specification of a joint search with a budget of CPU time, a fraction of a second."""

from __future__ import annotations

from library.tests.small_network import SMALL_NETWORK
from remy_farm.specification import parse_spec
from remy_proto.v1 import spec_pb2

JOINT_SPEC = f"""\
name: small-joint
{SMALL_NETWORK}search:
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
    """Returns the specification with all defaults."""
    return parse_spec(JOINT_SPEC)
