"""What commands share: options, results as JSON or tables, progress lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table

from remy_services.analysis.explain import Progress
from remy_simulator.cpus import allowed_cpus

_Command = TypeVar("_Command", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False)
"""A file. Whoever reads or writes it says what is wrong with it."""

SEED = click.IntRange(0, 2**64 - 1)


class FiniteRange(click.FloatRange):
    """A range of real numbers; NaN and infinity are outside of every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not abs(number) < float("inf"):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def seed_option(*, default: int | None, text: str) -> Callable[[_Command], _Command]:
    """--seed K."""
    return click.option(
        "--seed",
        type=SEED,
        default=default,
        show_default=default is not None,
        metavar="K",
        help=text,
    )


def threads_option() -> Callable[[_Command], _Command]:
    """--threads N; by default as many as this process may keep busy."""
    return click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        default=allowed_cpus,
        metavar="N",
        help="Threads to simulate with; results do not depend on it.  [default: the CPUs allowed]",
    )


def time_unit_option() -> Callable[[_Command], _Command]:
    """`--time-unit-ms`."""
    return click.option(
        "--time-unit-ms",
        type=FiniteRange(min=0, min_open=True),
        default=1.0,
        show_default=True,
        metavar="U",
        help="Unit of time of the .dna files, ms: a .dna file does not tell.",
    )


def json_option() -> Callable[[_Command], _Command]:
    """--json."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
    )


# Tables that go to a file or a pipe are not folded to a screen's width.
_WIDTH_OFF_SCREEN = 240


def print_json(tree: Mapping[str, Any]) -> None:
    """One JSON object on standard output. Keys keep their order; numbers are exact."""
    click.echo(json.dumps(tree, indent=2, allow_nan=False))


def print_table(table: Table) -> None:
    """A table on standard output."""
    width = None if sys.stdout.isatty() else _WIDTH_OFF_SCREEN
    Console(file=sys.stdout, width=width, highlight=False).print(table)


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    rows = list(pairs)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        click.echo(f"{name:<{width}}  {value}")


def plain_table(*columns: str, left: int = 0) -> Table:
    """A table with a line under its head; numbers to the right but in the first `left` columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < left else "right", no_wrap=True)
    return table


_SECONDS_BETWEEN_LINES = 2.0


class ProgressLines:
    """A line now and then; none where the work is done before one is due."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at_seconds = clock()

    def __call__(self, progress: Progress) -> None:
        """Says how far the work has got, unless it has just been said."""
        now = self._clock()
        if now - self._said_at_seconds >= _SECONDS_BETWEEN_LINES:
            self._said_at_seconds = now
            click.echo(f"{progress.part}: {progress.tried} of {progress.tables} tried", err=True)
