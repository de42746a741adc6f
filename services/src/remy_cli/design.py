"""`remy-farm design`: the search for a RemyCC on this machine, or a campaign of them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import remy_farm as rf
from remy_cli import failures
from remy_cli.campaign import COMPARING, design_campaign
from remy_cli.common import (
    FILE,
    PlainTable,
    json_option,
    option,
    print_json,
    print_table,
    quiet_option,
    say,
    switch,
    threads_option,
)
from remy_cli.design_progress import DesignProgress
from remy_cli.robustness import certify_design, robustness_option
from remy_cli.spec_changes import SpecChanges, with_spec_changes
from remy_cli.views import progress_view
from remy_farm.analysis import (
    REPORT_FILES,
    Gain,
    design_files,
    duration,
    enum_name,
    estimate_tree,
    number,
    several,
    stop_reason,
    with_error,
)
from remy_farm.driver import DesignResult, OutDirectory
from remy_farm.evaluation import Summary
from remy_farm.specification import load_spec
from remy_proto.completion import NEWEST_EDITION
from remy_proto.v1 import progress_pb2


def resume_command(context: click.Context) -> str:
    """The running command as the user gave it, with --resume, ready for a shell."""
    words = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if (
            name == "resume"
            or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        ):
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


def print_gain(out: str, result: DesignResult, gain: Gain) -> None:
    """The end of `design`, for people."""
    assert result.reason is not None
    first, final = gain.first.summary(), gain.final.summary()
    click.echo(
        f"\n{result.spec.name}: {several(result.table.rule_count, 'rule')} after "
        f"{several(len(result.epochs), 'epoch')} and {several(result.steps, 'step')} in "
        f"{duration(result.wall_seconds)} ({duration(result.cpu_seconds)} CPU);\n"
        f"finished because {stop_reason(result.reason)}.\n\n"
        f"On {several(final.specimens, 'fresh specimen')} (medians; the score's mean and error):\n"
    )
    table = PlainTable("", "first table", "RemyCC", "gain", left=1)
    table.add_row(
        "score",
        with_error(first.score),
        with_error(final.score),
        with_error(gain.score(), signed=True),
    )
    rates = first.throughput_over_link_rate, final.throughput_over_link_rate
    table.add_row("throughput / link rate", *map(number, rates), "")
    table.add_row("delay / RTT", number(first.delay_over_rtt), number(final.delay_over_rtt), "")
    print_table(table)
    files = (*REPORT_FILES, *design_files(OutDirectory(out), result))
    click.echo(f"\nIn {out}: {', '.join(files)}")


def result_tree(out: str, result: DesignResult, gain: Gain | None) -> dict[str, Any]:
    """The end of `design` as the JSON object that --json prints; without `gain`, interrupted."""
    return {
        "name": result.spec.name,
        "seed": result.spec.search.seed,
        "out": out,
        "finished": result.reason is not None,
        "reason": enum_name(progress_pb2.StopReason.DESCRIPTOR, result.reason or 0),
        "steps": result.steps,
        "epochs": len(result.epochs),
        "rules": result.table.rule_count,
        "wall_seconds": result.wall_seconds,
        "cpu_seconds": result.cpu_seconds,
        "gain": None if gain is None else _gain_tree(gain),
        "files": [
            *(REPORT_FILES if gain is not None else ()),
            *design_files(OutDirectory(out), result),
        ],
    }


def _gain_tree(gain: Gain) -> dict[str, Any]:
    return {
        "specimens": len(gain.final.results),
        "seed": gain.seed,
        **estimate_tree(gain.score(), "score_gain_mean"),
        "first": _summary_tree(gain.first.summary()),
        "final": _summary_tree(gain.final.summary()),
    }


def _summary_tree(summary: Summary) -> dict[str, Any]:
    return {
        **estimate_tree(summary.score),
        "throughput_over_link_rate_median": summary.throughput_over_link_rate,
        "delay_over_rtt_median": summary.delay_over_rtt,
    }


@click.command("design")
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@option(
    "--out DIR",
    "Directory for the design's files; made if need be.",
    click.Path(file_okay=False),
    required=True,
)
@option(
    "--from FILE",
    "Begin with the table of this RemyCC in place of the search's own first one.",
    FILE,
    name="first_path",
)
@threads_option
@with_spec_changes
@switch(
    "--certify",
    "Have what was designed meet the requirements of robustness, and refuse it otherwise.",
    name="is_certified",
)
@robustness_option
@switch("--resume", "Go on with the design in DIR.")
@quiet_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    spec_path: str,
    out: str,
    first_path: str | None,
    threads: int,
    changes: SpecChanges,
    is_certified: bool,
    requirements: Path,
    resume: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Design a RemyCC for the networks, traffic and objective of a specification.

    Writes the rule table (remycc.json, and of absolute rules remycc.dna), the history
    (progress.jsonl), the complete specification (spec.yaml), what made it (provenance.json) and a
    report (report.html and plots) into DIR. Equal specifications and seeds give equal rule tables,
    whatever the number of threads.

    Ctrl-C leaves a checkpoint; --resume goes on from it, or goes on with a finished design whose
    budget has grown.

    With --sweep there is a folder in DIR for each combination of the values, which holds what a
    single design with those settings would, and a comparison of all (campaign.html and others).
    --resume skips the designs that are finished.

    With --certify a table that fails a requirement of robustness stays in DIR, but the command
    says which, and exits with 6; the certificate of each table is in DIR/certificate.
    """
    if changes.sweeps:
        if first_path is not None or is_certified:
            flag = "--certify" if is_certified else "--from"
            raise click.UsageError(f"{flag} and --sweep exclude each other")
        members = changes.members(spec_path)
        if not design_campaign(
            members, Path(out), threads=threads, resume=resume, quiet=quiet, as_json=as_json
        ):
            say(f"interrupted; to go on:\n  {resume_command(context)}")
            context.exit(failures.ExitCode.INTERRUPTED)
        return
    kept = OutDirectory(out).spec
    edition = load_spec(kept).edition if resume and kept.exists() else NEWEST_EDITION
    spec = rf.Spec.of_message(changes.spec(spec_path, edition=edition))
    with progress_view(quiet=quiet) as view:
        design = rf.design(
            spec,
            directory=out,
            resume=resume,
            first=None if first_path is None else rf.load_table(Path(first_path)),
            threads=threads,
            observer=DesignProgress(spec.name, view),
        )
    again = resume_command(context)
    if not design.is_finished:
        if as_json:
            print_json(result_tree(out, design.result, None))
        say(f"interrupted after step {design.steps}; to go on:\n  {again}")
        context.exit(failures.ExitCode.INTERRUPTED)
    try:
        if not quiet:
            say(COMPARING)
        gain = design.report(threads=threads)
    except KeyboardInterrupt:
        say(f"the design is finished, but not its report; to make it:\n  {again}")
        context.exit(failures.ExitCode.INTERRUPTED)
    if as_json:
        print_json(result_tree(out, design.result, gain))
    else:
        print_gain(out, design.result, gain)
    if is_certified:
        certify_design(design, requirements, threads=threads, quiet=quiet or as_json)
