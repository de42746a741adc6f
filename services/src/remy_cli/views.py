"""Shows designs and jobs as text, tables and JSON, and their progress on or off a terminal.

A design of this process is shown like a coordinator's job, so that both share the same views.
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
    print_status,
    print_table,
)
from remy_farm.analysis import count, duration, format_estimate, plural, stall_sentence
from remy_proto.v1 import job_pb2
from remy_services.jobs import describe_history, describe_state, job_dict, state_name

if TYPE_CHECKING:
    from remy_farm.analysis import MemberRecord

BLOCK_BARS = "▁▂▃▄▅▆▇█"
LETTER_BARS = "_.-=^*#@"


def sparkline(values: Sequence[float], width: int, *, bars: str = BLOCK_BARS) -> str:
    """Draws values as bars, scaled between the smallest and the largest value.

    More than `width` values are averaged in `width` groups of neighbours.
    """
    points = _downsample(values, width)
    if not points:
        return ""
    low, high = min(points), max(points)
    if low == high:
        return bars[len(bars) // 2] * len(points)
    scale = (len(bars) - 1) / (high - low)
    return "".join(bars[round((point - low) * scale)] for point in points)


def _downsample(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    ends = [round(number * len(values) / width) for number in range(width + 1)]
    return [fmean(values[first:last]) for first, last in itertools.pairwise(ends)]


def job_label(job: job_pb2.Job) -> str:
    """Returns a job's name with its id in parentheses."""
    return f"{job.name} ({job.id})" if job.id else job.name


def has_begun(job: job_pb2.Job) -> bool:
    """Returns whether the job has made any progress."""
    return job.progress.step > 0 or job.progress.rules > 0


def position_text(job: job_pb2.Job) -> str:
    """Describes how far a job is: epoch, rules and step, or the parts evaluated."""
    progress = job.progress
    if job.HasField("evaluation"):
        total = f" of {len(job.evaluation.parts)}" if job.evaluation.parts else ""
        return f"{progress.step}{total} parts evaluated"
    return f"epoch {progress.epoch}, {plural(progress.rules, 'rule')}, step {progress.step}"


def candidates_text(job: job_pb2.Job) -> str:
    """Describes how many of the step's candidates are evaluated; empty between steps."""
    progress = job.progress
    if not progress.candidates:
        return ""
    return f"{progress.candidates_done} of {plural(progress.candidates, 'candidate')}"


def score_text(job: job_pb2.Job, *, with_gain: bool = True) -> str:
    """Describes the current table's score and, if `with_gain`, the gain of the last epoch."""
    progress = job.progress
    text = format_estimate(progress.score if progress.HasField("score") else None)
    if not with_gain or not progress.HasField("epoch_gain"):
        return text
    return f"{text}, gain of the last epoch {format_estimate(progress.epoch_gain, signed=True)}"


def resources_text(job: job_pb2.Job) -> str:
    """Describes packets per second, CPU time, cost, workers and the time left."""
    progress = job.progress
    parts = []
    if progress.packets_per_second > 0:
        parts.append(f"{count(progress.packets_per_second)} packets/s")
    parts.append(f"{duration(progress.cpu_seconds)} CPU")
    if progress.HasField("estimated_cost"):
        parts.append(f"cost {progress.estimated_cost:.2f}")
    if progress.workers:
        parts.append(plural(progress.workers, "worker"))
    if progress.HasField("eta_seconds"):
        parts.append(f"ETA {duration(progress.eta_seconds)}")
    if progress.recoveries:
        parts.append(f"recovered {plural(progress.recoveries, 'time')}")
    return ", ".join(parts)


def share_done_text(job: job_pb2.Job) -> str:
    """Returns the percentage of the search that is done; "-" if unknown or finished."""
    if job.state == job_pb2.JOB_STATE_SUCCEEDED or not job.progress.HasField("share_done"):
        return "-"
    return f"{job.progress.share_done:.0%}"


def local_time(when: Timestamp) -> str:
    """Formats a time in this machine's time zone."""
    local = datetime.fromtimestamp(when.ToNanoseconds() / 1e9).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S")


_COLUMNS = ("name", "id", "state", "owner", "epoch", "rules", "step", "done", "score", "CPU time")


def job_table(jobs: Iterable[job_pb2.Job]) -> PlainTable:
    """Returns a table with one row per job, in the given order."""
    table = PlainTable(*_COLUMNS, "submitted", left=4)
    for job in jobs:
        progress = job.progress
        table.add_row(
            job.name,
            job.id,
            state_name(job.state),
            job.owner,
            str(progress.epoch),
            str(progress.rules),
            str(progress.step),
            share_done_text(job),
            score_text(job, with_gain=False),
            duration(progress.cpu_seconds),
            local_time(job.create_time) if job.HasField("create_time") else "-",
        )
    return table


def print_members(records: Sequence[MemberRecord]) -> None:
    """Prints a table that compares a campaign's members, and explains its columns."""
    from remy_farm.analysis import MEMBER_EXPLANATION, MEMBER_HEAD, member_cells

    table = PlainTable(*MEMBER_HEAD, left=2)
    for row, record in enumerate(records, start=1):
        table.add_row(*member_cells(row, record))
    print_table(table)
    print_note(MEMBER_EXPLANATION)


def print_job(job: job_pb2.Job, *, as_json: bool) -> None:
    """Prints everything known about a job."""
    if as_json:
        print_json(job_dict(job))
    else:
        print_pairs(_pairs(job))


def print_change(job: job_pb2.Job, *, as_json: bool) -> None:
    """Prints the state of a job after a request to change it."""
    if as_json:
        print_json(job_dict(job))
    else:
        click.echo(state_sentence(job_label(job), job))


def state_sentence(label: str, job: job_pb2.Job) -> str:
    """Returns a sentence such as "demo is paused" or "demo has succeeded: ..."."""
    has_ended_by_itself = job.state in (job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED)
    return f"{label} {'has' if has_ended_by_itself else 'is'} {describe_state(job)}"


def _pairs(job: job_pb2.Job) -> list[tuple[str, str]]:
    pairs = [
        ("job", job_label(job)),
        ("state", describe_state(job)),
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
        pairs += _progress_pairs(job)
    for name, field in (
        ("submitted", "create_time"),
        ("started", "start_time"),
        ("ended", "end_time"),
    ):
        if job.HasField(field):
            pairs.append((name, local_time(getattr(job, field))))
    return pairs


def _progress_pairs(job: job_pb2.Job) -> list[tuple[str, str]]:
    progress = job.progress
    position = position_text(job)
    if progress.HasField("share_done"):
        position += f", {progress.share_done:.0%} done"
    packets, evaluations = count(progress.simulated_packets), count(progress.evaluations)
    pause = [("", stall_sentence(progress.resting_steps))] if progress.resting_steps else []
    return [
        ("progress", position),
        *pause,
        *([] if job.HasField("evaluation") else [("score", score_text(job))]),
        (
            "work",
            f"{packets} packets in {evaluations} evaluations, {duration(progress.wall_seconds)}",
        ),
        ("", resources_text(job)),
    ]


def _score_item(job: job_pb2.Job) -> str:
    return "" if job.HasField("evaluation") else f"score {score_text(job)}"


_SECONDS_BETWEEN_LINES = 10.0
_REFRESHES_PER_SECOND = 8
_BAR_WIDTH = 30
_SPARKLINE_WIDTH = 30
_MAX_SCORES = 2000
#: Rows of a campaign's table that fit on a small screen.
_MAX_ROWS = 16


class ProgressView:
    """Receives the progress of a design, a job or a campaign. This base class shows nothing."""

    def milestone(self, sentence: str) -> None:
        """Shows a sentence about a milestone."""

    def show_job(self, job: job_pb2.Job) -> None:
        """Shows the current state of a job."""

    def show_event(self, event: job_pb2.JobEvent, *, is_past: bool = False) -> None:
        """Shows an entry of the job's history. `is_past` marks entries older than the view."""
        sentence = None if is_past else describe_history(event)
        if sentence is not None:
            self.milestone(sentence)

    def show_campaign(self, jobs: Sequence[job_pb2.Job]) -> None:
        """Shows the current states of a campaign's jobs."""

    def connection_lost(self, why: str) -> None:
        """Shows that the coordinator is unreachable and is being retried."""

    def connection_restored(self) -> None:
        """Shows that the coordinator is reachable again."""


class PlainView(ProgressView):
    """Prints a line on standard error for every milestone, and a status line every ten seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_line_seconds = clock()
        self._states: dict[str, job_pb2.JobState] = {}
        self._is_lost = False

    def milestone(self, sentence: str) -> None:
        print_status(sentence)

    def show_job(self, job: job_pb2.Job) -> None:
        now = self._clock()
        if has_begun(job) and now - self._last_line_seconds >= _SECONDS_BETWEEN_LINES:
            self._last_line_seconds = now
            parts = [candidates_text(job), _score_item(job), resources_text(job)]
            print_status(f"{position_text(job)}: {', '.join(part for part in parts if part)}")

    def show_campaign(self, jobs: Sequence[job_pb2.Job]) -> None:
        self._is_lost = False
        for job in jobs:
            if self._states.get(job.id) != job.state:
                self._states[job.id] = job.state
                print_status(state_sentence(job.name, job))

    def connection_lost(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            print_status(f"{why}; retrying")

    def connection_restored(self) -> None:
        self._is_lost = False
        print_status("the coordinator is reachable again")


class LiveView(ProgressView):
    """Prints milestones on a terminal and redraws the current status below them."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._content: RenderableType = ""
        self._problem: str | None = None
        #: Mean score of each step, oldest first.
        self._scores: deque[float] = deque(maxlen=_MAX_SCORES)
        can_draw = live.console.encoding.lower().startswith("utf")
        self._bars = BLOCK_BARS if can_draw else LETTER_BARS

    def milestone(self, sentence: str) -> None:
        self._live.console.print(Text(sentence))

    def show_job(self, job: job_pb2.Job) -> None:
        lines: list[RenderableType] = [
            Text(f"{job_label(job)} {describe_state(job)}", style="bold")
        ]
        if has_begun(job):
            lines += [Text(position_text(job)), _job_bar(job)]
            if not job.HasField("evaluation"):
                line = sparkline(list(self._scores), _SPARKLINE_WIDTH, bars=self._bars)
                lines.append(Text(f"score {line} {score_text(job)}"))
            lines.append(Text(resources_text(job)))
        self._draw(Group(*lines))

    def show_event(self, event: job_pb2.JobEvent, *, is_past: bool = False) -> None:
        step = event.progress.step_finished
        if event.progress.HasField("step_finished") and step.HasField("score"):
            self._scores.append(step.score.mean)
        super().show_event(event, is_past=is_past)

    def show_campaign(self, jobs: Sequence[job_pb2.Job]) -> None:
        self._problem = None
        # Imported here because a local design does not need gRPC, which is slow to import.
        from remy_services.client import FINAL_STATES

        unfinished = [job for job in jobs if job.state not in FINAL_STATES]
        unfinished.sort(key=lambda job: not has_begun(job))
        ended = len(jobs) - len(unfinished)
        counts = Counter(job.state for job in jobs)
        states = ", ".join(f"{counts[each]} {state_name(each)}" for each in sorted(counts))
        text = f"{ended} of {len(jobs)} ended: {states}"
        self._draw(Group(job_table(unfinished[:_MAX_ROWS]), _bar(ended, len(jobs), text)))

    def connection_lost(self, why: str) -> None:
        self._problem = f"{why}; retrying"
        self._draw(self._content)

    def connection_restored(self) -> None:
        self._problem = None
        self._draw(self._content)

    def _draw(self, content: RenderableType) -> None:
        self._content = content
        problem = [] if self._problem is None else [Text(self._problem, style="red")]
        self._live.update(Group(content, *problem))


def _job_bar(job: job_pb2.Job) -> Table:
    """Draws the progress of the search if its length is known, otherwise of the current step."""
    progress = job.progress
    if progress.HasField("share_done"):
        text = ", ".join(filter(None, (share_done_text(job), candidates_text(job))))
        return _bar(progress.share_done, 1.0, text)
    return _bar(progress.candidates_done, max(1, progress.candidates), candidates_text(job))


def _bar(done: float, total: float, text: str) -> Table:
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=total, completed=done, width=_BAR_WIDTH), text)
    return bar


@contextmanager
def progress_view(*, quiet: bool) -> Iterator[ProgressView]:
    """Yields the view that fits this process's standard error."""
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


#: Time between two lines of a meter.
_SECONDS_BETWEEN_METER_LINES = 30.0


class Meter(Protocol):
    """Shows how much of a long computation is done."""

    def start_task(self, name: str) -> None:
        """Shows the name of the task that starts."""

    def set_done(self, done: float) -> None:
        """Shows how much of the total is done, in the meter's unit."""


class _SilentMeter:
    def start_task(self, name: str) -> None:
        """Shows nothing."""

    def set_done(self, done: float) -> None:
        """Shows nothing."""


class _LineMeter:
    """Prints a line every 30 seconds, for output that is not a terminal."""

    def __init__(self, total: float) -> None:
        self._total = total
        self._start = self._last_line = time.monotonic()
        self._name = ""

    def start_task(self, name: str) -> None:
        self._name = name

    def set_done(self, done: float) -> None:
        now = time.monotonic()
        if now - self._last_line >= _SECONDS_BETWEEN_METER_LINES and self._total > 0:
            self._last_line = now
            share = done / self._total
            left = (now - self._start) * (1 - share) / share if share > 0 else 0.0
            print_status(f"{self._name}: {share:.0%} done, about {duration(left)} left")


class _BarMeter:
    """Draws a progress bar with the estimated time left."""

    def __init__(self, progress: Progress, total: float) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=max(total, 1e-9))

    def start_task(self, name: str) -> None:
        self._progress.update(self._task, description=name)

    def set_done(self, done: float) -> None:
        self._progress.update(self._task, completed=done)


@contextmanager
def progress_meter(total: float, *, quiet: bool) -> Iterator[Meter]:
    """Yields the meter that fits this process's standard error."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield _SilentMeter()
    elif console.is_terminal and not console.is_dumb_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            yield _BarMeter(progress, total)
    else:
        yield _LineMeter(total)
