"""Shows the progress of a design as one line on standard error."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from remy_farm.analysis.wording import duration, format_estimate, plural
from remy_proto.v1 import progress_pb2


def progress_line(name: str, wanted: bool | None) -> ProgressLine | None:
    """Returns a progress line for a design, or None if it is not wanted.

    If `wanted` is None, there is a line if standard error is a terminal or a notebook.
    """
    shown = sys.stderr.isatty() or "ipykernel" in sys.modules if wanted is None else wanted
    return ProgressLine(name, sys.stderr) if shown else None


class ProgressLine:
    """A line on a stream that is overwritten with the progress of a design."""

    _SECONDS_BETWEEN = 0.2
    _CELLS = 20

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream
        self._shown_at = 0.0
        self._width = 0

    def show(self, known: progress_pb2.JobProgress) -> None:
        """Writes the progress, unless the last write was less than 0.2 s ago."""
        now = time.monotonic()
        if now - self._shown_at < self._SECONDS_BETWEEN:
            return
        self._shown_at = now
        parts = [f"step {known.step}", plural(known.rules, "rule")]
        if known.HasField("score"):
            parts.append(f"score {format_estimate(known.score)}")
        parts.append(duration(known.wall_seconds))
        bar = ""
        if known.HasField("eta_seconds"):
            whole = known.wall_seconds + known.eta_seconds
            share = known.wall_seconds / whole if whole > 0 else 0.0
            filled = round(share * self._CELLS)
            bar = f"[{'#' * filled}{'.' * (self._CELLS - filled)}] "
            parts.append(f"{duration(known.eta_seconds)} left")
        text = f"{self._name}: {bar}{', '.join(parts)}"
        self._width = max(self._width, len(text))
        self._stream.write(f"\r{text:<{self._width}}")
        self._stream.flush()

    def close(self) -> None:
        """Ends the line with a newline."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
