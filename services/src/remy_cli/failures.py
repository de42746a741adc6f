"""Error messages and exit codes of the command line."""

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
    # A shell reports this code for a process killed by SIGPIPE.
    BROKEN_PIPE = 141


#: Maps an optional package to the start of the error message and the extra that installs it.
_EXTRAS = {"remy_laboratory": ("this needs the laboratory", "laboratory")}


class Failure(click.ClickException):
    """An error with one sentence for the user and an exit code."""

    def __init__(self, sentence: str, code: ExitCode) -> None:
        super().__init__(sentence)
        self.code = code


def report_error(error: BaseException) -> ExitCode:
    """Prints an error on standard error and returns its exit code.

    Only an internal error prints a traceback, so that users can report it.
    """
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        print_error("interrupted")
        return ExitCode.INTERRUPTED
    sentence = _sentence(error)
    if sentence is not None:
        print_error(sentence)
        return error.code if isinstance(error, Failure) else ExitCode.BAD_INPUT
    traceback.print_exception(error)
    print_error(f"internal error ({type(error).__name__}); please report it with the lines above")
    return ExitCode.INTERNAL


def print_error(sentence: str) -> None:
    """Prints an error as one line on standard error."""
    click.echo("remy-farm: " + " ".join(sentence.split()), err=True)


def replace_unencodable_characters(stream: TextIO) -> None:
    """Makes a stream replace characters that its encoding lacks, instead of raising an error."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def _sentence(error: BaseException) -> str | None:
    """Returns the sentence for an error of the user; None for an internal error."""
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
        # The check keeps an abbreviation at the start, as in "TLS needs ...".
        message = message[:1].lower() + message[1:]
    if error.ctx is None:
        return message
    return f"{message}; see '{error.ctx.command_path} --help'"


def _input_errors() -> tuple[type[Exception], ...]:
    """Returns the error types whose text is a sentence for the user.

    They are imported only after an error, so that `--help` does not load the simulator.
    """
    from remy_farm.designer import DesignerError
    from remy_farm.files import FileError
    from remy_farm.specification import SpecError
    from remy_simulator import InvalidRequest

    return (DesignerError, FileError, SpecError, InvalidRequest)
