"""The command that goes on with an interrupted design."""

from __future__ import annotations

import shlex

import click
from click.core import ParameterSource

_COMMAND_LINE = ParameterSource.COMMANDLINE


def resume_command(context: click.Context) -> str:
    """The running command as the user gave it, with --resume, ready for a shell."""
    words = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name == "resume" or context.get_parameter_source(name) is not _COMMAND_LINE:
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            words.append(parameter.opts[0])
        else:
            values = value if parameter.multiple else [value]
            words += [word for each in values for word in (parameter.opts[0], str(each))]
    return shlex.join([*words, "--resume"])
