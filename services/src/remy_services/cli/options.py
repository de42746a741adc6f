"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

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


def json_option() -> Callable[[_Command], _Command]:
    """--json."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
    )
