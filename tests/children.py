"""Child processes of tests: none of them outlives the process that runs the tests."""

from __future__ import annotations

import ctypes
import signal
import sys

# Looked up before any fork: the function below runs in a child that has one thread only.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def ends_with_its_test() -> None:
    """For `preexec_fn` of Popen: the child is killed when its parent ends, however that ends.

    A design that goes on until it is told to stop would otherwise go on for ever where the tests
    are killed. Linux alone can do this.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
