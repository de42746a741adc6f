"""Logs of a worker: one event a line, and every line names the worker."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from remy_workers.telemetry.logs import set_up_logs


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    yield
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()


def test_an_event_is_one_line_of_json() -> None:
    stream = io.StringIO()
    set_up_logs("w1", stream=stream)
    with structlog.contextvars.bound_contextvars(lease_id=4):
        structlog.get_logger().info("a task\nof two lines", job_id="j")
    structlog.get_logger().debug("not at this level")
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert event.pop("time")
    assert event == {
        "message": "a task\nof two lines",
        "level": "info",
        "worker_id": "w1",
        "lease_id": 4,
        "job_id": "j",
    }


def test_a_terminal_gets_text() -> None:
    stream = io.StringIO()
    set_up_logs("w1", as_json=False, stream=stream)
    structlog.get_logger().warning("lost the coordinator")
    assert "lost the coordinator" in stream.getvalue()
    assert not stream.getvalue().startswith("{")
