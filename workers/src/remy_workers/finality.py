"""Which ends of a call are the last."""

from __future__ import annotations

from typing import Final

import grpc

from remy_workers.exit_codes import ExitCode

#: There is no use in calling again after these; how the worker ends then.
FINAL: Final = {
    grpc.StatusCode.UNAUTHENTICATED: ExitCode.NOT_ALLOWED,
    grpc.StatusCode.PERMISSION_DENIED: ExitCode.NOT_ALLOWED,
    grpc.StatusCode.FAILED_PRECONDITION: ExitCode.REFUSED,
    grpc.StatusCode.UNIMPLEMENTED: ExitCode.REFUSED,
    grpc.StatusCode.INVALID_ARGUMENT: ExitCode.INTERNAL,
}
