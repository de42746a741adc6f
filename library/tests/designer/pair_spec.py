"""A pair of tables that are designed together in some seconds."""

from remy_farm.specification import parse_spec
from remy_proto.v1 import spec_pb2

_TEXT = """\
name: pair
models:
  - network:
      rate_mbps: 12
      rtt_ms: 40
      senders:
        - {design: swift, count: {integer_uniform: [1, 2]}, objective: {delta: 0.1}}
        - {design: calm, objective: {delta: 10}}
      traffic:
        exponential_time: {mean_ms: 300}
        mean_off_ms: 300
  - network:
      rate_mbps: 12
      rtt_ms: 40
      senders: [{design: calm, count: 2, objective: {delta: 10}}]
      traffic:
        exponential_time: {mean_ms: 300}
        mean_off_ms: 300
search:
  simulated_seconds: 2
  joint:
    {steps: 6, first_split: 2, steps_per_split: 2, steps_per_epoch: 3, validation_specimens: 12}
"""


def pair_spec(**changes: str) -> spec_pb2.DesignSpec:
    """With some of its words changed."""
    text = _TEXT
    for before, after in changes.items():
        text = text.replace(before, after)
    return parse_spec(text)
