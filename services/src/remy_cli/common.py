"""Helpers that commands share: options, parameter types, and output as JSON or text tables."""

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
"""A file name. The code that opens the file reports errors."""

SEED = click.IntRange(0, 2**64 - 1)
#: A count that fits in 32 bits.
COUNT = click.IntRange(1, 2**32 - 1)
POSITIVE_INT = click.IntRange(min=1)
SPECIMEN_COUNT = click.IntRange(1, 1_000_000)
THREADS = click.IntRange(1, 1024)


class FiniteRange(click.FloatRange):
    """A range of real numbers that rejects NaN and infinity."""

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
    """Adds an option whose help shows its environment variable and its default.

    `usage` holds the flags and the metavar, for example "--out -o FILE". `name` is the name of the
    function's parameter; None derives it from the flag.
    """
    tokens = usage.split()
    flags = [token for token in tokens if token.startswith("-")]
    return click.option(
        *([*flags, name] if name else flags),
        metavar=" ".join(tokens[len(flags) :]) or None,
        help=text,
        type=kind,
        **{"show_envvar": True, "show_default": attributes.get("default") != "", **attributes},
    )


def flag(usage: str, text: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """Adds a boolean flag."""
    return option(usage, text, is_flag=True, **attributes)


def seed_option(text: str) -> Callable[[_Command], _Command]:
    """Adds --seed K, which defaults to 1."""
    return option("--seed K", text, SEED, default=1)


def settings_option(text: str) -> Callable[[_Command], _Command]:
    """Adds --set PATH=VALUE, which may be given several times."""
    return option("--set PATH=VALUE", text, name="settings", multiple=True)


def sweeps_option(beginning: str) -> Callable[[_Command], _Command]:
    """Adds --sweep PATH=V,V,..., which may be given several times.

    `beginning` starts the help text and says what the command makes for each value.
    """
    text = (
        f"{beginning} for each of these values of a setting, e.g. objective.delta=0.1,1,10. "
        "Several sweeps give every combination."
    )
    return option("--sweep PATH=V,V,...", text, name="sweeps", multiple=True)


threads_option = option(
    "--threads N",
    "Number of simulation threads; results do not depend on it.",
    THREADS,
    default=allowed_cpus,
    show_default="the CPUs allowed",
)
time_unit_option = option(
    "--time-unit-ms U",
    "Time unit of .dna files in ms, which the files do not record.",
    POSITIVE,
    default=1.0,
)
rules_alone_flag = flag(
    "--rules-alone", "Leave out the RemyCC's path model, which the output cannot hold."
)
json_option = flag("--json", "Print a single JSON object instead of text.", name="as_json")
quiet_option = flag("--quiet", "Show no progress.")


def examples(*commands: str) -> str:
    """Returns an epilog for a command's help: a list of example commands, not wrapped."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def local_evaluator(threads: int) -> AbstractContextManager[LocalEvaluator]:
    """Returns a context manager for an evaluator that runs on threads of this process."""
    # Imported here because it loads numpy, which would slow down --help and usage errors.
    from remy_farm.evaluation import LocalEvaluator

    return closing(LocalEvaluator(threads))


#: Maximum width of a text column, in characters, when the table does not fit on the screen.
_MAX_TEXT_WIDTH = 28
_GAP = 2
_NOTE_WIDTH = 79


class PlainTable:
    """A text table. The first `left` columns are left-aligned, the others right-aligned.

    No text is truncated. Columns that do not fit on the screen are printed in further bands below,
    each of which repeats the first column. Text that is wider than its column wraps.
    """

    def __init__(self, *head: str, left: int = 0) -> None:
        self._head = head
        self._left = left
        self._rows: list[tuple[str, ...]] = []
        self._styles: list[str] = []

    def add_row(self, *cells: str, style: str = "") -> None:
        """Adds a row with one cell per column."""
        self._rows.append(cells)
        self._styles.append(style)

    def width(self) -> int:
        """Returns the screen width, in characters, that shows every row on one line."""
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
        """Divides the columns into bands that fit `room` characters: lists of (column, width)."""
        widths = self._widths()
        if self.width() <= room:
            return [list(enumerate(widths))]
        for column in range(self._left):
            widths[column] = min(widths[column], _MAX_TEXT_WIDTH)
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
    """Prints a JSON object with its keys in order and its numbers exact."""
    click.echo(json.dumps(tree, indent=2, allow_nan=False))


def print_table(table: PlainTable) -> None:
    """Prints a table. In a file or a pipe every row is one line, unless COLUMNS sets a width."""
    is_bounded = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if is_bounded else max(1, table.width())
    Console(file=sys.stdout, width=width, highlight=False).print(table)


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Prints names and values in two columns."""
    rows = list(pairs)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        click.echo(f"{name:<{width}}  {value}")


def print_note(text: str) -> None:
    """Prints an explanation below a table, wrapped to 79 characters."""
    click.echo("\n" + textwrap.fill(text, _NOTE_WIDTH))


def print_status(sentence: str) -> None:
    """Prints a line on standard error."""
    click.echo(sentence, err=True)
