"""docs/results/limits.md is made from limits.csv, which has what the sets' networks give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from remy_cli.common import local_evaluator
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.league import LeagueSet, plan_set, run_set
from scripts import limits

_SETS = limits.sets()


def test_page_is_made_from_the_data() -> None:
    assert limits.PAGE.read_text(encoding="utf-8") == limits.page(limits.read_rows(), _SETS)


def test_data_have_every_network_and_entrant_of_the_judging_half() -> None:
    expected = [
        (league.name, "judging half", on.name, entrant.name)
        for league in _SETS
        for on in league.networks(limits.DRAWS, quick=False)
        for entrant in limits.entrants()
    ]
    keys = ("set", "draws", "network", "entrant")
    assert [tuple(row[key] for key in keys) for row in limits.read_rows()] == expected


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CellRunner]:
    """A runner that keeps nothing."""
    database = tmp_path_factory.mktemp("limits") / "cells.db"
    with local_evaluator(1) as evaluator, closing(CellStore(database)) as store:
        yield CellRunner(evaluator.evaluate, store)


@pytest.mark.parametrize("league", _SETS, ids=lambda league: league.name)
def test_data_are_measured(league: LeagueSet, runner: CellRunner) -> None:
    """Each set's network with the least work is simulated again, in its full length."""
    plan = plan_set(league, limits.entrants(), limits.DRAWS, quick=False)
    (_, _, cells), *_ = plan.entries
    least = min(range(len(cells)), key=lambda index: cells[index].packets)
    one = replace(
        plan,
        networks=[plan.networks[least]],
        entries=[(entrant, tables, [own[least]]) for entrant, tables, own in plan.entries],
    )
    measured = limits.rows_of(run_set(one, runner, lambda _: None))
    rows = [
        row
        for row in limits.read_rows()
        if (row["set"], row["network"]) == (league.name, plan.networks[least].name)
    ]
    assert [{key: row[key] for key in own} for row, own in zip(rows, measured, strict=True)] == [
        *measured
    ]
