"""Showing the jobs of a campaign: live on a terminal, as plain lines elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
from remy_services.cli.service.job_table import job_table
from remy_services.client import FINAL_STATES

_REFRESHES_PER_SECOND = 4
_BAR_WIDTH = 30
# What fits on a small screen.
_MOST_ROWS = 16


class CampaignView(Protocol):
    """Is told what a watch finds."""

    def jobs(self, jobs: Sequence[job_pb2.Job]) -> None:
        """How far all of them are."""

    def lost(self, why: str) -> None:
        """The coordinator has gone away."""


class SilentCampaignView:
    """Shows nothing."""

    def jobs(self, jobs: Sequence[job_pb2.Job]) -> None:
        pass

    def lost(self, why: str) -> None:
        pass


class PlainCampaignView:
    """A line on standard error whenever a job's state changes."""

    def __init__(self) -> None:
        self._states: dict[str, job_pb2.JobState] = {}
        self._is_lost = False

    def jobs(self, jobs: Sequence[job_pb2.Job]) -> None:
        self._is_lost = False
        for job in jobs:
            if self._states.get(job.id) != job.state:
                self._states[job.id] = job.state
                click.echo(f"{job.name} is {job_words.state(job)}", err=True)

    def lost(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            click.echo(f"{why}; waiting for it", err=True)


class LiveCampaignView:
    """The jobs that are under way, and how many have ended, redrawn in place."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._jobs: Sequence[job_pb2.Job] = ()

    def jobs(self, jobs: Sequence[job_pb2.Job]) -> None:
        self._jobs = jobs
        self._live.update(self._draw())

    def lost(self, why: str) -> None:
        self._live.update(Group(self._draw(), Text(f"{why}; waiting for it", style="red")))

    def _draw(self) -> Group:
        ended = [job for job in self._jobs if job.state in FINAL_STATES]
        under_way = [job for job in self._jobs if job.state not in FINAL_STATES]
        under_way.sort(key=lambda job: not job_words.has_begun(job))
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=max(1, len(self._jobs)), completed=len(ended), width=_BAR_WIDTH),
            f"{len(ended)} of {len(self._jobs)} ended: {_states(self._jobs)}",
        )
        return Group(job_table(under_way[:_MOST_ROWS]), bar)


def _states(jobs: Sequence[job_pb2.Job]) -> str:
    counts = Counter(job.state for job in jobs)
    return ", ".join(f"{counts[state]} {job_words.state_name(state)}" for state in sorted(counts))


@contextmanager
def campaign_view(*, quiet: bool) -> Iterator[CampaignView]:
    """The view for this process's standard error."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield SilentCampaignView()
    elif console.is_terminal and not console.is_dumb_terminal:
        with Live(
            console=console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True
        ) as live:
            yield LiveCampaignView(live)
    else:
        yield PlainCampaignView()
