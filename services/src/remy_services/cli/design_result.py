"""What a design came to: its report, and the figures that it ends with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import click

from remy_farm.v1 import progress_pb2, spec_pb2
from remy_services.cli.output import plain_table, print_table
from remy_services.embedded import DesignResult, OutDirectory, read_events
from remy_services.evaluation import LocalEvaluator
from remy_services.files import read_file
from remy_services.report.content import REPORT_FILES, ReportContent
from remy_services.report.gain import Gain, measure_gain
from remy_services.report.history import collect_history
from remy_services.report.trial import Estimate, Summary
from remy_services.report.wording import duration, number, several, stop_reason, with_error
from remy_services.spec import to_yaml

_PROVENANCE_BYTES = 1 << 20


def finish_design(
    spec: spec_pb2.DesignSpec, out: str, result: DesignResult, *, threads: int, quiet: bool
) -> Gain:
    """Compares the first table with the last on fresh specimens, and writes the report."""
    # matplotlib takes longer to import than a short command takes to run.
    from remy_services.report.write import write_report

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
