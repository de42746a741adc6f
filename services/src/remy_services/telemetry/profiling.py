"""Profiles: where the time of a process goes, written when somebody asks for it."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog
import yappi

from remy_farm.files import FileError, write_file

_LOG = structlog.stdlib.get_logger("profile")
_MOST_FUNCTIONS = 60


class Profiler:
    """Profiles all threads for a while, when it is told to, and writes what it saw to a file."""

    def __init__(
        self,
        folder: Path,
        step_seconds: Callable[[], Mapping[str, float]],
        *,
        seconds: float = 30.0,
    ) -> None:
        """Files go to `folder`, which exists; `step_seconds` tells the seconds spent by phase.

        It may raise TimeoutError or RuntimeError: a profile is made all the same, without them.
        """
        self._folder = folder
        self._step_seconds = step_seconds
        self._seconds = seconds
        self._thread: threading.Thread | None = None

    def start(self) -> bool:
        """Begins in a thread of its own; False if a profile is being made already."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self._thread = threading.Thread(target=self._run, name="profile", daemon=True)
        self._thread.start()
        return True

    def wait(self) -> None:
        """Returns when no profile is being made."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            _LOG.info("profile begun", seconds=self._seconds)
            path = self.take()
            _LOG.info("profile written", path=str(path))
        except FileError as error:
            _LOG.error("profile lost", why=str(error))

    def take(self) -> Path:
        """Profiles for the time that was asked for; the file with the result. Raises FileError."""
        before = self._phases()
        yappi.clear_stats()
        yappi.set_clock_type("cpu")
        yappi.start(builtins=False, profile_threads=True)
        try:
            # Not a wait for anything: this is how long the profile is to be.
            time.sleep(self._seconds)
        finally:
            yappi.stop()
        text = step_report(before, self._phases(), self._seconds) + "\n" + _functions()
        yappi.clear_stats()
        path = self._folder / f"profile-{time.time_ns()}.txt"
        write_file(path, text)
        return path

    def _phases(self) -> Mapping[str, float] | None:
        try:
            return dict(self._step_seconds())
        except (TimeoutError, RuntimeError):
            return None


def step_report(
    before: Mapping[str, float] | None, after: Mapping[str, float] | None, wall_seconds: float
) -> str:
    """Where the time of steps went between two readings, as a table; None: it was not read."""
    if before is None or after is None:
        return "Where the time of steps went is not known: the event loop was held up.\n"
    spent = {phase: seconds - before.get(phase, 0.0) for phase, seconds in after.items()}
    total = sum(spent.values())
    lines = [
        f"Where the time of steps went, in {wall_seconds:g} s (docs/how-to/observability.md):",
        "",
    ]
    for phase, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        share = 100 * seconds / total if total > 0 else 0.0
        lines.append(f"  {phase:<12} {seconds:10.3f} s  {share:5.1f} %")
    return "\n".join(lines) + "\n"


def _functions() -> str:
    """The functions that took most CPU time, of all threads."""
    text = io.StringIO()
    text.write("CPU time by function, callees included, the largest first:\n\n")
    text.write("  calls      own s    total s  function\n")
    statistics = sorted(yappi.get_func_stats(), key=lambda each: -each.ttot)
    for each in statistics[:_MOST_FUNCTIONS]:
        name = f"{each.name} ({Path(each.module).name}:{each.lineno})"
        text.write(f"  {each.ncall:>7} {each.tsub:10.3f} {each.ttot:10.3f}  {name}\n")
    text.write("\nCPU time by thread:\n\n")
    for thread in sorted(yappi.get_thread_stats(), key=lambda each: -each.ttot):
        text.write(f"  {thread.ttot:10.3f} s  {thread.name}\n")
    return text.getvalue()
