"""Views of a design: its progress while it runs, and what it came to."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from remy_farm.v1 import progress_pb2, spec_pb2
from remy_services.analysis.campaign import EXPLANATION, HEAD, MemberRecord, cells
from remy_services.analysis.plots import collect_history
from remy_services.analysis.report import REPORT_FILES, Gain, ReportContent, measure_gain
from remy_services.analysis.wording import (
    count,
    duration,
    finished_sentence,
    number,
    several,
    stop_reason,
    with_error,
)
from remy_services.cli.common import plain_table, print_table
from remy_services.driver import (
    DesignObserver,
    DesignResult,
    OutDirectory,
    RunStarted,
    StepProgress,
    read_events,
)
from remy_services.evaluation import LocalEvaluator
from remy_services.evaluation.measures import Estimate, Summary
from remy_services.files import read_file
from remy_services.specification import to_yaml

_COMMAND_LINE = ParameterSource.COMMANDLINE


def resume_command(context: click.Context) -> str:
    """The running command as the user gave it, with --resume, ready for a shell."""
    words = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name == "resume" or context.get_parameter_source(name) is not _COMMAND_LINE:
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            words.append(parameter.opts[0])
        else:
            values = value if parameter.multiple else [value]
            words += [word for each in values for word in (parameter.opts[0], str(each))]
    return shlex.join([*words, "--resume"])


def event_sentence(event: progress_pb2.ProgressEvent) -> str | None:
    """A milestone in words; None for an event that only moves the status."""
    match event.WhichOneof("event"):
        case "rule_split":
            split = event.rule_split
            return f"rule {split.rule} was divided: {several(split.rules, 'rule')}"
        case "epoch_finished":
            return _epoch_sentence(event.epoch_finished.record)
        case "design_finished":
            return finished_sentence(event.design_finished)
    return None


def _epoch_sentence(record: progress_pb2.EpochRecord) -> str:
    comparison = record.comparison
    if record.rules_changed == 0:
        return f"epoch {record.epoch}: nothing to improve"
    if record.HasField("start"):
        return f"start {record.start}: {_gain(comparison)}"
    verdict = "kept" if comparison.accepted else "rolled back"
    return (
        f"epoch {record.epoch}: {several(record.rules_changed, 'rule')} changed, "
        f"{_gain(comparison)}, {verdict}"
    )


def _gain(comparison: progress_pb2.Comparison) -> str:
    return (
        f"score {with_error(comparison.before)} -> {with_error(comparison.after)} on fresh "
        f"specimens (gain {with_error(comparison.gain, signed=True)})"
    )


@dataclass(slots=True)
class DesignStatus:
    """The latest that is known."""

    progress: StepProgress | None = None
    score: progress_pb2.Estimate | None = None
    """Of the table being worked on, on the last step's specimens."""

    def observe(self, event: progress_pb2.ProgressEvent) -> None:
        """Takes note of an event."""
        if event.HasField("step_finished") and event.step_finished.HasField("score"):
            self.score = event.step_finished.score

    def place(self) -> str:
        """Epoch, rules and step."""
        if self.progress is None:
            return "starting"
        now = self.progress
        return f"epoch {now.epoch}, {several(now.rules, 'rule')}, step {now.step}"

    def candidates(self) -> str:
        """Candidates done of those of the step."""
        if self.progress is None:
            return ""
        now = self.progress
        return f"{now.candidates_done} of {several(now.candidates, 'candidate')}"

    def measures(self) -> str:
        """Score with its error, packets a second, time used and left."""
        parts = []
        if self.score is not None:
            parts.append(f"score {with_error(self.score)}")
        if self.progress is not None:
            now = self.progress
            parts.append(f"{count(now.packets_per_second)} packets/s")
            parts.append(f"{duration(now.cpu_seconds)} CPU")
            if now.eta_seconds is not None:
                parts.append(f"ETA {duration(now.eta_seconds)}")
        return ", ".join(parts)


def start_sentence(start: RunStarted) -> str | None:
    """What to say of a run that goes on; None for a new design."""
    return f"resumed after step {start.steps}" if start.resumed else None


_SECONDS_BETWEEN_LINES = 10.0
_REFRESHES_PER_SECOND = 8
_BAR_WIDTH = 30


class PlainView(DesignObserver):
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


class LiveView(DesignObserver):
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
def shown_progress(*, quiet: bool) -> Iterator[DesignObserver | None]:
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


_PROVENANCE_BYTES = 1 << 20


def finish_design(
    spec: spec_pb2.DesignSpec, out: str, result: DesignResult, *, threads: int, quiet: bool
) -> Gain:
    """Compares the first table with the last on fresh specimens, and writes the report."""
    # matplotlib takes longer to import than a short command takes to run.
    from remy_services.analysis.report import write_report

    if not quiet:
        click.echo("comparing the first table with the last on fresh specimens", err=True)
    with closing(LocalEvaluator(threads)) as evaluator:
        gain = measure_gain(spec, result.first, result.table, evaluate=evaluator.evaluate)
    folder = OutDirectory(out)
    write_report(
        out,
        ReportContent(
            name=spec.name,
            spec_yaml=to_yaml(spec),
            seed=spec.search.seed,
            versions=json.loads(read_file(folder.provenance, limit=_PROVENANCE_BYTES))["versions"],
            history=collect_history(read_events(folder.progress)),
            table=result.table,
            gain=gain,
            files=_design_files(folder),
        ),
    )
    return gain


def print_gain(spec: spec_pb2.DesignSpec, out: str, result: DesignResult, gain: Gain) -> None:
    """The end of `design`, for people."""
    assert result.reason is not None
    first, final = gain.first.summary(), gain.final.summary()
    click.echo(
        f"\n{spec.name}: {several(result.table.rule_count, 'rule')} after "
        f"{several(len(result.epochs), 'epoch')} and {several(result.steps, 'step')} in "
        f"{duration(result.wall_seconds)} ({duration(result.cpu_seconds)} CPU);\n"
        f"finished because {stop_reason(result.reason)}.\n\n"
        f"On {several(final.specimens, 'fresh specimen')} (medians; the score's mean and error):\n"
    )
    table = plain_table("", "first table", "RemyCC", "gain", left=1)
    table.add_row(
        "score",
        with_error(first.score),
        with_error(final.score),
        with_error(gain.score(), signed=True),
    )
    for name, before, after in (
        (
            "throughput / link rate",
            first.throughput_over_link_rate,
            final.throughput_over_link_rate,
        ),
        ("delay / RTT", first.delay_over_rtt, final.delay_over_rtt),
    ):
        table.add_row(name, number(before), number(after), "")
    print_table(table)
    click.echo(f"\nIn {out}: {', '.join(_all_files(out))}")


def result_tree(
    spec: spec_pb2.DesignSpec, out: str, result: DesignResult, gain: Gain | None
) -> dict[str, Any]:
    """The end of `design` as the JSON object that --json prints; without `gain`, interrupted."""
    return {
        "name": spec.name,
        "seed": spec.search.seed,
        "out": out,
        "finished": result.reason is not None,
        "reason": None if result.reason is None else reason_name(result.reason),
        "steps": result.steps,
        "epochs": len(result.epochs),
        "rules": result.table.rule_count,
        "wall_seconds": result.wall_seconds,
        "cpu_seconds": result.cpu_seconds,
        "gain": None if gain is None else _gain_tree(gain),
        "files": list(_all_files(out) if gain is not None else _files_so_far(OutDirectory(out))),
    }


def _gain_tree(gain: Gain) -> dict[str, Any]:
    return {
        "specimens": len(gain.final.results),
        "seed": gain.seed,
        **_estimate_tree("score_gain", gain.score()),
        "first": _summary_tree(gain.first.summary()),
        "final": _summary_tree(gain.final.summary()),
    }


def _summary_tree(summary: Summary) -> dict[str, Any]:
    return {
        **_estimate_tree("score", summary.score),
        "throughput_over_link_rate_median": summary.throughput_over_link_rate,
        "delay_over_rtt_median": summary.delay_over_rtt,
    }


def _estimate_tree(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    return {
        f"{name}_mean": None if estimate is None else estimate.mean,
        f"{name}_stderr": None if estimate is None else estimate.standard_error,
    }


def reason_name(reason: progress_pb2.StopReason) -> str:
    """As --json prints it."""
    return progress_pb2.StopReason.Name(reason).removeprefix("STOP_REASON_").lower()


def _design_files(folder: OutDirectory) -> Sequence[str]:
    return [
        path.name
        for path in (
            folder.remycc_json,
            folder.remycc_dna,
            folder.progress,
            folder.pareto,
            folder.spec,
            folder.provenance,
            folder.checkpoint,
        )
    ]


def _files_so_far(folder: OutDirectory) -> Sequence[str]:
    """None, where the design was interrupted before it began."""
    return [name for name in _design_files(folder) if (folder.path / name).exists()]


def _all_files(out: str) -> Sequence[str]:
    return [*REPORT_FILES, *_design_files(OutDirectory(out))]


def print_members(records: Sequence[MemberRecord]) -> None:
    """A row for each member, and what its figures are."""
    table = plain_table(*HEAD, left=2)
    for row, record in enumerate(records, start=1):
        table.add_row(*cells(row, record))
    print_table(table)
    click.echo(f"\n{EXPLANATION}")
