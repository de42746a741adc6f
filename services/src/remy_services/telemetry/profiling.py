"""CPU profiles of the running process, written to files on request."""

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
    """Profiles all threads for a fixed time and writes the result to a file."""

    def __init__(
        self,
        folder: Path,
        phase_seconds: Callable[[], Mapping[str, float]],
        *,
        seconds: float = 30.0,
    ) -> None:
        """Profiles are written to the existing `folder`.

        `phase_seconds` returns the cumulative seconds that steps have spent in each phase. If it
        raises TimeoutError or RuntimeError, the profile is written without them.
        """
        self._folder = folder
        self._phase_seconds = phase_seconds
        self._seconds = seconds
        self._thread: threading.Thread | None = None

    def start(self) -> bool:
        """Starts a profile in the background; returns False if one is already running."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self._thread = threading.Thread(target=self._run, name="profile", daemon=True)
        self._thread.start()
        return True

    def wait(self) -> None:
        """Waits until no profile is running."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            _LOG.info("profile started", seconds=self._seconds)
            path = self.take()
            _LOG.info("profile written", path=str(path))
        except FileError as error:
            _LOG.error("profile could not be written", why=str(error))

    def take(self) -> Path:
        """Takes a profile and returns its file. Raises FileError."""
        before = self._phases()
        yappi.clear_stats()
        yappi.set_clock_type("cpu")
        yappi.start(builtins=False, profile_threads=True)
        try:
            # The profile covers this time.
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
            return dict(self._phase_seconds())
        except (TimeoutError, RuntimeError):
            return None


def step_report(
    before: Mapping[str, float] | None, after: Mapping[str, float] | None, wall_seconds: float
) -> str:
    """Formats the time per phase between two readings; None means that a reading failed."""
    if before is None or after is None:
        return "Time by phase of steps is unknown: the event loop was blocked.\n"
    spent = {phase: seconds - before.get(phase, 0.0) for phase, seconds in after.items()}
    total = sum(spent.values())
    lines = [
        f"Time by phase of steps during {wall_seconds:g} s (docs/how-to/observability.md):",
        "",
    ]
    for phase, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        share = 100 * seconds / total if total > 0 else 0.0
        lines.append(f"  {phase:<12} {seconds:10.3f} s  {share:5.1f} %")
    return "\n".join(lines) + "\n"


def _functions() -> str:
    """Formats the functions with the most CPU time over all threads, and CPU time by thread."""
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
