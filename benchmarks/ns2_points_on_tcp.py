"""Compares RemyCCs on the transport `tcp` with the learnability study's results in ns-2."""

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
    title="RemyCCs on the transport tcp, and the learnability study's results in ns-2",
    method=(
        "The same networks and tables as in the benchmark ns2-points, up to "
        f"{FASTEST_MBPS:.0f} Mbit/s. The study did not use the transport tcp. The ratio is our "
        f"mean throughput of packets delivered in order, over {_RUNS} runs and all senders, "
        "divided by ns-2's. A point is one network of a figure. The column 10 % counts the points "
        "whose ratio is within 10 % of 1."
    ),
    measure=measure,
)
