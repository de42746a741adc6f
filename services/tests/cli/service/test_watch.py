"""Tests `watch` across restarts of the coordinator, with and without a terminal."""

import json
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.tests.cli.service.real_coordinator import (
    REMY_FARM,
    TIMEOUT_SECONDS,
    Coordinator,
)
from tests.children import killed_with_parent

RunJson = Callable[..., dict[str, Any]]
Until = Callable[[str, Callable[[dict[str, Any]], bool]], dict[str, Any]]


@pytest.fixture
def coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Coordinator]:
    """A coordinator that the test may kill."""
    coordinator = Coordinator(tmp_path / "coordinator")
    coordinator.start()
    monkeypatch.setenv("REMY_FARM_COORDINATOR", coordinator.address)
    monkeypatch.setenv("REMY_FARM_PATIENCE", str(TIMEOUT_SECONDS))
    yield coordinator
    coordinator.close()


def start(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        killed_with_parent(REMY_FARM, *(str(word) for word in arguments)),
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def steps_of(job: dict[str, Any]) -> int:
    return 0 if job["progress"] is None else int(job["progress"]["step"])


def next_line(process: "subprocess.Popen[str]", text: str) -> None:
    """Reads standard error until a line contains this text."""
    assert process.stderr is not None
    timer = threading.Timer(TIMEOUT_SECONDS, process.kill)
    timer.start()
    try:
        assert any(text in line for line in process.stderr), f"no line with {text!r}"
    finally:
        timer.cancel()


@pytest.mark.usefixtures("farm")
def test_milestones_are_printed_without_a_terminal(run: Any, spec_file: Path) -> None:
    result = run("submit", spec_file, "--name", "lines", "--watch")
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines[0].startswith("lines (")
    order = ["pending", "running", "epoch 0: ", "epoch 1: ", "finished after 2 epochs", "succeeded"]
    line_numbers = [
        next(n for n, line in enumerate(lines) if line.startswith(word)) for word in order
    ]
    assert line_numbers == sorted(line_numbers)
    assert "\x1b" not in result.stderr
    assert result.stdout.startswith("job ")


@pytest.mark.usefixtures("farm")
def test_history_option_prints_the_past(run: Any, run_json: RunJson, spec_file: Path) -> None:
    job = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    assert run("watch", job).stderr == ""
    assert "epoch 0: " in run("watch", job, "--history").stderr


@pytest.mark.usefixtures("farm")
def test_watch_of_a_cancelled_job_exits_with_5(
    run: Any, run_json: RunJson, endless_spec: Path, until: Until
) -> None:
    job = run_json("submit", endless_spec)["id"]
    until(job, lambda state: steps_of(state) > 0)
    run_json("cancel", job)
    result = run("watch", job, "--json")
    assert result.exit_code == 5
    assert json.loads(result.stdout)["state"] == "cancelled"


def test_watch_continues_across_coordinator_restarts(
    coordinator: Coordinator, endless_spec: Path, run_json: RunJson, until: Until
) -> None:
    """After the coordinator was killed, stopped and restarted, the printed history is complete."""
    job = run_json("submit", endless_spec)["id"]
    with start("watch", job, "--history", "--json") as watch:
        next_line(watch, "running")
        for stop in (coordinator.kill, coordinator.stop):
            steps = steps_of(until(job, lambda state: steps_of(state) > 0))
            stop()
            next_line(watch, "retrying")
            coordinator.start()
            next_line(watch, "the coordinator is reachable again")
            until(job, lambda state, steps=steps: steps_of(state) > steps)  # type: ignore[misc]
        run_json("cancel", job)
        stdout, stderr = watch.communicate(timeout=TIMEOUT_SECONDS)
    assert watch.returncode == 5, stderr
    assert json.loads(stdout)["state"] == "cancelled"
    assert json.loads(stdout)["progress"]["recoveries"] >= 1


def test_ctrl_c_ends_the_watch_but_not_the_job(
    coordinator: Coordinator, endless_spec: Path, run_json: RunJson, until: Until
) -> None:
    job = run_json("submit", endless_spec)["id"]
    with start("watch", job, "--history") as watch:
        next_line(watch, "running")
        watch.send_signal(signal.SIGINT)
        stdout, stderr = watch.communicate(timeout=TIMEOUT_SECONDS)
    assert watch.returncode == 130, stderr
    assert stdout == ""
    assert f"the job continues; to watch again: remy-farm watch {job}" in stderr.splitlines()
    steps = steps_of(run_json("status", job))
    until(job, lambda state: state["state"] == "running" and steps_of(state) > steps)


def test_terminal_shows_the_progress(
    coordinator: Coordinator, endless_spec: Path, run_json: RunJson
) -> None:
    job = run_json("submit", endless_spec)["id"]
    parent_fd, child_fd = pty.openpty()
    expected = [b"\x1b[", b"small (", b"running", b"epoch ", b"step ", b"score ", b"packets/s"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with (
        open(parent_fd, "rb", buffering=0) as screen,  # noqa: PTH123 - a descriptor has no path
        start(
            *("watch", job), stdout=subprocess.DEVNULL, stderr=child_fd, env=environment
        ) as watch,
    ):
        os.close(child_fd)
        output = b""
        interrupted = False
        try:
            while chunk := screen.read(4096):
                output += chunk
                # The job runs until the whole status is drawn.
                if not interrupted and all(text in output for text in expected):
                    watch.send_signal(signal.SIGINT)
                    interrupted = True
        except OSError:  # Linux reports a closed other end as an error.
            pass
        assert watch.wait(timeout=TIMEOUT_SECONDS) == 130
    assert interrupted, output.decode()


@pytest.mark.usefixtures("farm")
def test_delete_asks_for_confirmation_on_a_terminal(
    run_json: RunJson, spec_file: Path, run: Any
) -> None:
    job = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    for answer, exit_code in ((b"n\n", 130), (b"y\n", 0)):
        parent_fd, child_fd = pty.openpty()
        with start("delete", job, stdin=child_fd) as process:
            os.write(parent_fd, answer)
            process.communicate(timeout=TIMEOUT_SECONDS)
        os.close(child_fd)
        os.close(parent_fd)
        assert process.returncode == exit_code
        assert run("status", job).exit_code == (0 if exit_code else 6)


def test_submission_during_a_restart_creates_one_job(
    coordinator: Coordinator, spec_file: Path, run_json: RunJson
) -> None:
    coordinator.stop()
    with start("submit", spec_file, "--name", "once", "--json") as submit:
        next_line(submit, "trying again")
        coordinator.start()
        stdout, stderr = submit.communicate(timeout=TIMEOUT_SECONDS)
    assert submit.returncode == 0, stderr
    assert [each["id"] for each in run_json("list", "--name", "once")["jobs"]] == [
        json.loads(stdout)["id"]
    ]
