"""Runs test modules in child processes."""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_DROP_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def run_module(name: str, *arguments: str, unprivileged: bool = False) -> str:
    """Runs a test module in a child process, and returns its standard output.

    `unprivileged` drops root's capability to bypass file permissions.
    """
    command = [sys.executable, "-m", name, *arguments]
    if unprivileged and os.geteuid() == 0:
        command = [*_DROP_CAPABILITIES, *command]
    done = subprocess.run(
        command,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
