"""A published RemyCC depends on exact clocks."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.programs import REMY_SIMULATE, network_flags, run_json
from benchmarks.tables import REFERENCE

_DELTA_1 = REFERENCE / "remyccs" / "RemyCC-2013-delta1.dna"
_JITTER = ("--jitter-ms", "0.5")

pytestmark = pytest.mark.skipif(
    not _DELTA_1.exists(), reason=f"REMY_REFERENCE_DIR names no directory with {_DELTA_1.name}"
)


def _simulate(senders: int, *noise: str) -> dict[str, Any]:
    flags = network_flags(remycc=_DELTA_1, senders=senders, seconds=2000)
    return run_json(REMY_SIMULATE, *flags, *noise)


@pytest.mark.parametrize(("senders", "loss_of_score"), [(2, 1.0), (8, 0.15)])
def test_jitter_costs_the_published_table_score(senders: int, loss_of_score: float) -> None:
    """The table splits rtt_ratio at 1 + 5e-8, which is 7.5 nanoseconds at an RTT of 150 ms."""
    exact, noisy = _simulate(senders), _simulate(senders, *_JITTER)
    loss = exact["normalized_score_per_sender"] - noisy["normalized_score_per_sender"]
    assert loss > loss_of_score
    assert noisy["throughput_over_link_rate"] < 0.9 * exact["throughput_over_link_rate"]


def test_jitter_costs_two_senders_half_of_their_throughput() -> None:
    exact, noisy = _simulate(2), _simulate(2, *_JITTER)
    assert noisy["throughput_over_link_rate"] < 0.5 * exact["throughput_over_link_rate"]


def test_coarse_timestamps_cost_throughput() -> None:
    exact, coarse = _simulate(2), _simulate(2, "--timestamp-resolution-ms", "1")
    assert coarse["throughput_over_link_rate"] < 0.7 * exact["throughput_over_link_rate"]
