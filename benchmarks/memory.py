"""What a simulation holds in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.figure import Figure, Row
from benchmarks.peak_memory import peak_mebibytes
from benchmarks.programs import REMY_SIMULATE, network_flags
from benchmarks.tables import write_eight_rules, write_flood


def measure() -> list[Row]:
    """One row a length."""
    with tempfile.TemporaryDirectory() as folder:
        usual, flood = write_eight_rules(Path(folder)), write_flood(Path(folder))
        return [
            {"load": "usual", "simulated s": 100, "peak MiB": peak_of(usual, 100)},
            {"load": "usual", "simulated s": 10_000, "peak MiB": peak_of(usual, 10_000)},
            {"load": "flood", "simulated s": 100, "peak MiB": peak_of(flood, 100)},
        ]


def peak_of(remycc: Path, seconds: int) -> float:
    """The peak, in MiB, of simulating 16 senders for so long."""
    return peak_mebibytes(
        REMY_SIMULATE,
        *network_flags(remycc=remycc, senders=16, seconds=seconds),
    )


FIGURE = Figure(
    name="memory",
    title="Peak memory of a simulation",
    method=(
        "Largest resident set of remy-simulate, as the operating system reports it when the "
        "process has ended (getrusage), with 16 senders at 15 Mbit/s and an infinite buffer. The "
        "goal is 100 MiB whatever the length. In a flood no sender waits for anything, and the "
        "queue is as long as it can get. Less than about 8 MiB cannot be told: that is the "
        "launcher's own."
    ),
    measure=measure,
)
