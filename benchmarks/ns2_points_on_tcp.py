"""What published RemyCCs on the body `tcp` make of ns-2's points of the learnability study."""

from __future__ import annotations

import numpy as np

from benchmarks.figure import Figure, Row
from benchmarks.ns2_points import FASTEST_MBPS, ns2_points

_RUNS = 8


def measure() -> list[Row]:
    """One row for the points where nothing overflows, and one for the others."""
    points = ns2_points(lambda _overflows, _senders, _mbps: _RUNS, FASTEST_MBPS, "tcp")
    rows: list[Row] = []
    for name, overflows in (("none", False), ("some", True)):
        ratios = np.array([point.ratio for point in points if point.overflows == overflows])
        rows.append(
            {
                "buffers that overflow": name,
                "points": len(ratios),
                "10 %": int((abs(ratios - 1) <= 0.1).sum()),
                "least ratio": float(ratios.min()),
                "median": float(np.median(ratios)),
                "largest": float(ratios.max()),
            }
        )
    return rows


FIGURE = Figure(
    name="ns2-points-on-tcp",
    title="RemyCCs on the body tcp beside ns-2's points of the learnability study",
    method=(
        f"The points of ns2-points up to {FASTEST_MBPS:.0f} Mbit/s, with the same tables on the "
        "body tcp, which is another than the study's: mean throughput in order over "
        f"{_RUNS} runs and senders, over ns-2's, and how many points are within 10 %."
    ),
    measure=measure,
)
