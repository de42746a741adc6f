"""Writes data/remyccs/league.md: the league's results for every shipped table.

Each table is compared separately with the protocols of `remy-farm league`. Simulations are cached
in build/league-of-examples, so that an unchanged table takes a second.

    .venv/bin/python scripts/league_of_examples.py
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from remy_cli.common import local_evaluator
from remy_farm.files import write_file
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.draws import Draws, Half
from remy_laboratory.studies.league import (
    Entrant,
    LeagueSet,
    SetResult,
    plan_set,
    read_set,
    run_set,
)
from remy_laboratory.studies.standings import parse_entrant, rival_protocols

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "data" / "remyccs"
PAGE = FOLDER / "league.md"
# No table is tuned on these networks.
_DRAWS = Draws(Half.JUDGING)


def tables() -> list[Path]:
    """Returns the files of the rules of all shipped tables, without path models."""
    return sorted(FOLDER.glob("*/rules*.json"))


def sets() -> list[LeagueSet]:
    """Returns all sets of networks of the league."""
    return [read_set(path) for path in sorted((ROOT / "data" / "league").glob("*.yaml"))]


class League:
    """Simulates all sets: the protocols once, and each table separately."""

    def __init__(self, runner: CellRunner, leagues: Sequence[LeagueSet]) -> None:
        self._runner = runner
        self.protocols = [self._play(league, rival_protocols()) for league in leagues]

    def results_of(self, table: Path) -> list[SetResult]:
        """Returns a table's result per set, among those of the protocols, as the last entrant."""
        return [self._with(protocols, parse_entrant(str(table))) for protocols in self.protocols]

    def _play(self, league: LeagueSet, entrants: Sequence[Entrant]) -> SetResult:
        plan = plan_set(league, entrants, _DRAWS, quick=False)
        return run_set(plan, self._runner, lambda _: None)

    def _with(self, protocols: SetResult, entrant: Entrant) -> SetResult:
        alone = self._play(protocols.league, [entrant])
        networks = [
            replace(
                network,
                scores={**network.scores, **added.scores},
                measures={**network.measures, **added.measures},
            )
            for network, added in zip(protocols.networks, alone.networks, strict=True)
        ]
        return replace(protocols, entrants=[*protocols.entrants, entrant], networks=networks)


def row_of(table: Path, results: Sequence[SetResult]) -> str:
    """Returns a table's row: its name, its digest and its winning rate in each set."""
    digest = hashlib.sha256(table.read_bytes()).hexdigest()[:12]
    return _line(f"[{_name(table)}]({table.parent.name})", f"`{digest}`", *_rates(results))


def page(results: Mapping[Path, Sequence[SetResult]], protocols: Sequence[SetResult]) -> str:
    """Returns the page as Markdown."""
    columns = len(protocols)
    lines = [
        "# The tables in the league",
        "",
        "How the rules of each table of this folder, without its path model (`rules.json`), do on",
        "the networks of `data/league`, compared by itself with Cubic, NewReno, BBR v1 and v3,",
        "Copa and Vivace: on what share of a set's networks its score is within the set's margin",
        "of the best one's. Most were designed for other networks than these, and to be among",
        "their like: beside Cubic (`ccbench-2`) they have little.",
        "Networks that are drawn are those of the judging half. Written by",
        "",
        "    .venv/bin/python scripts/league_of_examples.py",
        "",
        "| set | networks | what is on them |",
        "|---|---|---|",
        *(_line(each.league.name, len(each.networks), each.league.title) for each in protocols),
        "",
        "## Winning rates",
        "",
        _line("table", "SHA-256", *(each.league.name for each in protocols)),
        "|---|---|" + "---|" * columns,
        *(row_of(table, found) for table, found in results.items()),
        "",
        "The protocols among themselves:",
        "",
        _line("protocol", *(each.league.name for each in protocols)),
        "|---|" + "---|" * columns,
        *(_line(each.name, *_rates(protocols, each.name)) for each in protocols[0].entrants),
        "",
        "## Where each is farthest behind",
        "",
        "Among its like or alone, without others' flows. `remy-farm league TABLE` names more, and",
        "how to simulate them.",
        "",
        _line("table", "set", "network", "score over the best one's"),
        "|---|---|---|---|",
        *(_worst_line(table, found) for table, found in results.items()),
    ]
    return "\n".join(lines) + "\n"


def _name(table: Path) -> str:
    which = table.stem.removeprefix("rules").removeprefix("-")
    return f"{table.parent.name}, {which}" if which else table.parent.name


def _rates(results: Sequence[SetResult], entrant: str | None = None) -> list[str]:
    """Returns an entrant's winning rate in each set; by default the last entrant's."""
    return [
        f"{each.winning_rate(each.entrants[-1].name if entrant is None else entrant):.0%}"
        for each in results
    ]


def _worst_line(table: Path, results: Sequence[SetResult]) -> str:
    entrant = results[0].entrants[-1].name
    behind = [
        (network.relative_score(entrant), result.league.name, network.name)
        for result in results
        for network in result.networks
        if network.on.rival is None
    ]
    relative, league, network = min(behind)
    return _line(_name(table), league, network, f"{relative:.2g}")


def _line(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main() -> None:
    """Simulates what is missing and writes the page."""
    kept = ROOT / "build" / "league-of-examples" / "cells.db"
    kept.parent.mkdir(parents=True, exist_ok=True)
    threads = len(os.sched_getaffinity(0))
    with local_evaluator(threads) as evaluator, closing(CellStore(kept)) as store:
        league = League(CellRunner(evaluator.evaluate, store, threads=threads), sets())
        results = {}
        for table in tables():
            results[table] = league.results_of(table)
            print(row_of(table, results[table]), flush=True)
    write_file(PAGE, page(results, league.protocols))


if __name__ == "__main__":
    main()
