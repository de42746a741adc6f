"""A benchmark: its name, its method, the function that measures it, and its result."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 100

Cell = str | int | float | bool | None
#: One line of a result's table: values by column name.
Row = dict[str, Cell]


class Unavailable(Exception):
    """A benchmark cannot run here: one sentence that names what this machine lacks."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark and how to run it."""

    name: str
    title: str
    #: A paragraph that tells readers how the numbers are obtained.
    method: str
    #: Runs the benchmark. Raises Unavailable.
    measure: Callable[[], list[Row]]


@dataclass(frozen=True)
class Result:
    """A benchmark's measured rows, or why it was skipped."""

    benchmark: Benchmark
    rows: Sequence[Row]
    #: Why there are no rows; None if there are.
    skipped: str | None = None

    def to_text(self) -> str:
        """Formats title, method and table for a terminal."""
        benchmark = self.benchmark
        method = textwrap.fill(benchmark.method, WIDTH)
        table = f"Skipped: {self.skipped}" if self.skipped else _format_table(self.rows)
        return f"{benchmark.title}\n{'-' * len(benchmark.title)}\n{method}\n\n{table}\n"

    def to_json(self) -> dict[str, Any]:
        """Returns the result as a JSON object, with unrounded numbers."""
        described = {"title": self.benchmark.title, "method": self.benchmark.method}
        return described | (
            {"skipped": self.skipped} if self.skipped else {"rows": list(self.rows)}
        )


def run(benchmark: Benchmark) -> Result:
    """Runs a benchmark; its result is marked as skipped if the benchmark raises Unavailable."""
    try:
        return Result(benchmark, benchmark.measure())
    except Unavailable as reason:
        return Result(benchmark, (), skipped=str(reason))


def _format_table(rows: Sequence[Row]) -> str:
    columns = list(rows[0])
    cells = [columns, *([_format_cell(row[column]) for column in columns] for row in rows)]
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


def _format_cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else value
