"""A specification that designs two tables together, in a few seconds."""

from remy_farm.specification import parse_spec
from remy_proto.v1 import spec_pb2

_TEXT = """\
name: pair
models:
  - network:
      rate_mbps: 12
      rtt_ms: 40
      senders:
        - {design: fast, count: {integer_uniform: [1, 2]}, objective: {delta: 0.1}}
        - {design: low-delay, objective: {delta: 10}}
      traffic:
        exponential_time: {mean_ms: 300}
        mean_off_ms: 300
  - network:
      rate_mbps: 12
      rtt_ms: 40
      senders: [{design: low-delay, count: 2, objective: {delta: 10}}]
      traffic:
        exponential_time: {mean_ms: 300}
        mean_off_ms: 300
search:
  simulated_seconds: 2
  joint:
    {steps: 6, first_split: 2, steps_per_split: 2, steps_per_epoch: 3, validation_specimens: 12}
"""


def pair_spec(**replacements: str) -> spec_pb2.DesignSpec:
    """Parses the specification after replacing text in it: `pair_spec(**{old: new})`."""
    text = _TEXT
    for old, new in replacements.items():
        text = text.replace(old, new)
    return parse_spec(text)
