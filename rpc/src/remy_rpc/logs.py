"""Set up logs: one event per line, as JSON unless on a terminal, without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO

import structlog

__all__ = [
    "LEVELS",
    "hide_secrets",
    "report_lines",
    "set_up_logs",
    "without_secrets",
]

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
#: Levels that `set_up_logs` accepts.
LEVELS = tuple(_LEVELS)

_SECRET_KEY = re.compile(r"token|authorization|password|secret|credential", re.IGNORECASE)
_USER_IN_ADDRESS = re.compile(r"(?<=://)[^/@\s]*@")
_BEARER = re.compile(r"(?i)\bbearer\s+\S+")
_HIDDEN = "[hidden]"

_Event = MutableMapping[str, Any]


def set_up_logs(
    level: str = "info",
    *,
    as_json: bool | None = None,
    stream: TextIO | None = None,
    **always: str,
) -> None:
    """Makes this process log to `stream`, by default standard error.

    If `as_json` is None, lines are JSON unless the stream is a terminal. The fields in `always` are
    added to every line. Lines from the standard library's `logging` have the same form. Fields
    bound by `structlog.contextvars.bound_contextvars(job_id=...)` are added to every line inside
    that context.
    """

    def with_always(_: Any, __: str, event: _Event) -> _Event:
        # Not a context variable, since each thread has its own.
        return {**always, **event}

    target = stream or sys.stderr
    if as_json is None:
        as_json = not target.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        with_always,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    last: list[structlog.typing.Processor] = (
        [
            structlog.processors.format_exc_info,
            hide_secrets,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(),
        ]
        if as_json
        else [hide_secrets, structlog.dev.ConsoleRenderer(colors=target.isatty())]
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(_LEVELS[level])
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def report_lines(report: Callable[[float, str, str], None]) -> None:
    """Also passes every later line to `report`, as Unix time in seconds, level and text.

    Secrets are removed from the text. Call it after `set_up_logs`.
    """
    logging.getLogger().addHandler(_Reporter(report))


class _Reporter(logging.Handler):
    def __init__(self, report: Callable[[float, str, str], None]) -> None:
        super().__init__()
        self._report = report
        self.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[structlog.contextvars.merge_contextvars],
                processors=[
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.format_exc_info,
                    hide_secrets,
                    _as_text,
                ],
            )
        )

    def emit(self, record: logging.LogRecord) -> None:
        self._report(record.created, record.levelname.lower(), self.format(record))


def _as_text(_: Any, __: str, event: _Event) -> str:
    omitted = ("event", "time", "level", "worker_id")
    named = [f"{key}={value}" for key, value in event.items() if key not in omitted]
    return " ".join([str(event.get("event", "")), *named])


def hide_secrets(_: Any, __: str, event: _Event) -> _Event:
    """A structlog processor that replaces values whose key or form marks them as secret."""
    for key, value in event.items():
        if _SECRET_KEY.search(key):
            event[key] = _HIDDEN
        elif isinstance(value, str):
            event[key] = without_secrets(value)
    return event


def without_secrets(text: str) -> str:
    """Removes bearer tokens, and user and password of URLs, from a text."""
    return _BEARER.sub(f"Bearer {_HIDDEN}", _USER_IN_ADDRESS.sub(f"{_HIDDEN}@", text))
