"""Tests profiles: busy functions, and time by phase of steps."""

from __future__ import annotations

import threading
from pathlib import Path

from remy_services.telemetry.profiling import Profiler, step_report


def a_spinning_function(stop: threading.Event) -> None:
    for _ in range(2000):
        if stop.is_set():
            return


def test_profiles_include_threads_started_earlier(tmp_path: Path) -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            a_spinning_function(stop)

    thread = threading.Thread(target=work)
    thread.start()
    readings = iter([{"search": 1.0, "store": 0.0}, {"search": 4.0, "store": 1.0}])
    try:
        path = Profiler(tmp_path, lambda: next(readings), seconds=0.5).take()
    finally:
        stop.set()
        thread.join()
    text = path.read_text()
    assert path.parent == tmp_path
    assert "a_spinning_function (test_profiling.py:" in text
    assert "search            3.000 s   75.0 %" in text


def test_only_one_profile_runs_at_a_time(tmp_path: Path) -> None:
    profiler = Profiler(tmp_path, dict, seconds=0.2)
    assert profiler.start()
    assert not profiler.start()
    profiler.wait()
    assert len(list(tmp_path.glob("profile-*.txt"))) == 1
    assert profiler.start()
    profiler.wait()


def test_an_unwritable_folder_does_not_break_the_profiler(tmp_path: Path) -> None:
    profiler = Profiler(tmp_path / "missing", dict, seconds=0.01)
    assert profiler.start()
    profiler.wait()
    assert profiler.start()
    profiler.wait()


def test_a_blocked_loop_leaves_out_only_the_phases(tmp_path: Path) -> None:
    def blocked() -> dict[str, float]:
        raise TimeoutError

    text = Profiler(tmp_path, blocked, seconds=0.01).take().read_text()
    assert "is unknown: the event loop was blocked" in text
    assert "CPU time by thread" in text


def test_a_report_without_steps_has_zero_shares() -> None:
    assert "0.0 %" in step_report({"search": 1.0}, {"search": 1.0}, 30)
