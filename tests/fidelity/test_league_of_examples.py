"""data/remyccs/league.md covers the shipped tables and has the measured winning rates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from remy_cli.common import local_evaluator
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.draws import Draws
from scripts import league_traces
from scripts.league_of_examples import PAGE, League, row_of, sets, tables

#: Sets that are simulated in seconds, and the tables that are measured on them again.
_SETS = ("completion-times", "starvation")
_TABLES = ("general-purpose-delta1", "general-purpose-realistic", "generalist-remembering")


def _rows(heading: str) -> dict[str, list[str]]:
    """Returns the rows of the table below a heading, by their first cell."""
    section = PAGE.read_text().partition(f"# {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row for row in rows}


def test_page_has_a_row_for_each_table() -> None:
    rates = _rows("Winning rates")
    for table in tables():
        name, digest = row_of(table, []).strip("| ").split(" | ")
        assert rates[name][1] == digest, "run scripts/league_of_examples.py: a table has changed"
    behind = list(_rows("Where each is farthest behind"))[1:]
    assert [f"[{name}]" for name in behind] == [
        name.partition("(")[0] for name in list(rates)[1 : len(tables()) + 1]
    ]


def test_page_lists_the_sets() -> None:
    rows = list(_rows("The tables in the league").values())[1:]
    assert rows == [
        [each.name, str(len(each.networks(Draws(), quick=False))), each.title] for each in sets()
    ]


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> Iterator[League]:
    """The league of the chosen sets, with the protocols' results."""
    database = tmp_path_factory.mktemp("league") / "cells.db"
    with local_evaluator(1) as evaluator, closing(CellStore(database)) as store:
        chosen = [each for each in sets() if each.name in _SETS]
        yield League(CellRunner(evaluator.evaluate, store), chosen)


@pytest.mark.parametrize("table", [each for each in tables() if each.parent.name in _TABLES])
def test_page_has_the_measured_winning_rates(table: Path, league: League) -> None:
    rates = _rows("Winning rates")
    columns = [rates["table"].index(name) for name in _SETS]
    name, _, *measured = row_of(table, league.results_of(table)).strip("| ").split(" | ")
    assert [rates[name][column] for column in columns] == measured


def test_traces_are_those_that_the_script_generates() -> None:
    committed = {path.name: path.read_text() for path in league_traces.FOLDER.iterdir()}
    assert committed == league_traces.traces()
