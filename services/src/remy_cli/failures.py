"""What the command line says, and how it exits, when something goes wrong."""

from __future__ import annotations

import io
import os
import traceback
from enum import IntEnum
from typing import TextIO

import click


class ExitCode(IntEnum):
    """Exit codes of `remy-farm`."""

    INTERNAL = 1
    BAD_INPUT = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    JOB_FAILED = 5
    REFUSED = 6
    INTERRUPTED = 130
    # What a shell reports of a process that SIGPIPE ended.
    BROKEN_PIPE = 141


#: By a package that the command line does without: what needs it, and the extra that has it.
_EXTRAS = {"remy_laboratory": ("this needs the laboratory", "laboratory")}


class Failure(click.ClickException):
    """One sentence for the user, and how to exit."""

    def __init__(self, sentence: str, code: ExitCode) -> None:
        super().__init__(sentence)
        self.code = code


def report(error: BaseException) -> ExitCode:
    """Writes one sentence to standard error; the exit code for it.

    Only an internal error shows a traceback, which is what its report needs.
    """
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        complain("interrupted")
        return ExitCode.INTERRUPTED
    sentence = _sentence(error)
    if sentence is not None:
        complain(sentence)
        return error.code if isinstance(error, Failure) else ExitCode.BAD_INPUT
    traceback.print_exception(error)
    complain(f"internal error ({type(error).__name__}); please report it with the lines above")
    return ExitCode.INTERNAL


def complain(sentence: str) -> None:
    """One line on standard error."""
    click.echo("remy-farm: " + " ".join(sentence.split()), err=True)


def replace_what_cannot_be_shown(stream: TextIO) -> None:
    """Has a stream with a poor encoding replace a character rather than fail."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def _sentence(error: BaseException) -> str | None:
    """What the user can do something about; None for an error of ours."""
    if isinstance(error, click.UsageError):
        return _usage(error)
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, _input_errors()):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in _EXTRAS:
        what, extra = _EXTRAS[error.name]
        return f"{what}, which is not installed: pip install 'remy-farm-services[{extra}]'"
    if isinstance(error, OSError):
        name = f"{os.fspath(error.filename)!s}: " if error.filename is not None else ""
        return f"{name}{error.strerror or error}"
    return None


def _usage(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    if message[1:2].islower():
        # Else it begins with an abbreviation or a name, as in "TLS needs ...".
        message = message[:1].lower() + message[1:]
    if error.ctx is None:
        return message
    return f"{message}; see '{error.ctx.command_path} --help'"


def _input_errors() -> tuple[type[Exception], ...]:
    """Errors whose text is a sentence for the user.

    Imported when something went wrong, so that `--help` does not wait for the simulator.
    """
    from remy_farm.designer import DesignerError
    from remy_farm.files import FileError
    from remy_farm.specification import SpecError
    from remy_simulator import InvalidRequest

    return (DesignerError, FileError, SpecError, InvalidRequest)
