"""`remy-farm completion`: the script for a shell that completes commands, flags and jobs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_REMY_FARM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that has a shell complete what is typed after remy-farm.

    As a line in ~/.bashrc: eval "$(remy-farm completion bash)"
    """
    program = context.find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(program, {}, "remy-farm", _VARIABLE).source())
