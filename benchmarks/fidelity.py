"""Compares the simulator with the reference implementation's measurements."""

from __future__ import annotations

from benchmarks.benchmark import Benchmark, Row
from benchmarks.goldens import read_goldens


def measure() -> list[Row]:
    """Returns one row per network and measure."""
    return [
        {
            "network": golden.name,
            "measure": comparison.measure.removesuffix("_per_sender").replace("_", " "),
            "ours": comparison.ours,
            "reference": comparison.reference,
            "difference": comparison.difference,
            "allowed": comparison.tolerance,
            "within": comparison.is_within,
        }
        for golden in read_goldens()
        for comparison in golden.compare()
    ]


BENCHMARK = Benchmark(
    name="fidelity",
    title="Fidelity to the reference implementation",
    method=(
        "Published RemyCCs on networks that the reference implementation has simulated several "
        "times for 10,000 s; we simulate each once for the same time, with our own random numbers. "
        "Allowed is the reference's spread between its runs (largest minus smallest) plus 1.5 % of "
        "the mean in throughput and delay, plus 0.02 in normalized score."
    ),
    measure=measure,
)
