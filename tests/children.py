"""Starts child processes that do not outlive the process that runs the tests."""

from __future__ import annotations

import shutil

_SETPRIV = shutil.which("setpriv")


def killed_with_parent(*command: object) -> list[str]:
    """Returns the command with a prefix that has Linux kill it when its parent dies.

    Without that, an endless design would run forever after the tests were killed. The prefix is the
    program setpriv and not a `preexec_fn`, because code between fork and exec can crash in a
    process with threads, as gRPC's fork handlers have done. On other systems the command is
    unchanged.
    """
    arguments = [str(argument) for argument in command]
    return [_SETPRIV, "--pdeathsig", "KILL", "--", *arguments] if _SETPRIV else arguments
