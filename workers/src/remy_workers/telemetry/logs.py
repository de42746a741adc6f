"""Logs of a worker: one event a line, JSON unless somebody reads them on a terminal."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
#: What `set_up_logs` takes for its level.
LEVELS = tuple(_LEVELS)


def set_up_logs(
    worker_id: str,
    level: str = "info",
    *,
    as_json: bool | None = None,
    stream: TextIO | None = None,
) -> None:
    """Has this process log to `stream`, by default standard error; every line names the worker.

    `as_json` None means JSON unless the stream is a terminal. A worker logs no message of the
    wire and none of its settings, so that there is no secret to hide.
    """
    target = stream or sys.stderr

    def named(
        _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        # Not a context variable: those are each thread's own.
        return {"worker_id": worker_id, **event}

    if as_json is None:
        as_json = not target.isatty()
    last: list[structlog.typing.Processor] = (
        [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(),
        ]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=target.isatty())]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            named,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
