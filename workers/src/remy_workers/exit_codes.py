"""How a worker ends."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of `remy-worker`, the same where `remy-farm` has them too."""

    #: Nothing was left to do, or the worker was told to end, or its machine is taken away.
    DONE = 0
    #: An error of ours. A task that causes it is not blamed on anything else.
    INTERNAL = 1
    #: Flags, addresses or files that cannot be right.
    BAD_INPUT = 2
    #: Only of a driver of Ray: the cluster cannot be reached, or is lost.
    UNREACHABLE = 3
    #: The token is missing or wrong, or its role is another.
    NOT_ALLOWED = 4
    #: The coordinator will not have this worker: another simulator, quarantine, no workers at all.
    REFUSED = 6
