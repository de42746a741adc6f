"""Measures the peak memory of a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# A process inherits the peak memory of its parent. A bare Python starts the program, because its
# own peak is small: some 8 MiB, below which nothing can be measured.
_LAUNCHER = """
import os, sys
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_mebibytes(program: Path, *arguments: str) -> float:
    """Runs a program and returns its maximum resident set size in MiB.

    Raises CalledProcessError if the program fails.
    """
    printed = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, program, *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return int(printed) / 1024
