"""One figure: what it is, how it is measured, and what was found."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 100

Cell = str | int | float | bool | None
#: One line of a table: values by the names of its columns.
Row = dict[str, Cell]


class Unavailable(Exception):
    """One sentence: what a figure needs and this machine lacks."""


@dataclass(frozen=True)
class Figure:
    """A benchmark."""

    name: str
    title: str
    #: How it is measured, in words.
    method: str
    #: Measures it. Raises Unavailable.
    measure: Callable[[], list[Row]]


@dataclass(frozen=True)
class Finding:
    """What measuring a figure came to."""

    figure: Figure
    rows: Sequence[Row]
    #: Why there are no rows.
    skipped: str | None = None

    def to_text(self) -> str:
        """For people: title, method, table."""
        method = textwrap.fill(self.figure.method, WIDTH)
        table = f"Skipped: {self.skipped}" if self.skipped else _table(self.rows)
        return f"{self.figure.title}\n{'-' * len(self.figure.title)}\n{method}\n\n{table}\n"

    def to_tree(self) -> dict[str, Any]:
        """For programs: numbers as they were measured."""
        tree = {"title": self.figure.title, "method": self.figure.method}
        return tree | ({"skipped": self.skipped} if self.skipped else {"rows": list(self.rows)})


def find(figure: Figure) -> Finding:
    """Measures a figure, or says why that is impossible."""
    try:
        return Finding(figure, figure.measure())
    except Unavailable as reason:
        return Finding(figure, (), skipped=str(reason))


def _table(rows: Sequence[Row]) -> str:
    columns = list(rows[0])
    cells = [columns, *([_text(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    is_number = [
        all(isinstance(row[column], int | float | None) for row in rows) for column in columns
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in cells
    )


def _text(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value
