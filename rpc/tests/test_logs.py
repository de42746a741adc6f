"""Logs have one event per line and contain no secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as some

from remy_rpc.logs import hide_secrets, report_lines, set_up_logs, without_secrets


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_event_is_one_line_of_json_with_bound_fields() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream)
    log = structlog.stdlib.get_logger()
    with structlog.contextvars.bound_contextvars(job_id="j1", step=4):
        log.info("two\nlines", worker_id="w")
    log.debug("not at this level")
    (event,) = lines(stream)
    assert event.pop("time")
    assert event == {
        "message": "two\nlines",
        "level": "info",
        "job_id": "j1",
        "step": 4,
        "worker_id": "w",
    }


def test_tracebacks_and_standard_logging_are_one_line_each() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream)
    try:
        raise ValueError("a defect")
    except ValueError:
        structlog.stdlib.get_logger().exception("it failed")
    logging.getLogger("grpc").warning("odd %s", "thing")
    defect, library = lines(stream)
    assert "a defect" in str(defect["exception"])
    assert library["message"] == "odd thing"


def test_constant_fields_are_on_every_line() -> None:
    stream = io.StringIO()
    set_up_logs(stream=stream, worker_id="w1")
    with structlog.contextvars.bound_contextvars(lease_id=4):
        structlog.get_logger().info("a task\nof two lines", job_id="j")
    structlog.get_logger().debug("not at this level")
    (event,) = lines(stream)
    assert event.pop("time")
    assert event == {
        "message": "a task\nof two lines",
        "level": "info",
        "worker_id": "w1",
        "lease_id": 4,
        "job_id": "j",
    }


def test_reported_lines_contain_no_secrets() -> None:
    stream, reported = io.StringIO(), []
    set_up_logs(stream=stream, worker_id="w")
    report_lines(lambda seconds, level, text: reported.append((seconds > 1e9, level, text)))
    structlog.stdlib.get_logger().warning("not connected", why="a reason", token="t0ps3cret")
    logging.getLogger("library").error("went %s", "wrong")
    structlog.stdlib.get_logger().debug("not at this level")
    assert reported == [
        (True, "warning", "not connected why=a reason token=[hidden]"),
        (True, "error", "went wrong"),
    ]
    assert len(lines(stream)) == 2


def test_terminal_gets_text() -> None:
    stream = io.StringIO()
    set_up_logs(as_json=False, stream=stream)
    structlog.stdlib.get_logger().info("ready", address="127.0.0.1:1")
    assert "ready" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_lines_below_the_level_are_dropped() -> None:
    stream = io.StringIO()
    set_up_logs("warning", stream=stream)
    structlog.stdlib.get_logger().info("quiet")
    assert not stream.getvalue()


@given(some.text(alphabet=some.characters(categories=["L", "N"]), min_size=6))
def test_no_secret_is_logged(secret: str) -> None:
    event = hide_secrets(
        None,
        "info",
        {
            "event": f"refused Bearer {secret}",
            "store": f"redis://user:{secret}@store:6379/0",
            "worker_token": secret,
            "Authorization": f"Bearer {secret}",
        },
    )
    assert f" {secret}" not in str(event)
    assert f":{secret}@" not in str(event)
    assert event["worker_token"] == event["Authorization"] == "[hidden]"


def test_urls_without_a_secret_are_unchanged() -> None:
    text = "redis://store:6379/0 and ann@example.org"
    assert without_secrets(text) == text
