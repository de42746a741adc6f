"""`remy-farm watch`: a job, or all jobs of a campaign, until they end."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import click
import grpc
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.analysis.campaign import CampaignRecord, MemberRecord, compare_member
from remy_services.cli import job_views
from remy_services.cli.common import json_option, print_json, threads_option
from remy_services.cli.connecting import JobName, connected, quiet_option
from remy_services.cli.design_views import event_sentence, print_members, reason_name
from remy_services.cli.failures import ExitCode
from remy_services.cli.job_views import (
    BLOCKS,
    PLAIN,
    job_table,
    job_tree,
    print_job,
    sparkline,
    state_name,
)
from remy_services.client import (
    FINAL_STATES,
    ConnectionBack,
    ConnectionLost,
    DesignClient,
    Refused,
    Unreachable,
    watch_job,
)
from remy_services.evaluation import LocalEvaluator
from remy_services.remycc import RemyCC, from_json
from remy_services.specification import content_digest
from remy_services.specification.reading import Tree, read_yaml

_SCORES_KEPT = 2000


class WatchStatus:
    """The latest that is known of a job."""

    def __init__(self) -> None:
        self.job: job_pb2.Job | None = None
        #: Why there is no connection; None if there is one.
        self.trouble: str | None = None
        #: Means by step, oldest first.
        self.scores: deque[float] = deque(maxlen=_SCORES_KEPT)

    def observe(self, event: job_pb2.JobEvent) -> None:
        """Takes note of an entry of the history."""
        step = event.progress.step_finished
        if event.progress.HasField("step_finished") and step.HasField("score"):
            self.scores.append(step.score.mean)


def history_sentence(event: job_pb2.JobEvent) -> str | None:
    """An entry in words; None for one that only moves the status."""
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
            by = event.budget_changed.by
            return f"budget changed by {by}" if by else "budget changed"
    return None


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
        if job_views.has_begun(job) and now - self._said_at_seconds >= _SECONDS_BETWEEN_LINES:
            self._said_at_seconds = now
            parts = [job_views.candidates(job), f"score {job_views.score(job)}"]
            parts.append(job_views.measures(job))
            _say(f"{job_views.queue_place(job)}: {', '.join(part for part in parts if part)}")

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
            Text(f"{job_views.called(job)} {job_views.state(job)}", style="bold")
        ]
        if job_views.has_begun(job):
            lines += [Text(job_views.queue_place(job)), self._bar(job), self._score(job)]
            lines.append(Text(job_views.measures(job)))
        if self._status.trouble is not None:
            lines.append(Text(self._status.trouble, style="red"))
        return Group(*lines)

    def _bar(self, job: job_pb2.Job) -> Table:
        """Of the whole search where its length is known, else of the running step."""
        now = job.progress
        bar = Table.grid(padding=(0, 1))
        if now.HasField("share_done"):
            drawn = ProgressBar(total=1.0, completed=now.share_done, width=_BAR_WIDTH)
            words = [job_views.share_done(job), job_views.candidates(job)]
        else:
            drawn = ProgressBar(
                total=max(1, now.candidates), completed=now.candidates_done, width=_BAR_WIDTH
            )
            words = [job_views.candidates(job)]
        bar.add_row(drawn, ", ".join(word for word in words if word))
        return bar

    def _score(self, job: job_pb2.Job) -> Text:
        line = sparkline(list(self._status.scores), _SPARKLINE_WIDTH, bars=self._bars)
        return Text(f"score {line} {job_views.score(job)}")


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


# What draws the score's course; more would take long to send of an old job.
_ENTRIES_OF_THE_PAST = 500


def watch_one(
    client: DesignClient, name: str, view: WatchView, *, with_past: bool = False
) -> job_pb2.Job:
    """The job as it ended. Raises ServiceError.

    What happened before is shown if `with_past`, and otherwise is known to the view alone.
    """
    job = client.get(name)
    view.job(job)
    past = 0 if with_past else job.revision
    after = 0 if with_past else max(0, job.revision - _ENTRIES_OF_THE_PAST)
    for update in watch_job(client.connection, job.id, after_revision=after):
        match update:
            case job_pb2.Job():
                job = update
                view.job(job)
            case job_pb2.JobEvent():
                view.event(update, is_past=update.revision <= past)
            case ConnectionLost():
                view.lost(update.why)
            case ConnectionBack():
                view.back()
    return job


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
                click.echo(f"{job.name} is {job_views.state(job)}", err=True)

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
        under_way.sort(key=lambda job: not job_views.has_begun(job))
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=max(1, len(self._jobs)), completed=len(ended), width=_BAR_WIDTH),
            f"{len(ended)} of {len(self._jobs)} ended: {_states(self._jobs)}",
        )
        return Group(job_table(under_way[:_MOST_ROWS]), bar)


def _states(jobs: Sequence[job_pb2.Job]) -> str:
    counts = Counter(job.state for job in jobs)
    return ", ".join(f"{counts[state]} {job_views.state_name(state)}" for state in sorted(counts))


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


@dataclass(frozen=True)
class CampaignResult:
    """The jobs as they ended, and the comparison of those that have a RemyCC to show."""

    campaign: str
    jobs: Sequence[job_pb2.Job]
    members: Sequence[MemberRecord]

    def tree(self) -> dict[str, Any]:
        """As --json prints it."""
        records = CampaignRecord({member.name: member for member in self.members})
        return {
            "campaign": self.campaign,
            "jobs": [job_tree(job) for job in self.jobs],
            **records.tree(),
        }


def campaign_result(
    client: DesignClient, campaign: str, jobs: Sequence[job_pb2.Job], *, threads: int
) -> CampaignResult:
    """Fetches the RemyCCs and tries each on its own fresh specimens, here.

    Raises ServiceError, and RemyCCError for a table that is none.
    """
    ended = [
        job for job in jobs if job.state != job_pb2.JOB_STATE_FAILED and job_views.has_begun(job)
    ]
    settings = _settings(client, ended)
    members = []
    with closing(LocalEvaluator(threads)) as evaluator:
        for job in ended:
            spec = client.get(job.id).spec
            file = client.remycc(job.id, epoch=None, file_format=messages.REMY_CC_FORMAT_JSON)
            table = RemyCC.from_message(from_json(file.content)).table
            comparison = compare_member(spec, table, evaluate=evaluator.evaluate)
            members.append(
                MemberRecord(
                    name=job.name,
                    settings=settings.get(job.id, {}),
                    spec_digest=content_digest(spec),
                    reason=_reason(job),
                    steps=job.progress.step,
                    epochs=job.progress.epoch,
                    rules=table.rule_count,
                    cpu_seconds=job.progress.cpu_seconds,
                    wall_seconds=job.progress.wall_seconds,
                    comparison=comparison,
                )
            )
    return CampaignResult(campaign, jobs, members)


def print_campaign(result: CampaignResult) -> None:
    """For people."""
    if result.members:
        print_members(result.members)
    for job in result.jobs:
        if job.state != job_pb2.JOB_STATE_SUCCEEDED:
            click.echo(f"{job_views.called(job)} is {job_views.state(job)}")
    click.echo(f"\nto keep a RemyCC: remy-farm fetch {result.jobs[0].id} -o FILE.json")


def _reason(job: job_pb2.Job) -> str:
    return reason_name(job.stop_reason) if job.stop_reason else job_views.state_name(job.state)


def _settings(client: DesignClient, jobs: Sequence[job_pb2.Job]) -> dict[str, dict[str, Tree]]:
    """By job: the settings in which the jobs differ."""
    if len(jobs) < 2:
        return {}
    differences = client.compare([job.id for job in jobs]).differences
    return {
        job.id: {each.path: read_yaml(each.values[number], each.path) for each in differences}
        for number, job in enumerate(jobs)
    }


_SECONDS_BETWEEN_LOOKS = 2.0


def watch_campaign(client: DesignClient, campaign: str, view: CampaignView) -> list[job_pb2.Job]:
    """The jobs as they ended, in the order of their submission. Raises ServiceError.

    A coordinator that goes away is waited for without end, if it has been there once.
    """
    is_first = True
    while True:
        try:
            jobs = _jobs(client, campaign)
        except Unreachable as error:
            if is_first:
                raise
            view.lost(str(error))
            # With little patience of its own, the request has not waited.
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            continue
        is_first = False
        if not jobs:
            raise Refused(f"there is no campaign {campaign!r}", grpc.StatusCode.NOT_FOUND)
        view.jobs(jobs)
        if all(job.state in FINAL_STATES for job in jobs):
            return jobs
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _jobs(client: DesignClient, campaign: str) -> list[job_pb2.Job]:
    """Oldest first."""
    return list(client.list_all(messages.ListJobsRequest(campaign=campaign)))[::-1]


def watch_job_to_its_end(
    client: DesignClient, name: str, *, quiet: bool, as_json: bool, with_past: bool
) -> None:
    """Follows a job, prints it as it ended, and ends the command."""
    with _may_be_left("the job goes on", name), watch_view(quiet=quiet) as view:
        job = watch_one(client, name, view, with_past=with_past)
    print_job(job, as_json=as_json)
    _exit_after([job])


def watch_campaign_to_its_end(
    client: DesignClient, campaign: str, *, threads: int, quiet: bool, as_json: bool
) -> None:
    """Follows a campaign's jobs, prints how their RemyCCs compare, and ends the command."""
    # What compares takes longer to import than a short command takes to run.

    with _may_be_left("the jobs go on", f"--campaign {campaign}"):
        with campaign_view(quiet=quiet) as view:
            jobs = watch_campaign(client, campaign, view)
        if not quiet:
            click.echo("comparing the RemyCCs on fresh specimens", err=True)
        result = campaign_result(client, campaign, jobs, threads=threads)
    if as_json:
        print_json(result.tree())
    else:
        print_campaign(result)
    _exit_after(jobs)


@contextmanager
def _may_be_left(what_goes_on: str, words: str) -> Iterator[None]:
    """Has Ctrl-C say that nothing ends but the watching."""
    try:
        yield
    except KeyboardInterrupt:
        again = f"{what_goes_on}; to watch again: remy-farm watch {words}"
        click.echo(again, err=True)
        click.get_current_context().exit(ExitCode.INTERRUPTED)


def _exit_after(jobs: list[job_pb2.Job]) -> None:
    has_failed = any(job.state != job_pb2.JOB_STATE_SUCCEEDED for job in jobs)
    click.get_current_context().exit(ExitCode.JOB_FAILED if has_failed else 0)


@click.command("watch")
@click.argument("job", metavar="[JOB]", required=False, type=JobName())
@click.option("--campaign", metavar="NAME", help="Watch all jobs of this sweep instead.")
@click.option("--history", "with_past", is_flag=True, help="Show what has happened so far, too.")
@threads_option()
@quiet_option()
@json_option()
@connected
def watch_command(
    client: DesignClient,
    job: str | None,
    campaign: str | None,
    with_past: bool,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Follow a job until it ends, through restarts of the coordinator and lost connections.

    With --campaign all jobs of a sweep are followed, and their RemyCCs are compared at the end, on
    this machine, with --threads threads. Ctrl-C ends the watching; the jobs go on.
    """
    if (job is None) == (campaign is None):
        raise click.UsageError("name either a JOB or a --campaign")
    if job is not None:
        watch_job_to_its_end(client, job, quiet=quiet, as_json=as_json, with_past=with_past)
    elif campaign is not None:
        watch_campaign_to_its_end(client, campaign, threads=threads, quiet=quiet, as_json=as_json)
