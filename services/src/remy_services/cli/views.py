"""Views of designs and jobs: as words, tables and JSON, and as they go on, on a terminal or not.

A design of this process is shown as if it were a coordinator's job: there is one set of views.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from statistics import fmean
from typing import TYPE_CHECKING, Any

import click
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from remy_farm.v1 import job_pb2, progress_pb2
from remy_services.analysis.wording import (
    count,
    duration,
    enum_name,
    finished_sentence,
    rest_sentence,
    several,
    stop_reason,
    with_error,
)
from remy_services.cli.common import (
    PlainTable,
    print_json,
    print_note,
    print_pairs,
    print_table,
    say,
)
from remy_services.specification import to_yaml
from remy_services.specification.reading import read_yaml
from remy_services.specification.schema import converted, enum_of, fields_of, says_nothing

if TYPE_CHECKING:
    from remy_services.analysis.campaign import MemberRecord

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


def message_tree(message: Message) -> Any:
    """Fields by name, in the order of their declaration, every one of them.

    Numbers are numbers, names of enums are in lower case without the enum's name in front, times
    are RFC 3339 in UTC, and what is not set is None.
    """
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    return {field.name: _field(message, field) for field in fields_of(message)}


def job_tree(job: job_pb2.Job) -> dict[str, Any]:
    """A job; its specification as docs/spec.md has it, and None where it was not sent."""
    tree = {field.name: _field(job, field) for field in fields_of(job) if field.name != "spec"}
    has_spec = job.HasField("spec")
    tree["spec"] = read_yaml(to_yaml(job.spec), "the specification") if has_spec else None
    return tree


def _field(message: Message, field: FieldDescriptor) -> Any:
    return None if says_nothing(message, field) else converted(message, field, _value)


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return message_tree(value)
    if field.enum_type is not None:
        return enum_name(enum_of(field), value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_FAILURES = {
    job_pb2.FAILURE_REASON_INTERNAL: "of a defect of the coordinator",
    job_pb2.FAILURE_REASON_SNAPSHOTS_LOST: "none of its snapshots can be read",
    job_pb2.FAILURE_REASON_OTHER_VERSION: "its snapshot was made with another simulator version",
    job_pb2.FAILURE_REASON_TASK_QUARANTINED: "one of its tasks kept ending its workers",
    job_pb2.FAILURE_REASON_REQUEST_REFUSED: "the simulator refused one of its requests",
    job_pb2.FAILURE_REASON_RESULTS_DIFFER: "workers gave different results for one of its tasks",
    job_pb2.FAILURE_REASON_WORK_LIMIT: "it simulated as many packets as one job may",
}


def state_name(state: job_pb2.JobState) -> str:
    """As in "running"."""
    return enum_name(job_pb2.JobState.DESCRIPTOR, state) or "unknown"


def called(job: job_pb2.Job) -> str:
    """Name and id."""
    return f"{job.name} ({job.id})" if job.id else job.name


def why(job: job_pb2.Job) -> str:
    """What there is to say of the job's state besides its name; may be empty."""
    if job.status_message:
        return job.status_message
    if job.state == job_pb2.JOB_STATE_SUCCEEDED:
        return stop_reason(job.stop_reason)
    if job.state == job_pb2.JOB_STATE_FAILED:
        return _FAILURES.get(job.failure_reason, "for a reason that this client does not know")
    return ""


def state(job: job_pb2.Job) -> str:
    """The job's state and why."""
    reason = why(job)
    name = state_name(job.state)
    return f"{name}: {reason}" if reason else name


def has_begun(job: job_pb2.Job) -> bool:
    """Whether there are any figures yet."""
    return job.progress.step > 0 or job.progress.rules > 0


def place(job: job_pb2.Job) -> str:
    """Epoch, rules and step."""
    now = job.progress
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
    from remy_services.analysis.campaign import EXPLANATION, HEAD, cells

    table = PlainTable(*HEAD, left=2)
    for row, record in enumerate(records, start=1):
        table.add_row(*cells(row, record))
    print_table(table)
    print_note(EXPLANATION)


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
        ("score", score(job)),
        ("work", f"{work}, {duration(now.wall_seconds)}"),
        ("", measures(job)),
    ]


def event_sentence(event: progress_pb2.ProgressEvent) -> str | None:
    """A milestone of a design in words; None for an event that only moves the status."""
    match event.WhichOneof("event"):
        case "rule_split":
            split = event.rule_split
            return f"rule {split.rule} was divided: {several(split.rules, 'rule')}"
        case "rules_merged":
            merged = event.rules_merged
            pairs = "a pair" if merged.pairs == 1 else f"{merged.pairs} pairs"
            return f"{pairs} of rules merged: {several(merged.rules, 'rule')}"
        case "climb_rested":
            return rest_sentence(event.climb_rested.steps)
        case "epoch_finished":
            return _epoch_sentence(event.epoch_finished.record)
        case "design_finished":
            return finished_sentence(event.design_finished)
    return None


def history_sentence(event: job_pb2.JobEvent) -> str | None:
    """An entry of a job's history in words; None for one that only moves the status."""
    match event.WhichOneof("event"):
        case "progress":
            return event_sentence(event.progress)
        case "state_changed":
            changed = event.state_changed
            by = f" by {changed.by}" if changed.by else ""
            message = f": {changed.message}" if changed.message else ""
            return f"{state_name(changed.to)}{by}{message}"
        case "recovered":
            recovered = event.recovered
            return f"taken up after step {recovered.step} by {recovered.coordinator}"
        case "snapshot_refused":
            refused = event.snapshot_refused
            return (
                f"the snapshot of revision {refused.snapshot_revision} is not used: {refused.why}"
            )
        case "budget_changed":
            budget = event.budget_changed
            what = (
                f"priority {budget.priority}" if budget.HasField("priority") else "budget changed"
            )
            return f"{what} by {budget.by}" if budget.by else what
    return None


def _epoch_sentence(record: progress_pb2.EpochRecord) -> str:
    comparison = record.comparison
    gain = (
        f"score {with_error(comparison.before)} -> {with_error(comparison.after)} on the "
        f"validation specimens (gain {with_error(comparison.gain, signed=True)})"
    )
    if record.rules_changed == 0:
        return f"epoch {record.epoch}: nothing to improve"
    if record.HasField("start"):
        return f"start {record.start}: {gain}"
    verdict = "kept" if comparison.accepted else "rolled back"
    return (
        f"epoch {record.epoch}: {several(record.rules_changed, 'rule')} changed, {gain}, {verdict}"
    )


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
            parts = [candidates(job), f"score {score(job)}", measures(job)]
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
            line = sparkline(list(self._scores), _SPARKLINE_WIDTH, bars=self._bars)
            lines += [Text(place(job)), _job_bar(job), Text(f"score {line} {score(job)}")]
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
        from remy_services.client.design_client import FINAL_STATES

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
