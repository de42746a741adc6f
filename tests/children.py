"""Child processes of tests: none of them outlives the process that runs the tests."""

from __future__ import annotations

import shutil

_SETPRIV = shutil.which("setpriv")


def ending_with_its_test(*command: object) -> list[str]:
    """The command as one that is killed when its parent ends, however that ends.

    A design that goes on until it is told to stop would otherwise go on for ever where the tests
    are killed. Only Linux can do this. A program does it and becomes the command: what runs between
    fork and exec in a process with threads (`preexec_fn`) may end it, as gRPC's handlers have.
    """
    words = [str(word) for word in command]
    return [_SETPRIV, "--pdeathsig", "KILL", "--", *words] if _SETPRIV else words
