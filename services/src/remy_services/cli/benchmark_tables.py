"""Scores of RemyCC files on the yardstick, and how scores are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from remy_services.cli.output import plain_table, print_table
from remy_services.remycc import read_remycc
from remy_services.report.trial import Evaluate
from remy_services.report.wording import with_error
from remy_services.yardstick.curve import score_tree
from remy_services.yardstick.network import SIMULATED_SECONDS
from remy_services.yardstick.published import PublishedScore
from remy_services.yardstick.score import GROUPS, YardstickScore, group_name, measure_table

SCORE_HEAD = ("mean", "pooled", *(f"n={group_name(group)}" for group in GROUPS))


@dataclass(frozen=True)
class MeasuredFile:
    """A RemyCC file and its score."""

    path: Path
    rules: int
    score: YardstickScore

    def as_published(self) -> PublishedScore:
        """To draw beside the curves of searches."""
        return PublishedScore.measured(self.path.stem, self.rules, self.score)


def measure_files(
    paths: Sequence[Path], evaluate: Evaluate, *, delta: float, specimens: int
) -> list[MeasuredFile]:
    """Every file is read before the first is measured. Raises FileError."""
    tables = [read_remycc(path).table for path in paths]
    return [
        MeasuredFile(
            path,
            table.rule_count,
            measure_table(table, evaluate, delta=delta, specimens=specimens),
        )
        for path, table in zip(paths, tables, strict=True)
    ]


def score_cells(score: YardstickScore) -> list[str]:
    """As SCORE_HEAD says."""
    return [with_error(each) for each in (score.mean, score.pooled, *score.groups)]


def print_tables(tables: Sequence[MeasuredFile], quoted: Sequence[PublishedScore] = ()) -> None:
    """For people; `quoted` tables were measured elsewhere."""
    rows = plain_table("RemyCC", "rules", *SCORE_HEAD, left=1)
    for each in tables:
        rows.add_row(each.path.name, str(each.rules), *score_cells(each.score))
    for table in quoted:
        scores = (table.mean, table.pooled, *table.groups)
        rows.add_row(f"published {table.name}", str(table.rules), *(f"{x:.3f}" for x in scores))
    print_table(rows)
    click.echo(
        "\nMeans over specimens (pooled: over senders) with standard errors; n: senders of a "
        "specimen."
    )


def tables_tree(tables: Sequence[MeasuredFile], *, delta: float, specimens: int) -> dict[str, Any]:
    """For --json."""
    return {
        "delta": delta,
        "specimens": specimens,
        "simulated_seconds": SIMULATED_SECONDS,
        "tables": [
            {"file": str(each.path), "rules": each.rules, **score_tree(each.score)}
            for each in tables
        ],
    }
