"""Modules of the tests in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def run_module(name: str, *arguments: str, as_anybody: bool = False) -> str:
    """What a module of the tests prints in a process of its own, which must end well.

    `as_anybody` takes root's right to write everywhere from it.
    """
    command = [sys.executable, "-m", name, *arguments]
    if as_anybody and os.geteuid() == 0:
        command = [*_WITHOUT_RIGHTS, *command]
    done = subprocess.run(
        command,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
