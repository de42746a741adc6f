"""Showing a design's progress: live on a terminal, as plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from remy_farm.v1 import progress_pb2
from remy_services.cli.design_status import DesignStatus, start_sentence
from remy_services.cli.event_wording import event_sentence
from remy_services.embedded import Observer, RunStarted, SilentObserver, StepProgress

_SECONDS_BETWEEN_LINES = 10.0
_REFRESHES_PER_SECOND = 8
_BAR_WIDTH = 30


class PlainView(SilentObserver):
    """A line on standard error for every milestone, and one now and then in between."""

    def __init__(self) -> None:
        self._status = DesignStatus()
        self._said_at_seconds = 0.0

    def started(self, start: RunStarted) -> None:
        _say(start_sentence(start))

    def progress(self, progress: StepProgress) -> None:
        self._status.progress = progress
        if progress.wall_seconds - self._said_at_seconds >= _SECONDS_BETWEEN_LINES:
            self._said_at_seconds = progress.wall_seconds
            status = self._status
            _say(f"{status.place()}: {status.candidates()}, {status.measures()}")

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        self._status.observe(event)
        _say(event_sentence(event))


class LiveView(SilentObserver):
    """Milestones scroll by; the status stays below them and is redrawn in place."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._status = DesignStatus()

    def started(self, start: RunStarted) -> None:
        self._print(start_sentence(start))

    def progress(self, progress: StepProgress) -> None:
        self._status.progress = progress
        self._live.update(self._draw())

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        self._status.observe(event)
        self._print(event_sentence(event))

    def _print(self, sentence: str | None) -> None:
        if sentence is not None:
            self._live.console.print(Text(sentence))

    def _draw(self) -> Group:
        status = self._status
        bar = Table.grid(padding=(0, 1))
        if status.progress is not None:
            done, total = status.progress.candidates_done, status.progress.candidates
            bar.add_row(
                ProgressBar(total=total, completed=done, width=_BAR_WIDTH), status.candidates()
            )
        return Group(Text(status.place(), style="bold"), bar, Text(status.measures()))


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Observer | None]:
    """The view for this process's standard error; None if nothing is to be shown."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield None
    elif console.is_terminal and not console.is_dumb_terminal:
        live = Live(console=console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True)
        with live:
            yield LiveView(live)
    else:
        yield PlainView()


def _say(sentence: str | None) -> None:
    if sentence is not None:
        click.echo(sentence, err=True)
