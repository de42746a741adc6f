"""A setting: a flag, an environment variable and a key of a file at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

#: What the environment's variables begin with; --listen is REMY_FARM_COORDINATOR_LISTEN.
VARIABLE_PREFIX = "REMY_FARM_COORDINATOR"

FILE = click.Path(dir_okay=False, path_type=Path)


def setting(*names: str, **attributes: Any) -> Decorator:
    """click.option, with the variable and the default in the help text."""
    return click.option(*names, **{"show_envvar": True, "show_default": True, **attributes})
