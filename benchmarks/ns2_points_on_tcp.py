"""Compares published RemyCCs over the transport `tcp` with the learnability study's ns-2 points."""

from __future__ import annotations

import numpy as np

from benchmarks.benchmark import Benchmark, Row
from benchmarks.ns2_points import FASTEST_MBPS, ns2_points

_RUNS = 8


def measure() -> list[Row]:
    """Returns two rows: points where no buffer overflows, and points where one does."""
    points = ns2_points(lambda _overflows, _senders, _mbps: _RUNS, FASTEST_MBPS, "tcp")
    rows: list[Row] = []
    for name, overflows in (("none", False), ("some", True)):
        ratios = np.array([point.ratio for point in points if point.overflows == overflows])
        rows.append(
            {
                "buffers that overflow": name,
                "points": len(ratios),
                "10 %": int((abs(ratios - 1) <= 0.1).sum()),
                "minimum ratio": float(ratios.min()),
                "median": float(np.median(ratios)),
                "maximum": float(ratios.max()),
            }
        )
    return rows


BENCHMARK = Benchmark(
    name="ns2-points-on-tcp",
    title="RemyCCs over the transport tcp and the learnability study's ns-2 points",
    method=(
        f"The points of ns2-points up to {FASTEST_MBPS:.0f} Mbit/s, with the same tables over the "
        "transport tcp, which the study did not use: mean throughput of packets delivered in "
        f"order, over {_RUNS} runs and all senders, divided by ns-2's, and how many points are "
        "within 10 %."
    ),
    measure=measure,
)
