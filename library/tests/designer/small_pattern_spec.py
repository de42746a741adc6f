"""A specification whose pattern design takes a fraction of a second with the analytic evaluator."""

from __future__ import annotations

from remy_farm.specification import parse_spec
from remy_proto.v1 import spec_pb2

_TEXT = """
name: small-pattern
edition: 3
network:
  rate_mbps: {uniform: {low: 10, high: 20}}
  rtt_ms: {uniform: {low: 100, high: 200}}
  senders: {integer_uniform: {low: 1, high: 4}}
  traffic:
    exponential_time: {mean_ms: 5000}
    mean_off_ms: 5000
signals: [SIGNALS]
search:
  mode: pattern
  seed: SEED
  simulated_seconds: SECONDS
  pattern: {PATTERN}
"""

_PATTERN = {
    "steps": 60,
    "maximum_rules": 4,
    "race_specimens": 16,
    "epochs_per_split": 1,
    "validation_specimens": 16,
}


def small_pattern_spec(
    *,
    signals: str = "send_ewma, rtt_ratio",
    seed: int = 1,
    simulated_seconds: float = 10,
    **pattern: float,
) -> spec_pb2.DesignSpec:
    """Returns the specification with these options of `search.pattern`."""
    options = {**_PATTERN, **pattern}
    return parse_spec(
        _TEXT.replace("SIGNALS", signals)
        .replace("SEED", str(seed))
        .replace("SECONDS", str(simulated_seconds))
        .replace("PATTERN", ", ".join(f"{name}: {value}" for name, value in options.items()))
    )
