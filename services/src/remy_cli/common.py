"""What commands share: options, results as JSON or tables."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from remy_simulator.cpus import allowed_cpus

if TYPE_CHECKING:
    from remy_farm.evaluation import LocalEvaluator

_Command = TypeVar("_Command", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False)
"""A file. Whoever reads or writes it says what is wrong with it."""

SEED = click.IntRange(0, 2**64 - 1)
#: What is counted in 32 bits.
COUNT = click.IntRange(1, 2**32 - 1)
POSITIVE_INT = click.IntRange(min=1)
SPECIMEN_COUNT = click.IntRange(1, 1_000_000)
THREADS = click.IntRange(1, 1024)


class FiniteRange(click.FloatRange):
    """A range of real numbers; NaN and infinity are outside of every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not abs(number) < float("inf"):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


POSITIVE = FiniteRange(min=0, min_open=True)
NOT_NEGATIVE = FiniteRange(min=0)


def option(
    usage: str,
    text: str,
    kind: click.ParamType[Any] | None = None,
    *,
    name: str | None = None,
    **attributes: Any,
) -> Callable[[_Command], _Command]:
    """A flag, whose help shows its variable and its default.

    `usage` is as in "--out -o FILE": the flag, perhaps a short one, and a word for the value.
    `name` is the parameter's where it is not the flag's.
    """
    words = usage.split()
    flags = [word for word in words if word.startswith("-")]
    return click.option(
        *([*flags, name] if name else flags),
        metavar=" ".join(words[len(flags) :]) or None,
        help=text,
        type=kind,
        **{"show_envvar": True, "show_default": attributes.get("default") != "", **attributes},
    )


def switch(usage: str, text: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """A flag without a value."""
    return option(usage, text, is_flag=True, **attributes)


def seed_option(text: str) -> Callable[[_Command], _Command]:
    """--seed K, 1 unless it is given."""
    return option("--seed K", text, SEED, default=1)


def settings_option(text: str) -> Callable[[_Command], _Command]:
    """--set PATH=VALUE, any number of them."""
    return option("--set PATH=VALUE", text, name="settings", multiple=True)


def sweeps_option(beginning: str) -> Callable[[_Command], _Command]:
    """--sweep PATH=V,V,..., any number of them; what is made or submitted for each value."""
    text = (
        f"{beginning} for each of these values of a setting, as objective.delta=0.1,1,10; "
        "with several sweeps, for each combination."
    )
    return option("--sweep PATH=V,V,...", text, name="sweeps", multiple=True)


threads_option = option(
    "--threads N",
    "Threads to simulate with; results do not depend on it.",
    THREADS,
    default=allowed_cpus,
    show_default="the CPUs allowed",
)
time_unit_option = option(
    "--time-unit-ms U",
    "Unit of time of the .dna files, ms: a .dna file does not tell.",
    POSITIVE,
    default=1.0,
)
json_option = switch("--json", "Print one JSON object and nothing else.", name="as_json")
quiet_option = switch("--quiet", "Show no progress.")


def local_evaluator(threads: int) -> AbstractContextManager[LocalEvaluator]:
    """An evaluator on this process's threads, until the command ends."""
    # Evaluators load numpy, which help and mistakes do not wait for.
    from remy_farm.evaluation import LocalEvaluator

    return closing(LocalEvaluator(threads))


# Of a column of words, where the whole table does not fit.
_WIDEST_WORDS = 28
_GAP = 2
_NOTE_WIDTH = 79


class PlainTable:
    """Rows under a line of heads; numbers stand to the right, but in the first `left` columns.

    Nothing is ever cut off: columns that do not fit on the screen follow below it, each time behind
    the first column, and what is longer than its column goes on in the next line.
    """

    def __init__(self, *head: str, left: int = 0) -> None:
        self._head = head
        self._left = left
        self._rows: list[tuple[str, ...]] = []
        self._styles: list[str] = []

    def add_row(self, *cells: str, style: str = "") -> None:
        """A cell for each column."""
        self._rows.append(cells)
        self._styles.append(style)

    def width(self) -> int:
        """Columns of a screen that shows every row on one line."""
        return sum(self._widths()) + _GAP * (len(self._head) - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, band in enumerate(self._bands(options.max_width)):
            if number > 0:
                yield ""
            table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
            for column, width in band:
                table.add_column(
                    self._head[column],
                    justify="left" if column < self._left else "right",
                    width=width,
                    overflow="fold",
                )
            for row, style in zip(self._rows, self._styles, strict=True):
                table.add_row(*(Text(row[column]) for column, _ in band), style=style)
            yield table

    def _widths(self) -> list[int]:
        return [max(map(cell_len, cells)) for cells in zip(self._head, *self._rows, strict=True)]

    def _bands(self, room: int) -> list[list[tuple[int, int]]]:
        """(column, width) of each part of the table."""
        widths = self._widths()
        if self.width() <= room:
            return [list(enumerate(widths))]
        for column in range(self._left):
            widths[column] = min(widths[column], _WIDEST_WORDS)
        key = (0, min(widths[0], room))
        bands = [[key]]
        used = key[1]
        for column, width in enumerate(widths[1:], start=1):
            if used + _GAP + width > room and len(bands[-1]) > 1:
                bands.append([key])
                used = key[1]
            fitting = max(1, min(width, room - used - _GAP))
            bands[-1].append((column, fitting))
            used += _GAP + fitting
        return bands


def print_json(tree: Mapping[str, Any]) -> None:
    """One JSON object on standard output. Keys keep their order; numbers are exact."""
    click.echo(json.dumps(tree, indent=2, allow_nan=False))


def print_table(table: PlainTable) -> None:
    """A table on standard output; in a file or a pipe every row is one line, unless COLUMNS says
    how wide that may be."""
    is_bounded = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if is_bounded else max(1, table.width())
    Console(file=sys.stdout, width=width, highlight=False).print(table)


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    rows = list(pairs)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        click.echo(f"{name:<{width}}  {value}")


def print_note(text: str) -> None:
    """What explains a table, below it, in lines that fit any screen."""
    click.echo("\n" + textwrap.fill(text, _NOTE_WIDTH))


def say(sentence: str) -> None:
    """A line for people on standard error."""
    click.echo(sentence, err=True)
