"""A specification of the paper's search that takes a fraction of a second."""

from __future__ import annotations

from remy_farm.specification import parse_spec
from remy_proto.v1 import spec_pb2

_TEXT = """
name: small
network:
  rate_mbps: {uniform: {low: 10, high: 20}}
  rtt_ms: {uniform: {low: 100, high: 200}}
  senders: {integer_uniform: {low: 1, high: 4}}
  traffic:
    exponential_time: {mean_ms: 5000}
    mean_off_ms: 5000
signals: [SIGNALS]
search:
  mode: paper
  seed: SEED
  simulated_seconds: SECONDS
  paper:
    epochs_per_split: K
    window_multiple: {first_step: 0.1, factor: 2, steps: GRID}
    window_increment: {first_step: 2, factor: 2, steps: GRID}
    intersend_ms: {first_step: 0.5, factor: 2, steps: GRID}
stop: {STOP}
"""


def small_spec(
    *,
    signals: str = "send_ewma, rec_ewma, rtt_ratio",
    seed: int = 1,
    epochs_per_split: int = 2,
    grid_steps: int = 1,
    simulated_seconds: float = 10,
    **stop: float,
) -> spec_pb2.DesignSpec:
    """Returns the specification with these stop rules; by default it stops after six epochs."""
    rules = stop or {"epochs": 6}
    text = (
        _TEXT.replace("SIGNALS", signals)
        .replace("SEED", str(seed))
        .replace("SECONDS", str(simulated_seconds))
        .replace("K", str(epochs_per_split))
        .replace("GRID", str(grid_steps))
        .replace("STOP", ", ".join(f"{name}: {value}" for name, value in rules.items()))
    )
    return parse_spec(text)
