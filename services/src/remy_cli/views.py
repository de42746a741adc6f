"""Views of designs and jobs: as words, tables and JSON, and as they go on, on a terminal or not.

A design of this process is shown as if it were a coordinator's job: there is one set of views.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import click
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from remy_cli.common import (
    PlainTable,
    print_json,
    print_note,
    print_pairs,
    print_table,
    say,
)
from remy_farm.analysis import count, duration, rest_sentence, several, with_error
from remy_proto.v1 import job_pb2
from remy_services.jobs import history_sentence, job_tree, state, state_name

if TYPE_CHECKING:
    from remy_farm.analysis import MemberRecord

BLOCK_BARS = "▁▂▃▄▅▆▇█"
LETTER_BARS = "_.-=^*#@"


def sparkline(values: Sequence[float], width: int, *, bars: str = BLOCK_BARS) -> str:
    """At most `width` bars between the smallest and the largest value.

    Of more values than that, neighbours are drawn as their mean.
    """
    points = _condensed(values, width)
    if not points:
        return ""
    low, high = min(points), max(points)
    if low == high:
        return bars[len(bars) // 2] * len(points)
    scale = (len(bars) - 1) / (high - low)
    return "".join(bars[round((point - low) * scale)] for point in points)


def _condensed(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    ends = [round(number * len(values) / width) for number in range(width + 1)]
    return [fmean(values[first:last]) for first, last in itertools.pairwise(ends)]


def called(job: job_pb2.Job) -> str:
    """Name and id."""
    return f"{job.name} ({job.id})" if job.id else job.name


def has_begun(job: job_pb2.Job) -> bool:
    """Whether there are any figures yet."""
    return job.progress.step > 0 or job.progress.rules > 0


def place(job: job_pb2.Job) -> str:
    """Epoch, rules and step."""
    now = job.progress
    if job.HasField("evaluation"):
        of_all = f" of {len(job.evaluation.parts)}" if job.evaluation.parts else ""
        return f"{now.step}{of_all} parts evaluated"
    return f"epoch {now.epoch}, {several(now.rules, 'rule')}, step {now.step}"


def candidates(job: job_pb2.Job) -> str:
    """Candidates done of those of the step; empty between steps."""
    now = job.progress
    if not now.candidates:
        return ""
    return f"{now.candidates_done} of {several(now.candidates, 'candidate')}"


def score(job: job_pb2.Job, *, digits_only: bool = False) -> str:
    """The score of the table being worked on and what the last epoch gained, as far as known."""
    now = job.progress
    words = with_error(now.score if now.HasField("score") else None)
    if digits_only or not now.HasField("epoch_gain"):
        return words
    return f"{words}, gain of the last epoch {with_error(now.epoch_gain, signed=True)}"


def measures(job: job_pb2.Job) -> str:
    """Packets a second, time used and left, workers, cost."""
    now = job.progress
    parts = []
    if now.packets_per_second > 0:
        parts.append(f"{count(now.packets_per_second)} packets/s")
    parts.append(f"{duration(now.cpu_seconds)} CPU")
    if now.HasField("estimated_cost"):
        parts.append(f"cost {now.estimated_cost:.2f}")
    if now.workers:
        parts.append(several(now.workers, "worker"))
    if now.HasField("eta_seconds"):
        parts.append(f"ETA {duration(now.eta_seconds)}")
    if now.recoveries:
        parts.append(f"recovered {several(now.recoveries, 'time')}")
    return ", ".join(parts)


def share_done(job: job_pb2.Job) -> str:
    """How much of the search is done, where that is known."""
    if job.state == job_pb2.JOB_STATE_SUCCEEDED or not job.progress.HasField("share_done"):
        return "-"
    return f"{job.progress.share_done:.0%}"


def moment(when: Timestamp) -> str:
    """A time by the clock on this machine's wall."""
    local = datetime.fromtimestamp(when.ToNanoseconds() / 1e9).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S")


_COLUMNS = ("name", "id", "state", "owner", "epoch", "rules", "step", "done", "score", "CPU time")


def job_table(jobs: Iterable[job_pb2.Job]) -> PlainTable:
    """One row a job, in the order given."""
    table = PlainTable(*_COLUMNS, "submitted", left=4)
    for job in jobs:
        now = job.progress
        table.add_row(
            job.name,
            job.id,
            state_name(job.state),
            job.owner,
            str(now.epoch),
            str(now.rules),
            str(now.step),
            share_done(job),
            score(job, digits_only=True),
            duration(now.cpu_seconds),
            moment(job.create_time) if job.HasField("create_time") else "-",
        )
    return table


def print_members(records: Sequence[MemberRecord]) -> None:
    """The members of a campaign side by side, and what their figures are."""
    from remy_farm.analysis import MEMBER_EXPLANATION, MEMBER_HEAD, member_cells

    table = PlainTable(*MEMBER_HEAD, left=2)
    for row, record in enumerate(records, start=1):
        table.add_row(*member_cells(row, record))
    print_table(table)
    print_note(MEMBER_EXPLANATION)


def print_job(job: job_pb2.Job, *, as_json: bool) -> None:
    """All that is known of it."""
    if as_json:
        print_json(job_tree(job))
    else:
        print_pairs(_pairs(job))


def print_change(job: job_pb2.Job, *, as_json: bool) -> None:
    """What became of a request to change it."""
    if as_json:
        print_json(job_tree(job))
    else:
        click.echo(f"{called(job)} is {state(job)}")


def _pairs(job: job_pb2.Job) -> list[tuple[str, str]]:
    pairs = [
        ("job", called(job)),
        ("state", state(job)),
        ("owner", job.owner),
        ("priority", f"{job.priority}, weight {job.weight:g}"),
    ]
    if job.campaign:
        pairs.append(("campaign", job.campaign))
    if job.queue_name:
        pairs.append(("queue", job.queue_name))
    if job.HasField("fork"):
        pairs.append(("forked from", f"{job.fork.job_id}, epoch {job.fork.epoch}"))
    if has_begun(job):
        pairs += _figures(job)
    for name, field in (
        ("submitted", "create_time"),
        ("started", "start_time"),
        ("ended", "end_time"),
    ):
        if job.HasField(field):
            pairs.append((name, moment(getattr(job, field))))
    return pairs


def _figures(job: job_pb2.Job) -> list[tuple[str, str]]:
    now = job.progress
    where = place(job)
    if now.HasField("share_done"):
        where += f", {now.share_done:.0%} done"
    work = f"{count(now.simulated_packets)} packets in {count(now.evaluations)} evaluations"
    rests = [("", rest_sentence(now.resting_steps))] if now.resting_steps else []
    return [
        ("progress", where),
        *rests,
        *([] if job.HasField("evaluation") else [("score", score(job))]),
        ("work", f"{work}, {duration(now.wall_seconds)}"),
        ("", measures(job)),
    ]


def _scored(job: job_pb2.Job) -> str:
    return "" if job.HasField("evaluation") else f"score {score(job)}"


_SECONDS_BETWEEN_LINES = 10.0
_REFRESHES_PER_SECOND = 8
_BAR_WIDTH = 30
_SPARKLINE_WIDTH = 30
_SCORES_KEPT = 2000
# Of a campaign's jobs: what fits on a small screen.
_MOST_ROWS = 16


class ProgressView:
    """Is told how a design, a job or a campaign's jobs go on; this one shows nothing."""

    def say(self, sentence: str) -> None:
        """A milestone."""

    def job(self, job: job_pb2.Job) -> None:
        """How far the one job is."""

    def event(self, event: job_pb2.JobEvent, *, is_past: bool = False) -> None:
        """An entry of its history; `is_past` if it was there before the view."""
        sentence = None if is_past else history_sentence(event)
        if sentence is not None:
            self.say(sentence)

    def campaign(self, jobs: Sequence[job_pb2.Job]) -> None:
        """How far all jobs of a campaign are."""

    def lost(self, why: str) -> None:
        """The coordinator has gone away."""

    def back(self) -> None:
        """It is there again."""


class PlainView(ProgressView):
    """A line on standard error for every milestone, and one now and then in between."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at_seconds = clock()
        self._states: dict[str, job_pb2.JobState] = {}
        self._is_lost = False

    def say(self, sentence: str) -> None:
        say(sentence)

    def job(self, job: job_pb2.Job) -> None:
        now = self._clock()
        if has_begun(job) and now - self._said_at_seconds >= _SECONDS_BETWEEN_LINES:
            self._said_at_seconds = now
            parts = [candidates(job), _scored(job), measures(job)]
            say(f"{place(job)}: {', '.join(part for part in parts if part)}")

    def campaign(self, jobs: Sequence[job_pb2.Job]) -> None:
        self._is_lost = False
        for job in jobs:
            if self._states.get(job.id) != job.state:
                self._states[job.id] = job.state
                say(f"{job.name} is {state(job)}")

    def lost(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            say(f"{why}; waiting for it")

    def back(self) -> None:
        self._is_lost = False
        say("the coordinator is back")


class LiveView(ProgressView):
    """Milestones scroll by; what is under way stays below them and is redrawn in place."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._drawn: RenderableType = ""
        self._trouble: str | None = None
        #: Means by step, oldest first.
        self._scores: deque[float] = deque(maxlen=_SCORES_KEPT)
        can_draw = live.console.encoding.lower().startswith("utf")
        self._bars = BLOCK_BARS if can_draw else LETTER_BARS

    def say(self, sentence: str) -> None:
        self._live.console.print(Text(sentence))

    def job(self, job: job_pb2.Job) -> None:
        lines: list[RenderableType] = [Text(f"{called(job)} {state(job)}", style="bold")]
        if has_begun(job):
            lines += [Text(place(job)), _job_bar(job)]
            if not job.HasField("evaluation"):
                line = sparkline(list(self._scores), _SPARKLINE_WIDTH, bars=self._bars)
                lines.append(Text(f"score {line} {score(job)}"))
            lines.append(Text(measures(job)))
        self._draw(Group(*lines))

    def event(self, event: job_pb2.JobEvent, *, is_past: bool = False) -> None:
        step = event.progress.step_finished
        if event.progress.HasField("step_finished") and step.HasField("score"):
            self._scores.append(step.score.mean)
        super().event(event, is_past=is_past)

    def campaign(self, jobs: Sequence[job_pb2.Job]) -> None:
        self._trouble = None
        # A design without a coordinator need not wait for what talks to one.
        from remy_services.client import FINAL_STATES

        under_way = [job for job in jobs if job.state not in FINAL_STATES]
        under_way.sort(key=lambda job: not has_begun(job))
        ended = len(jobs) - len(under_way)
        counts = Counter(job.state for job in jobs)
        states = ", ".join(f"{counts[each]} {state_name(each)}" for each in sorted(counts))
        words = f"{ended} of {len(jobs)} ended: {states}"
        self._draw(Group(job_table(under_way[:_MOST_ROWS]), _bar(ended, len(jobs), words)))

    def lost(self, why: str) -> None:
        self._trouble = f"{why}; waiting for it"
        self._draw(self._drawn)

    def back(self) -> None:
        self._trouble = None
        self._draw(self._drawn)

    def _draw(self, drawn: RenderableType) -> None:
        self._drawn = drawn
        trouble = [] if self._trouble is None else [Text(self._trouble, style="red")]
        self._live.update(Group(drawn, *trouble))


def _job_bar(job: job_pb2.Job) -> Table:
    """Of the whole search where its length is known, else of the running step."""
    now = job.progress
    if now.HasField("share_done"):
        words = ", ".join(filter(None, (share_done(job), candidates(job))))
        return _bar(now.share_done, 1.0, words)
    return _bar(now.candidates_done, max(1, now.candidates), candidates(job))


def _bar(done: float, total: float, words: str) -> Table:
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=total, completed=done, width=_BAR_WIDTH), words)
    return bar


@contextmanager
def progress_view(*, quiet: bool) -> Iterator[ProgressView]:
    """The view for this process's standard error."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield ProgressView()
    elif console.is_terminal and not console.is_dumb_terminal:
        with Live(
            console=console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True
        ) as live:
            yield LiveView(live)
    else:
        yield PlainView()


#: Between two lines of a meter.
_SECONDS_BETWEEN_LINES_OF_A_METER = 30.0


class Meter(Protocol):
    """Says how far a long work is."""

    def work(self, name: str) -> None:
        """What is begun."""

    def advance(self, done: float) -> None:
        """How much of all is done."""


class _Silent:
    def work(self, name: str) -> None:
        """Says nothing."""

    def advance(self, done: float) -> None:
        """Says nothing."""


class _Lines:
    """A line now and then, for what is no terminal."""

    def __init__(self, total: float) -> None:
        self._total = total
        self._began = self._said = time.monotonic()
        self._name = ""

    def work(self, name: str) -> None:
        self._name = name

    def advance(self, done: float) -> None:
        now = time.monotonic()
        if now - self._said >= _SECONDS_BETWEEN_LINES_OF_A_METER and self._total > 0:
            self._said = now
            share = done / self._total
            left = (now - self._began) * (1 - share) / share if share > 0 else 0.0
            say(f"{self._name}: {share:.0%} of all, about {duration(left)} left")


class _Bar:
    """A bar in place, with the time that is left."""

    def __init__(self, progress: Progress, total: float) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=max(total, 1e-9))

    def work(self, name: str) -> None:
        self._progress.update(self._task, description=name)

    def advance(self, done: float) -> None:
        self._progress.update(self._task, completed=done)


@contextmanager
def meter(total: float, *, quiet: bool) -> Iterator[Meter]:
    """The meter for this process's standard error."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield _Silent()
    elif console.is_terminal and not console.is_dumb_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            yield _Bar(progress, total)
    else:
        yield _Lines(total)
