"""The RemyCCs that are measured with."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.figure import Unavailable
from benchmarks.programs import ROOT
from remy_farm.remycc import RemyCC, write_remycc
from remy_simulator import RuleTable

# Where no folder is named there is none: nothing is below a file.
REFERENCE = Path(os.environ.get("REMY_REFERENCE_DIR") or os.devnull)

#: Our tables in absolute units, as .dna files too, each with the specification that made it.
ABSOLUTE = ROOT / "tests" / "data" / "remyccs-absolute"
#: Those that are shipped, each with the specification that made it.
EXAMPLES = ROOT / "data" / "remyccs"


def published(name: str) -> Path:
    """A published RemyCC of the reference folder, else one of ours. Raises Unavailable."""
    candidates = [REFERENCE / "remyccs" / name, *sorted(ABSOLUTE.rglob("*.dna"))]
    for path in candidates:
        if path.exists():
            return path
    raise Unavailable(
        f"neither the subfolder remyccs of REMY_REFERENCE_DIR nor {ABSOLUTE} has a RemyCC."
    )


def eight_rules() -> RuleTable:
    """Keeps the link busy and the queue short: grows below 1.2 times the RTT, shrinks above."""
    grow, grow_gently, shrink = (1.0, 1.0, 0.25), (1.0, 1.0, 1.0), (0.9, 1.0, 2.0)
    table = RuleTable([0, 1, 2], [([], grow)]).split(0, [(0, 1.0), (1, 2.0), (2, 1.2)])
    # Bits of a child's number: 0 and 1 for the times between packets, 2 for the ratio.
    return table.with_actions([grow, grow, grow_gently, grow_gently, *[shrink] * 4])


def write_eight_rules(folder: Path) -> Path:
    """The same as a .dna file in the folder."""
    return _write(folder / "eight-rules.dna", eight_rules())


def write_flood(folder: Path) -> Path:
    """A .dna file of one rule that sends all that a window may hold, at once."""
    return _write(folder / "flood.dna", RuleTable([0], [([], (1.0, 1e6, 0.0))]))


def _write(path: Path, table: RuleTable) -> Path:
    write_remycc(path, RemyCC(table))
    return path
