"""Showing a watched job: live on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from remy_farm.v1 import job_pb2
from remy_services.cli.service import job_words
from remy_services.cli.service.sparkline import BLOCKS, PLAIN, sparkline
from remy_services.cli.service.watch_status import WatchStatus, history_sentence

_SECONDS_BETWEEN_LINES = 10.0
_REFRESHES_PER_SECOND = 4
_BAR_WIDTH = 30
_SPARKLINE_WIDTH = 30


class WatchView(Protocol):
    """Is told what a watch finds."""

    def job(self, job: job_pb2.Job) -> None:
        """How far the job is."""

    def event(self, event: job_pb2.JobEvent, *, is_past: bool) -> None:
        """An entry of its history; `is_past` if it was there before the watch began."""

    def lost(self, why: str) -> None:
        """The coordinator has gone away."""

    def back(self) -> None:
        """It is there again."""


class SilentView:
    """Shows nothing."""

    def job(self, job: job_pb2.Job) -> None:
        pass

    def event(self, event: job_pb2.JobEvent, *, is_past: bool) -> None:
        pass

    def lost(self, why: str) -> None:
        pass

    def back(self) -> None:
        pass


class PlainView:
    """A line on standard error for every milestone, and one now and then in between."""

    def __init__(self) -> None:
        self._said_at_seconds = time.monotonic()

    def job(self, job: job_pb2.Job) -> None:
        now = time.monotonic()
        if job_words.has_begun(job) and now - self._said_at_seconds >= _SECONDS_BETWEEN_LINES:
            self._said_at_seconds = now
            parts = [job_words.candidates(job), f"score {job_words.score(job)}"]
            parts.append(job_words.measures(job))
            _say(f"{job_words.place(job)}: {', '.join(part for part in parts if part)}")

    def event(self, event: job_pb2.JobEvent, *, is_past: bool) -> None:
        sentence = None if is_past else history_sentence(event)
        if sentence is not None:
            _say(sentence)

    def lost(self, why: str) -> None:
        _say(f"{why}; waiting for it")

    def back(self) -> None:
        _say("the coordinator is back")


class LiveView:
    """Milestones scroll by; the status stays below them and is redrawn in place."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._status = WatchStatus()
        can_draw = live.console.encoding.lower().startswith("utf")
        self._bars = BLOCKS if can_draw else PLAIN

    def job(self, job: job_pb2.Job) -> None:
        self._status.job = job
        self._live.update(self._draw(job))

    def event(self, event: job_pb2.JobEvent, *, is_past: bool) -> None:
        self._status.observe(event)
        sentence = None if is_past else history_sentence(event)
        if sentence is not None:
            self._live.console.print(Text(sentence))

    def lost(self, why: str) -> None:
        self._status.trouble = f"{why}; waiting for it"
        self._redraw()

    def back(self) -> None:
        self._status.trouble = None
        self._redraw()

    def _redraw(self) -> None:
        if self._status.job is not None:
            self._live.update(self._draw(self._status.job))

    def _draw(self, job: job_pb2.Job) -> Group:
        lines: list[Text | Table] = [
            Text(f"{job_words.called(job)} {job_words.state(job)}", style="bold")
        ]
        if job_words.has_begun(job):
            lines += [Text(job_words.place(job)), self._bar(job), self._score(job)]
            lines.append(Text(job_words.measures(job)))
        if self._status.trouble is not None:
            lines.append(Text(self._status.trouble, style="red"))
        return Group(*lines)

    def _bar(self, job: job_pb2.Job) -> Table:
        """Of the whole search where its length is known, else of the running step."""
        now = job.progress
        bar = Table.grid(padding=(0, 1))
        if now.HasField("share_done"):
            drawn = ProgressBar(total=1.0, completed=now.share_done, width=_BAR_WIDTH)
            words = [job_words.share_done(job), job_words.candidates(job)]
        else:
            drawn = ProgressBar(
                total=max(1, now.candidates), completed=now.candidates_done, width=_BAR_WIDTH
            )
            words = [job_words.candidates(job)]
        bar.add_row(drawn, ", ".join(word for word in words if word))
        return bar

    def _score(self, job: job_pb2.Job) -> Text:
        line = sparkline(list(self._status.scores), _SPARKLINE_WIDTH, bars=self._bars)
        return Text(f"score {line} {job_words.score(job)}")


@contextmanager
def watch_view(*, quiet: bool) -> Iterator[WatchView]:
    """The view for this process's standard error."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield SilentView()
    elif console.is_terminal and not console.is_dumb_terminal:
        with Live(
            console=console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True
        ) as live:
            yield LiveView(live)
    else:
        yield PlainView()


def _say(sentence: str) -> None:
    click.echo(sentence, err=True)
