"""Metrics and instrumentation cost less than 1 % of a core."""

from __future__ import annotations

from benchmarks import telemetry


def test_metrics_and_instrumentation_take_less_than_one_percent_of_a_core() -> None:
    # The CPU time is about a tenth of the limit, and other load hardly changes CPU time.
    shares = [row["% of a core"] for row in telemetry.measure()]
    assert len(shares) == 2
    assert sum(float(share or 0) for share in shares) < 1.0
