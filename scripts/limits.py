"""Writes docs/results/limits.md and limits.csv: general tables on networks outside their models.

The networks are the judging half of the league's sets that draw them. Simulations are cached in
build/limits.

    .venv/bin/python -m scripts.limits
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from remy_cli.common import local_evaluator
from remy_farm.files import write_file
from remy_farm.remycc import read_remycc, write_remycc
from remy_farm.specification.senders import REMYCC, parse_sender
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.draws import Draws, Half
from remy_laboratory.studies.league import (
    Entrant,
    LeagueSet,
    SetResult,
    plan_set,
    quantity_head,
    read_set,
    run_set,
)

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "results" / "limits.md"
DATA: Final = PAGE.with_suffix(".csv")
_CACHE: Final = ROOT / "build" / "limits"
#: The networks that judge finished tables.
DRAWS: Final = Draws(Half.JUDGING)
_TABLES: Final = ("generalist-remembering", "general-purpose-realistic")
# Files of a table, by what is added to its name.
_FILES: Final = {"": "remycc.json", ", rules alone": "rules.json"}
# The table that is there a third time, with the competitive mode, and its constant.
_COMPETES: Final = "generalist-remembering"
_COMPETITION_RTT_RATIO: Final = 1.2
_PROTOCOLS: Final = {"BBR v3": "bbr,variant=v3", "Copa": "copa", "Cubic": "cubic,variant=linux"}
_SMALLER_IS_BETTER: Final = ("loss", "rtt", "queue")
_BEGINNING: Final = """\
# Limits

A table is good on the networks that it was designed for. This page shows what two general tables
do on networks outside of these, and beside deployed protocols. Each is there twice: as it is
shipped, with the [path model](../explanation/path-model.md), and its rules alone.
`generalist-remembering` is there a third time, with the
[competitive mode](../explanation/path-model.md#competitive-mode) (`--compete 1.2`), which shipped
tables do not have. Whoever runs a table where a row below may happen should look at it first.

    .venv/bin/python -m scripts.limits

simulates everything and writes this page and [limits.csv](limits.csv), which has each network's
values. The networks are drawn from the ranges in `data/league`, in two halves: tables may be
tuned on one, and this page has the other, the *judging half*. All senders run on the transport
`tcp,variant=linux`. A cell has the mean over the networks and, in brackets, the worst of them.
RTTs over the path are relative to the path's own RTT at that instant. [The league](league.md)
has more sets, and [the reference](../reference/studies.md#sets-of-the-league) says how scores
and measures are defined.
"""
_WHY: Final = """\
## Why

* **A path whose RTT rises for good** (`rtt-steps`, `satellites`). Rules take what lies above the
  smallest RTT of an on period for a queue. Where the path itself gets longer, they see a queue
  that never drains, and slow down for ever. With a path model, the base RTT expires.
* **A path that gets shorter at once** (`satellites`). The ACKs on the way arrive all together. The
  rules' unit, the time between two ACKs, is then nearly 0, and they send up to a million packets
  in one burst. A path model bounds what is in flight.
* **Loss** (`shallow-crowds`, `policers`). No rule looks at losses, as in Remy: what is dropped
  is sent again, at the same pace. The path model's loss debt caps the window.
* **RTTs that differ** (`unequal-rtts`). The flow that measures the shorter path sees the same
  queue as a larger part of its RTT, and gives way to the other; Cubic has it the other way
  round. The path model shows rules queues as on a path of one reference RTT.
* **Company** (`company`). A table that was designed among its like for short queues gives way
  to whoever fills the buffer, with and without a path model. The competitive mode mends most of it.
  In crowds whose path holds less than a packet or two for each sender (`crowds`), it takes a queue
  of its own kind for that of competitors, again and again.
* **Clocks** (`held-acks`). ACKs that come all at once look like a queue that comes and goes. The
  path model helps where they are held for a large part of the RTT, again and again; where they are
  held for random times, a table can be left with a few percent of the link.
* **Fast links** (`fast-starts`). How fast a table starts is part of what it was designed for. The
  path model lets a start be a little faster, until it sees a queue.
"""

#: A line of the data: its set, network, entrant, and values by quantity.
Row = Mapping[str, str]


def sets() -> list[LeagueSet]:
    """Returns the league's sets that draw their networks."""
    leagues = [read_set(path) for path in sorted((ROOT / "data" / "league").glob("*.yaml"))]
    return [each for each in leagues if each.draws is not None]


def entrants() -> list[Entrant]:
    """Returns the tables and protocols of the page."""
    tables = {
        f"{name}{added}": f"{REMYCC}{ROOT / 'data' / 'remyccs' / name / file}"
        for name in _TABLES
        for added, file in _FILES.items()
    }
    tables[f"{_COMPETES}, competes"] = f"{REMYCC}{_competing_table()}"
    return [Entrant(name, parse_sender(text)) for name, text in {**tables, **_PROTOCOLS}.items()]


def _competing_table() -> Path:
    """Writes the table that competes beside the cached cells, and returns its path."""
    remycc = read_remycc(ROOT / "data" / "remyccs" / _COMPETES / "remycc.json")
    _CACHE.mkdir(parents=True, exist_ok=True)
    path = _CACHE / "competes.json"
    write_remycc(path, remycc.with_competition(_COMPETITION_RTT_RATIO))
    return path


def rows_of(result: SetResult) -> list[Row]:
    """Returns a line per network and entrant, with the values that the set shows."""
    return [
        {
            "set": result.league.name,
            "draws": result.drawn_from,
            "network": network.name,
            "entrant": entrant.name,
            **{name: _rounded(network.value(entrant.name, name)) for name in result.league.shown},
        }
        for network in result.networks
        for entrant in result.entrants
    ]


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def csv_text(rows: Sequence[Row]) -> str:
    """Returns the data as CSV; the columns are the quantities of all sets."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def read_rows() -> list[Row]:
    """Returns the lines of the data that the page is made of."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page(rows: Sequence[Row], leagues: Iterable[LeagueSet]) -> str:
    """Returns the page as Markdown."""
    sections = [_BEGINNING]
    for league in leagues:
        own = [row for row in rows if row["set"] == league.name]
        names = dict.fromkeys(row["entrant"] for row in own)
        networks = len({row["network"] for row in own})
        seconds = league.length_s(quick=False)
        (drawn_from,) = {row["draws"] for row in own}
        lines = [
            f"## `{league.name}`: {league.title}",
            "",
            f"{league.about} {networks} networks ({drawn_from}), {seconds:g} s.",
            "",
            _line("", *map(quantity_head, league.shown)),
            "|---" * (1 + len(league.shown)) + "|",
            *(
                _line(name, *(_cell(own, name, quantity) for quantity in league.shown))
                for name in names
            ),
        ]
        sections.append("\n".join(lines) + "\n")
    return "\n".join([*sections, _WHY])


def _cell(rows: Sequence[Row], entrant: str, quantity: str) -> str:
    """Returns the mean and the worst value of a quantity."""
    values = [float(row[quantity]) for row in rows if row["entrant"] == entrant and row[quantity]]
    if not values:
        return ""
    worst = max(values) if quantity.startswith(_SMALLER_IS_BETTER) else min(values)
    return f"{_text(quantity, sum(values) / len(values))} ({_text(quantity, worst)})"


def _text(quantity: str, value: float) -> str:
    if quantity == "loss":
        return f"{value:.1%}"
    if quantity.endswith(("_ms", "_mbps")):
        return f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Simulates what is missing and writes the data and the page."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    threads = len(os.sched_getaffinity(0))
    rows: list[Row] = []
    with local_evaluator(threads) as evaluator, closing(CellStore(_CACHE / "cells.db")) as store:
        runner = CellRunner(evaluator.evaluate, store, threads=threads)
        for league in sets():
            plan = plan_set(league, entrants(), DRAWS, quick=False)
            rows += rows_of(run_set(plan, runner, lambda _: None))
            print(league.name, flush=True)
    write_file(DATA, csv_text(rows))
    write_file(PAGE, page(rows, sets()))


if __name__ == "__main__":
    main()
