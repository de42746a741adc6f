"""Settings in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remy_services.cli.coordinator_options.setting import FILE, setting

_MOST_CONFIG_BYTES = 1 << 20


def _read_config(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Makes a file's settings the defaults of this command."""
    if path is None:
        return
    from remy_services.files import read_file
    from remy_services.spec.text import read_yaml

    try:
        text = read_file(path, limit=_MOST_CONFIG_BYTES).decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{path} is not UTF-8 text") from error
    tree = read_yaml(text, str(path))
    known = {
        option.name: next(name.lstrip("-") for name in option.opts)
        for option in context.command.params
        if isinstance(option, click.Option) and option.name not in ("config", "help")
    }
    by_key = {key: name for name, key in known.items()}
    if not isinstance(tree, dict):
        raise click.UsageError(
            f"{path} must be a mapping of settings, as in 'listen: 0.0.0.0:7390'"
        )
    for key, value in tree.items():
        if key not in by_key:
            raise click.UsageError(
                f"{path}: {key[:60]!r} is no setting; there are {', '.join(sorted(by_key))}"
            )
        if isinstance(value, list | dict) or value is None:
            raise click.UsageError(f"{path}: {key} must be one value")
    context.default_map = {
        **(context.default_map or {}),
        **{by_key[key]: _as_flag_value(value) for key, value in tree.items()},
    }


def _as_flag_value(value: Any) -> Any:
    return value if isinstance(value, bool) else str(value)


CONFIG = setting(
    "--config",
    type=FILE,
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    metavar="FILE",
    help="YAML file with settings by the names of the flags, without dashes in front; flags "
    "and the environment go before it.",
)
