"""`remy-farm design`: designs a RemyCC on this machine, or several with --sweep."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import remy_farm as rf
from remy_cli import failures
from remy_cli.campaign import COMPARISON_STATUS, design_campaign
from remy_cli.common import (
    FILE,
    PlainTable,
    examples,
    flag,
    json_option,
    option,
    print_json,
    print_status,
    print_table,
    quiet_option,
    threads_option,
)
from remy_cli.design_progress import DesignProgress
from remy_cli.robustness import certify_design, require_option, robustness_option
from remy_cli.spec_changes import SpecChanges, pass_spec_changes
from remy_cli.views import progress_view
from remy_farm.analysis import (
    REPORT_FILES,
    Gain,
    design_files,
    duration,
    enum_name,
    estimate_fields,
    format_estimate,
    number,
    percentage,
    plural,
    stop_reason,
)
from remy_farm.driver import DesignResult, OutDirectory
from remy_farm.evaluation import Summary, packets_row
from remy_farm.specification import load_spec
from remy_proto.completion import NEWEST_EDITION
from remy_proto.v1 import progress_pb2


def resume_command(context: click.Context) -> str:
    """Returns the running command with --resume added, quoted for a shell."""
    arguments = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if (
            name == "resume"
            or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        ):
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            arguments.append(str(value))
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            arguments.append(parameter.opts[0])
        else:
            values = value if parameter.multiple else [value]
            arguments += [
                argument for item in values for argument in (parameter.opts[0], str(item))
            ]
    return shlex.join([*arguments, "--resume"])


def print_gain(out: str, result: DesignResult, gain: Gain) -> None:
    """Prints the result of a finished design as text."""
    assert result.reason is not None
    first, final = gain.first.summary(), gain.final.summary()
    click.echo(
        f"\n{result.spec.name}: {plural(result.table.rule_count, 'rule')} after "
        f"{plural(len(result.epochs), 'epoch')} and {plural(result.steps, 'step')} in "
        f"{duration(result.wall_seconds)} ({duration(result.cpu_seconds)} CPU);\n"
        f"finished: {stop_reason(result.reason)}.\n\n"
        f"On {plural(final.specimens, 'fresh specimen')} (medians; means of score and loss):\n"
    )
    table = PlainTable("", "first table", "RemyCC", "gain", left=1)
    table.add_row(
        "score",
        format_estimate(first.score),
        format_estimate(final.score),
        format_estimate(gain.score(), signed=True),
    )
    rates = first.throughput_over_link_rate, final.throughput_over_link_rate
    table.add_row("throughput / link rate", *map(number, rates), "")
    table.add_row("delay / RTT", number(first.delay_over_rtt), number(final.delay_over_rtt), "")
    table.add_row("loss", percentage(first.packets.loss), percentage(final.packets.loss), "")
    print_table(table)
    files = (*REPORT_FILES, *design_files(OutDirectory(out), result))
    click.echo(f"\nIn {out}: {', '.join(files)}")


def result_dict(out: str, result: DesignResult, gain: Gain | None) -> dict[str, Any]:
    """Returns the result as the dict that --json prints. `gain` is None after an interruption."""
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
        "gain": None if gain is None else _gain_dict(gain),
        "files": [
            *(REPORT_FILES if gain is not None else ()),
            *design_files(OutDirectory(out), result),
        ],
    }


def _gain_dict(gain: Gain) -> dict[str, Any]:
    return {
        "specimens": len(gain.final.results),
        "seed": gain.seed,
        **estimate_fields(gain.score(), "score_gain_mean"),
        "first": _summary_dict(gain.first.summary()),
        "final": _summary_dict(gain.final.summary()),
    }


def _summary_dict(summary: Summary) -> dict[str, Any]:
    return {
        **estimate_fields(summary.score),
        "throughput_over_link_rate_median": summary.throughput_over_link_rate,
        "delay_over_rtt_median": summary.delay_over_rtt,
        **packets_row(summary.packets),
    }


@click.command(
    "design",
    epilog=examples(
        "remy-farm design spec.yaml --out design",
        "remy-farm design spec.yaml --out design --resume --steps 2000",
        "remy-farm design spec.yaml --out sweep --sweep objective.delta=0.1,1,10",
    ),
)
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@option(
    "--out DIR",
    "Directory for the design's files; created if missing.",
    click.Path(file_okay=False),
    required=True,
)
@option(
    "--from FILE",
    "Start the search from the table of this RemyCC, instead of the default one-rule table.",
    FILE,
    name="first_path",
)
@threads_option
@pass_spec_changes
@flag(
    "--certify",
    "Check that the design meets the robustness requirements; exit with 6 if it does not.",
    name="is_certified",
)
@require_option
@robustness_option
@flag("--resume", "Continue the design in DIR.")
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
    required: tuple[str, ...],
    requirements: Path,
    resume: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Design a RemyCC for the networks, traffic and objective of a specification.

    Writes the rule table (remycc.json, and remycc.dna if its rules are absolute), the history
    (progress.jsonl), the complete specification (spec.yaml), the versions that made it
    (provenance.json) and a report (report.html and plots) into DIR. The same specification and
    seed give the same rule table with any number of threads.

    Ctrl-C saves a checkpoint. --resume continues from it, or continues a finished design with a
    larger budget.

    With --sweep, DIR has a subdirectory for each combination of values, with the files of a single
    design, and a comparison of all designs (campaign.html, .png and .json). --resume skips
    finished designs.

    With --certify or --require, the certificate of each table is written to DIR/certificate. If a
    table fails a robustness requirement, it stays in DIR, and the command names the requirement and
    exits with 6.
    """
    is_certified = is_certified or bool(required)
    if changes.sweeps:
        if first_path is not None or is_certified:
            name = "--certify" if is_certified else "--from"
            raise click.UsageError(f"{name} and --sweep exclude each other")
        members = changes.members(spec_path)
        if not design_campaign(
            members, Path(out), threads=threads, resume=resume, quiet=quiet, as_json=as_json
        ):
            print_status(f"interrupted; to resume:\n  {resume_command(context)}")
            context.exit(failures.ExitCode.INTERRUPTED)
        return
    written_spec = OutDirectory(out).spec
    edition = (
        load_spec(written_spec).edition if resume and written_spec.exists() else NEWEST_EDITION
    )
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
    resume_line = resume_command(context)
    if not design.is_finished:
        if as_json:
            print_json(result_dict(out, design.result, None))
        print_status(f"interrupted after step {design.steps}; to resume:\n  {resume_line}")
        context.exit(failures.ExitCode.INTERRUPTED)
    try:
        if not quiet:
            print_status(COMPARISON_STATUS)
        gain = design.report(threads=threads)
    except KeyboardInterrupt:
        print_status(
            f"the design is finished, but its report is not; to write it:\n  {resume_line}"
        )
        context.exit(failures.ExitCode.INTERRUPTED)
    if as_json:
        print_json(result_dict(out, design.result, gain))
    else:
        print_gain(out, design.result, gain)
    if is_certified:
        certify_design(
            design,
            requirements,
            required=required,
            threads=threads,
            quiet=quiet or as_json,
        )
