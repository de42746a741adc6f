"""A specification whose joint design takes a fraction of a second with the analytic evaluator."""

from __future__ import annotations

from collections.abc import Mapping

from remy_farm.specification import parse_spec
from remy_proto.v1 import spec_pb2

_TEXT = """
name: small-joint
edition: EDITION
network:
  rate_mbps: {uniform: {low: 10, high: 20}}
  rtt_ms: {uniform: {low: 100, high: 200}}
  senders: {integer_uniform: {low: 1, high: 4}}
  traffic:
    exponential_time: {mean_ms: 5000}
    mean_off_ms: 5000
signals: [SIGNALS]
search:
  mode: joint
  seed: SEED
  simulated_seconds: SECONDS
  joint: {JOINT}
"""

#: The step size suits the analytic evaluator, whose best actions are far from where a climb begins.
_JOINT = {
    "steps": 24,
    "first_split": 4,
    "steps_per_split": 6,
    "maximum_rules": 8,
    "steps_per_epoch": 6,
    "step_size": 0.15,
    "validation_specimens": 16,
    "fine_share": 0.25,
}


def small_joint_spec(
    *,
    signals: str = "send_ewma, rtt_ratio",
    seed: int = 1,
    simulated_seconds: float = 10,
    stop: Mapping[str, float] | None = None,
    edition: int = 3,
    **joint: float | str,
) -> spec_pb2.DesignSpec:
    """Returns the specification with these options of `search.joint` and these stop rules."""
    text = (
        _TEXT.replace("SIGNALS", signals)
        .replace("SEED", str(seed))
        .replace("EDITION", str(edition))
        .replace("SECONDS", str(simulated_seconds))
        .replace("JOINT", _mapping({**_JOINT, **joint}))
    )
    return parse_spec(text + f"stop: {{{_mapping(stop)}}}\n" if stop else text)


def _mapping(values: Mapping[str, float | str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in values.items())
