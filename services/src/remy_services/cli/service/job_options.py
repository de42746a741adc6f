"""Arguments and flags that commands on jobs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def job_argument() -> Callable[[_Command], _Command]:
    """JOB: an id, or a name where that is unambiguous."""
    return click.argument("job", metavar="JOB")


def quiet_option() -> Callable[[_Command], _Command]:
    """--quiet."""
    return click.option("--quiet", is_flag=True, help="Show no progress.")
