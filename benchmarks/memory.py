"""Measures the peak memory of a simulation."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row
from benchmarks.peak_memory import peak_mebibytes
from benchmarks.programs import REMY_SIMULATE, network_flags
from benchmarks.tables import write_eight_rules, write_flood


def measure() -> list[Row]:
    """Returns one row per table and simulated time."""
    with tempfile.TemporaryDirectory() as folder:
        eight_rules, flood = write_eight_rules(Path(folder)), write_flood(Path(folder))
        return [
            {"table": "eight rules", "simulated s": 100, "peak MiB": peak_mib(eight_rules, 100)},
            {
                "table": "eight rules",
                "simulated s": 10_000,
                "peak MiB": peak_mib(eight_rules, 10_000),
            },
            {"table": "flood", "simulated s": 100, "peak MiB": peak_mib(flood, 100)},
        ]


def peak_mib(remycc: Path, seconds: int) -> float:
    """Returns the peak memory, MiB, of simulating 16 senders for `seconds` of simulated time."""
    return peak_mebibytes(
        REMY_SIMULATE,
        *network_flags(remycc=remycc, senders=16, seconds=seconds),
    )


BENCHMARK = Benchmark(
    name="memory",
    title="Peak memory of a simulation",
    method=(
        "The maximum resident set of remy-simulate, as getrusage reports it at the process's end, "
        "with 16 senders at 15 Mbit/s and an infinite buffer. The goal is 100 MiB for any "
        "simulated time. The flood is a table whose window never limits a sender, so that the "
        "queue is as long as it can get. Values below some 8 MiB are not measurable, because the "
        "process that starts remy-simulate uses as much."
    ),
    measure=measure,
)
