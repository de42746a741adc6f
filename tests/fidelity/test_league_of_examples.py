"""data/remyccs/league.md speaks of the tables that are there, and says what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from remy_cli.common import local_evaluator
from remy_laboratory.studies.cells import CellRunner, CellStore
from scripts import league_traces
from scripts.league_of_examples import PAGE, League, row_of, sets, tables

#: Sets whose networks take seconds, and the tables that are compared on them again.
_SETS = ("completion-times", "starvation")
_TABLES = ("general-purpose-delta1", "general-purpose-realistic", "generalist-remembering")


def _rows(heading: str) -> dict[str, list[str]]:
    """The cells of the table below a heading, by the first one."""
    section = PAGE.read_text().partition(f"# {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row for row in rows}


def test_each_table_as_it_is_has_a_line() -> None:
    rates = _rows("Winning rates")
    for table in tables():
        name, digest = row_of(table, []).strip("| ").split(" | ")
        assert rates[name][1] == digest, "scripts/league_of_examples.py was not run since"
    behind = list(_rows("Where each is farthest behind"))[1:]
    assert [f"[{name}]" for name in behind] == [
        name.partition("(")[0] for name in list(rates)[1 : len(tables()) + 1]
    ]


def test_it_speaks_of_the_sets_as_they_are() -> None:
    rows = list(_rows("The tables in the league").values())[1:]
    assert rows == [
        [each.name, str(len(each.networks(quick=False))), each.title] for each in sets()
    ]


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> Iterator[League]:
    """The sets that are played again, by the protocols."""
    kept = tmp_path_factory.mktemp("league") / "cells.db"
    with local_evaluator(1) as evaluator, closing(CellStore(kept)) as store:
        chosen = [each for each in sets() if each.name in _SETS]
        yield League(CellRunner(evaluator.evaluate, store), chosen)


@pytest.mark.parametrize("table", [each for each in tables() if each.parent.name in _TABLES])
def test_what_it_says_comes_out(table: Path, league: League) -> None:
    rates = _rows("Winning rates")
    columns = [rates["table"].index(name) for name in _SETS]
    name, _, *again = row_of(table, league.of(table)).strip("| ").split(" | ")
    assert [rates[name][column] for column in columns] == again


def test_the_recordings_are_what_their_script_writes() -> None:
    written = {path.name: path.read_text() for path in league_traces.FOLDER.iterdir()}
    assert written == league_traces.traces()
