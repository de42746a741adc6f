"""How far a measurement has got, as lines on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from remy_services.explain import Progress

_SECONDS_BETWEEN_LINES = 2.0


class ProgressLines:
    """A line now and then; none where the work is done before one is due."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at_seconds = clock()

    def __call__(self, progress: Progress) -> None:
        """Says how far the work has got, unless it has just been said."""
        now = self._clock()
        if now - self._said_at_seconds >= _SECONDS_BETWEEN_LINES:
            self._said_at_seconds = now
            click.echo(f"{progress.part}: {progress.tried} of {progress.tables} tried", err=True)
