"""Provides the RemyCCs that benchmarks use."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.benchmark import Unavailable
from benchmarks.programs import ROOT
from remy_farm.remycc import RemyCC, write_remycc
from remy_simulator import RuleTable

# If the variable is not set, this is a path below which no file can exist.
REFERENCE = Path(os.environ.get("REMY_REFERENCE_DIR") or os.devnull)

#: Tables of ours in absolute units, also as .dna files, each with its specification.
ABSOLUTE = ROOT / "tests" / "data" / "remyccs-absolute"
#: The shipped tables, each with its specification.
EXAMPLES = ROOT / "data" / "remyccs"


def published(name: str) -> Path:
    """Returns a published RemyCC's file, or one of ours if there is none. Raises Unavailable."""
    candidates = [REFERENCE / "remyccs" / name, *sorted(ABSOLUTE.rglob("*.dna"))]
    for path in candidates:
        if path.exists():
            return path
    raise Unavailable(
        f"Neither the subdirectory remyccs of REMY_REFERENCE_DIR nor {ABSOLUTE} has a RemyCC."
    )


def eight_rules() -> RuleTable:
    """Returns a table that keeps the link busy and the queue short.

    Its window grows while the RTT is below 1.2 times the minimum RTT and shrinks above.
    """
    grow, grow_gently, shrink = (1.0, 1.0, 0.25), (1.0, 1.0, 1.0), (0.9, 1.0, 2.0)
    table = RuleTable([0, 1, 2], [([], grow)]).split(0, [(0, 1.0), (1, 2.0), (2, 1.2)])
    # Bit k of a child's index is set if signal k is above its threshold. Bit 2 is the RTT ratio.
    return table.with_actions([grow, grow, grow_gently, grow_gently, *[shrink] * 4])


def write_eight_rules(folder: Path) -> Path:
    """Writes the table of `eight_rules` as a .dna file into the folder; returns its path."""
    return _write(folder / "eight-rules.dna", eight_rules())


def write_flood(folder: Path) -> Path:
    """Writes a .dna file whose one rule has the maximum window and no pacing; returns its path."""
    return _write(folder / "flood.dna", RuleTable([0], [([], (1.0, 1e6, 0.0))]))


def _write(path: Path, table: RuleTable) -> Path:
    write_remycc(path, RemyCC(table))
    return path
