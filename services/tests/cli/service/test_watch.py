"""Watching through restarts of the coordinator, on a terminal and elsewhere."""

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
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Coordinator]:
    """A coordinator that may be killed."""
    coordinator = Coordinator(tmp_path / "coordinator")
    coordinator.start()
    monkeypatch.setenv("REMY_FARM_COORDINATOR", coordinator.address)
    monkeypatch.setenv("REMY_FARM_PATIENCE", str(TIMEOUT_SECONDS))
    yield coordinator
    coordinator.close()


def start(*words: object, **more: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        killed_with_parent(REMY_FARM, *(str(word) for word in words)),
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )


def steps_of(job: dict[str, Any]) -> int:
    return 0 if job["progress"] is None else int(job["progress"]["step"])


def next_line(process: "subprocess.Popen[str]", words: str) -> None:
    """Reads standard error up to a line with these words."""
    assert process.stderr is not None
    too_late = threading.Timer(TIMEOUT_SECONDS, process.kill)
    too_late.start()
    try:
        assert any(words in line for line in process.stderr), f"never said {words!r}"
    finally:
        too_late.cancel()


@pytest.mark.usefixtures("farm")
def test_milestones_are_lines_where_there_is_no_terminal(run: Any, spec_file: Path) -> None:
    result = run("submit", spec_file, "--name", "lines", "--watch")
    assert result.exit_code == 0
    said = result.stderr.splitlines()
    assert said[0].startswith("lines (")
    order = ["pending", "running", "epoch 0: ", "epoch 1: ", "finished after 2 epochs", "succeeded"]
    places = [next(n for n, line in enumerate(said) if line.startswith(word)) for word in order]
    assert places == sorted(places)
    assert "\x1b" not in result.stderr
    assert result.stdout.startswith("job ")


@pytest.mark.usefixtures("farm")
def test_the_past_is_shown_on_request_only(run: Any, run_json: RunJson, spec_file: Path) -> None:
    job = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    assert run("watch", job).stderr == ""
    assert "epoch 0: " in run("watch", job, "--history").stderr


@pytest.mark.usefixtures("farm")
def test_a_cancelled_job_is_a_failed_watch(
    run: Any, run_json: RunJson, endless_spec: Path, until: Until
) -> None:
    job = run_json("submit", endless_spec)["id"]
    until(job, lambda found: steps_of(found) > 0)
    run_json("cancel", job)
    result = run("watch", job, "--json")
    assert result.exit_code == 5
    assert json.loads(result.stdout)["state"] == "cancelled"


def test_a_watch_outlasts_the_coordinator(
    own: Coordinator, endless_spec: Path, run_json: RunJson, until: Until
) -> None:
    """Killed, stopped and started again, it is the same watch, and in the end nothing is missing
    from the history that it showed."""
    job = run_json("submit", endless_spec)["id"]
    with start("watch", job, "--history", "--json") as watch:
        next_line(watch, "running")
        for end in (own.kill, own.stop):
            made = steps_of(until(job, lambda found: steps_of(found) > 0))
            end()
            next_line(watch, "retrying")
            own.start()
            next_line(watch, "the coordinator is reachable again")
            until(job, lambda found, made=made: steps_of(found) > made)  # type: ignore[misc]
        run_json("cancel", job)
        stdout, stderr = watch.communicate(timeout=TIMEOUT_SECONDS)
    assert watch.returncode == 5, stderr
    assert json.loads(stdout)["state"] == "cancelled"
    assert json.loads(stdout)["progress"]["recoveries"] >= 1


def test_ctrl_c_leaves_the_job_running(
    own: Coordinator, endless_spec: Path, run_json: RunJson, until: Until
) -> None:
    job = run_json("submit", endless_spec)["id"]
    with start("watch", job, "--history") as watch:
        next_line(watch, "running")
        watch.send_signal(signal.SIGINT)
        stdout, stderr = watch.communicate(timeout=TIMEOUT_SECONDS)
    assert watch.returncode == 130, stderr
    assert stdout == ""
    assert f"the job continues; to watch again: remy-farm watch {job}" in stderr.splitlines()
    made = steps_of(run_json("status", job))
    until(job, lambda found: found["state"] == "running" and steps_of(found) > made)


def test_a_terminal_shows_where_the_job_stands(
    own: Coordinator, endless_spec: Path, run_json: RunJson
) -> None:
    job = run_json("submit", endless_spec)["id"]
    ours, theirs = pty.openpty()
    wanted = [b"\x1b[", b"small (", b"running", b"epoch ", b"step ", b"score ", b"packets/s"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with (
        open(ours, "rb", buffering=0) as screen,  # noqa: PTH123 - a descriptor has no path
        start(*("watch", job), stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as watch,
    ):
        os.close(theirs)
        shown = b""
        told = False
        try:
            while chunk := screen.read(4096):
                shown += chunk
                # The job goes on for as long as it takes until all is drawn.
                if not told and all(words in shown for words in wanted):
                    watch.send_signal(signal.SIGINT)
                    told = True
        except OSError:  # How Linux reports that the other end was closed.
            pass
        assert watch.wait(timeout=TIMEOUT_SECONDS) == 130
    assert told, shown.decode()


@pytest.mark.usefixtures("farm")
def test_delete_asks_on_a_terminal(run_json: RunJson, spec_file: Path, run: Any) -> None:
    job = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    for answer, exit_code in ((b"n\n", 130), (b"y\n", 0)):
        ours, theirs = pty.openpty()
        with start("delete", job, stdin=theirs) as process:
            os.write(ours, answer)
            process.communicate(timeout=TIMEOUT_SECONDS)
        os.close(theirs)
        os.close(ours)
        assert process.returncode == exit_code
        assert run("status", job).exit_code == (0 if exit_code else 6)


def test_a_submission_that_meets_a_restart_makes_one_job(
    own: Coordinator, spec_file: Path, run_json: RunJson
) -> None:
    own.stop()
    with start("submit", spec_file, "--name", "once", "--json") as submit:
        next_line(submit, "trying again")
        own.start()
        stdout, stderr = submit.communicate(timeout=TIMEOUT_SECONDS)
    assert submit.returncode == 0, stderr
    assert [each["id"] for each in run_json("list", "--name", "once")["jobs"]] == [
        json.loads(stdout)["id"]
    ]
