"""What a packet costs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figure import Figure, Row, Unavailable
from benchmarks.programs import REMY_SIMULATE, network_flags
from benchmarks.tables import published

_SHORT_SECONDS = 100
_LONG_SECONDS = 1000
_RTT_MS = 150


@dataclass(frozen=True)
class _Setting:
    remycc: str
    senders: int
    link_mbps: float
    on_off_ms: float
    #: Instructions a packet of the reference implementation, and our goal.
    reference: int
    goal: int


_SETTINGS = (
    _Setting("RemyCC-2014-100x.dna", 2, 35.3, 1000, reference=4430, goal=150),
    _Setting("RemyCC-2013-delta1.dna", 8, 18, 10_000, reference=9060, goal=200),
    _Setting("RemyCC-2013-delta0.1.dna", 16, 15, 5000, reference=13_400, goal=250),
)


def measure() -> list[Row]:
    """One row a setting."""
    if shutil.which("valgrind") is None:
        raise Unavailable("valgrind is not installed (package valgrind).")
    return [_row(setting, published(setting.remycc)) for setting in _SETTINGS]


def _row(setting: _Setting, remycc: Path) -> Row:
    packets, instructions = (
        long - short
        for long, short in zip(
            _run(setting, remycc, _LONG_SECONDS), _run(setting, remycc, _SHORT_SECONDS), strict=True
        )
    )
    # The figures of others hold for their RemyCC only.
    is_same = remycc.name == setting.remycc
    return {
        # Designs of ours are directories, all with a file of the same name.
        "RemyCC": remycc.stem if is_same else remycc.parent.name,
        "senders": setting.senders,
        "Mbit/s": float(setting.link_mbps),
        "on/off ms": int(setting.on_off_ms),
        "packets": packets,
        "instructions a packet": round(instructions / packets, 1),
        "goal": setting.goal if is_same else None,
        "reference": setting.reference if is_same else None,
    }


def _run(setting: _Setting, remycc: Path, seconds: float) -> tuple[int, int]:
    """Packets received, and instructions executed."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind"
        printed = subprocess.run(
            [
                "valgrind",
                "--quiet",
                "--tool=callgrind",
                f"--callgrind-out-file={counts}",
                REMY_SIMULATE,
                *network_flags(
                    remycc=remycc,
                    senders=setting.senders,
                    link_mbps=setting.link_mbps,
                    rtt_ms=_RTT_MS,
                    on_ms=setting.on_off_ms,
                    off_ms=setting.on_off_ms,
                    seconds=seconds,
                ),
                "--json",
            ],
            check=True,
            capture_output=True,
        ).stdout
        totals = re.search(r"^(?:summary|totals): (\d+)", counts.read_text(), re.MULTILINE)
    assert totals is not None, "callgrind wrote no total"
    return json.loads(printed)["packets_received"], int(totals[1])


FIGURE = Figure(
    name="instructions",
    title="Instructions per delivered packet",
    method=(
        "Instructions that valgrind's callgrind counts in remy-simulate, of a run of 1,000 "
        "simulated seconds minus one of 100, over the packets received, likewise: start and end "
        "cancel. Repeatable whatever else the machine does; it depends on the compiler. RTT 150 "
        "ms, infinite buffer, exponential on and off times of the given mean, seed 1."
    ),
    measure=measure,
)
