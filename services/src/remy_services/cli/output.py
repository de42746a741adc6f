"""How results are shown: as one JSON object, or to people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click
from rich.console import Console
from rich.table import Table

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
