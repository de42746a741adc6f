"""`remy-farm design`: the search for a RemyCC on this machine, or a campaign of them."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from remy_cli import failures
from remy_cli.common import (
    COUNT,
    FILE,
    POSITIVE,
    SEED,
    FiniteRange,
    PlainTable,
    json_option,
    local_evaluator,
    option,
    print_json,
    print_table,
    quiet_option,
    say,
    settings_option,
    sweeps_option,
    switch,
    threads_option,
)
from remy_cli.robustness import certify_table, robustness_option
from remy_cli.views import ProgressView, print_members, progress_view
from remy_farm.analysis.campaign import (
    CampaignRecord,
    Member,
    MemberRecord,
    Sweep,
    compare_member,
    members_of,
    members_tree,
    parse_sweep,
    render,
)
from remy_farm.analysis.history import collect_history
from remy_farm.analysis.report import (
    REPORT_FILES,
    Gain,
    ReportContent,
    measure_gain,
    write_report,
)
from remy_farm.analysis.wording import (
    duration,
    enum_name,
    estimate_tree,
    number,
    several,
    stop_reason,
    with_error,
)
from remy_farm.designer.search import with_steps
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.progress import DesignObserver, read_events
from remy_farm.driver.run import DesignResult, DesignRun, with_budget
from remy_farm.evaluation.measures import Summary
from remy_farm.files import FileError, read_file, write_file
from remy_farm.remycc import file_suffixes, read_remycc
from remy_farm.specification import (
    check_spec,
    content_digest,
    load_spec,
    load_tree,
    parse_setting,
    spec_of_tree,
    to_yaml,
    vary,
)
from remy_proto.completion import NEWEST_EDITION
from remy_proto.v1 import job_pb2, progress_pb2, spec_pb2

#: A part of a whole that has others.
SHARE = FiniteRange(min=0, min_open=True, max=1, max_open=True)


class DesignProgress(DesignObserver):
    """Shows a design of this process as the views show a coordinator's job."""

    def __init__(self, name: str, view: ProgressView) -> None:
        self._view = view
        self._job = job_pb2.Job(name=name, state=job_pb2.JOB_STATE_RUNNING)

    def started(self, steps: int, *, resumed: bool) -> None:
        if resumed:
            self._view.say(f"resumed after step {steps}")

    def progress(self, progress: progress_pb2.JobProgress) -> None:
        self._job.progress.ClearField("eta_seconds")
        self._job.progress.MergeFrom(progress)
        self._view.job(self._job)

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        if event.HasField("step_finished") and event.step_finished.HasField("score"):
            self._job.progress.score.CopyFrom(event.step_finished.score)
        self._view.event(job_pb2.JobEvent(progress=event))


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


_PROVENANCE_BYTES = 1 << 20


def finish_design(
    spec: spec_pb2.DesignSpec, out: str, result: DesignResult, *, threads: int, quiet: bool
) -> Gain:
    """Compares the first table with the last on fresh specimens, and writes the report."""
    if not quiet:
        say("comparing the first table with the last on fresh specimens")
    with local_evaluator(threads) as evaluator:
        gain = measure_gain(
            spec, result.first, [*result.tables.values()], evaluate=evaluator.evaluate
        )
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
            files=_design_files(folder, result),
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
    files = (*REPORT_FILES, *_design_files(OutDirectory(out), result))
    click.echo(f"\nIn {out}: {', '.join(files)}")


def result_tree(
    spec: spec_pb2.DesignSpec, out: str, result: DesignResult, gain: Gain | None
) -> dict[str, Any]:
    """The end of `design` as the JSON object that --json prints; without `gain`, interrupted."""
    return {
        "name": spec.name,
        "seed": spec.search.seed,
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
            *_design_files(OutDirectory(out), result),
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


def _design_files(folder: OutDirectory, result: DesignResult) -> Sequence[str]:
    """Those that are there: no .dna file of scale-free rules, and few of a design that was
    interrupted before it began."""
    tables = [
        folder.table_file(result.spec, name, suffix)
        for name, table in result.tables.items()
        for suffix in file_suffixes(table)
    ]
    run = (folder.progress, folder.pareto, folder.spec, folder.provenance, folder.checkpoint)
    return [path.name for path in (*tables, *run) if path.exists()]


#: Of a design with --certify: a folder.
CERTIFICATE = "certificate"
CAMPAIGN_JSON = "campaign.json"
CAMPAIGN_HTML = "campaign.html"
CAMPAIGN_PNG = "campaign.png"


def design_campaign(
    members: Sequence[Member], out: Path, *, threads: int, resume: bool, quiet: bool, as_json: bool
) -> bool:
    """Designs the members that are not finished, each in its own folder of `out`, and compares all.

    False if it was interrupted. Raises what DesignRun raises.
    """
    path = out / CAMPAIGN_JSON
    if path.exists() and not resume:
        raise FileError(f"{out} already holds a campaign; resume it, or choose another directory")
    is_empty = not out.is_dir() or not any(out.iterdir())
    if resume and is_empty:
        raise FileError(f"{out} holds no campaign to resume; leave --resume away to begin one")
    if not (resume or is_empty):
        raise FileError(
            f"{out} holds other files, or a campaign without its first design; resume it, or "
            f"choose a directory that is new or empty"
        )
    campaign = CampaignRecord.read(path)
    for position, member in enumerate(members, start=1):
        folder = out / member.name
        digest = content_digest(member.spec)
        is_finished = (
            campaign.finished(member.name, digest) is not None
            and OutDirectory(folder).remycc_json.exists()
        )
        if not quiet:
            state = ": finished already" if is_finished else ""
            say(f"{member.name}, {position} of {several(len(members), 'design')}{state}")
        if is_finished:
            continue
        with progress_view(quiet=quiet) as view:
            goes_on = resume and OutDirectory(folder).is_begun
            run = DesignRun(member.spec, folder, threads=threads, resume=goes_on)
            result = run.run(DesignProgress(member.spec.name, view))
        if result.reason is None:
            return False
        try:
            finish_design(result.spec, str(folder), result, threads=threads, quiet=quiet)
            campaign.add(_record(member, digest, result, threads))
        except KeyboardInterrupt:
            return False
        campaign.write(path)
    records = campaign.of([member.name for member in members])
    _write_page(members[0].spec.name, records, out)
    if as_json:
        print_json(members_tree(records))
    else:
        print_members(records)
        click.echo(
            f"\nIn {out}: {CAMPAIGN_HTML}, {CAMPAIGN_PNG}, {CAMPAIGN_JSON}, a folder each design"
        )
    return True


def _record(member: Member, digest: str, result: DesignResult, threads: int) -> MemberRecord:
    assert result.reason is not None
    with local_evaluator(threads) as evaluator:
        comparison = compare_member(
            result.spec, [*result.tables.values()], evaluate=evaluator.evaluate
        )
    return MemberRecord(
        name=member.name,
        settings=dict(member.settings),
        spec_digest=digest,
        reason=enum_name(progress_pb2.StopReason.DESCRIPTOR, result.reason) or "",
        steps=result.steps,
        epochs=len(result.epochs),
        rules=result.table.rule_count,
        cpu_seconds=result.cpu_seconds,
        wall_seconds=result.wall_seconds,
        comparison=comparison,
    )


def _write_page(name: str, records: Sequence[MemberRecord], out: Path) -> None:
    # matplotlib takes longer to import than a short command takes to run.
    from remy_farm.analysis.plots import plot_members

    picture = plot_members(records)
    write_file(out / CAMPAIGN_PNG, picture)
    write_file(out / CAMPAIGN_HTML, render(name, records, picture_png=picture))


@click.command("design")
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@option(
    "--out DIR",
    "Directory for the design's files; made if need be.",
    click.Path(file_okay=False),
    required=True,
)
@option("--seed K", "In place of the specification's seed.", SEED)
@option(
    "--steps N",
    "The whole schedule's length, in place of search.joint.steps or its budget, or of "
    "search.pattern.steps.",
    COUNT,
)
@option(
    "--from FILE",
    "Begin with the table of this RemyCC in place of the search's own first one.",
    FILE,
    name="first_path",
)
@threads_option
@option("--max-steps N", "Stop after N steps since the design began.", COUNT)
@option(
    "--max-cpu-seconds S",
    "Cut the search off, wherever it is, after S seconds of CPU time of its simulations "
    "since the design began; search.joint.cpu_seconds has it planned for so many.",
    POSITIVE,
)
@settings_option(
    "Another setting than the specification's, as objective.delta=0.1; may be given several times."
)
@sweeps_option("Make a design")
@option("--harden FILE.yaml", "Design for the networks that attack found, as well.", FILE)
@option(
    "--harden-share S",
    "How large a part of each step's networks they are, in equal parts.",
    SHARE,
    default=0.125,
)
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
    seed: int | None,
    steps: int | None,
    first_path: str | None,
    threads: int,
    max_steps: int | None,
    max_cpu_seconds: float | None,
    settings: tuple[str, ...],
    sweeps: tuple[str, ...],
    harden: str | None,
    harden_share: float,
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

    def adjusted(spec: spec_pb2.DesignSpec) -> spec_pb2.DesignSpec:
        return with_budget(
            _adjusted(spec, seed=seed, steps=steps),
            max_steps=max_steps,
            max_cpu_seconds=max_cpu_seconds,
        )

    tree = load_tree(spec_path)
    changes = [parse_setting(each, "--set", source=spec_path) for each in settings]
    paths = [path for path, _ in changes]
    _check_overruled(paths, "--set", seed=seed, steps=steps)
    for path, value in changes:
        tree = vary(tree, path, value, source=spec_path)
    if harden is not None:
        from remy_laboratory.studies.attack import hardened

        tree = hardened(tree, Path(harden), harden_share)
    if sweeps:
        if first_path is not None or is_certified:
            flag = "--certify" if is_certified else "--from"
            raise click.UsageError(f"{flag} and --sweep exclude each other")
        members = [
            dataclasses.replace(member, spec=adjusted(member.spec))
            for member in members_of(
                tree,
                _swept(sweeps, paths, seed=seed, steps=steps),
                source=spec_path,
                folder=Path(spec_path).parent,
            )
        ]
        if not design_campaign(
            members, Path(out), threads=threads, resume=resume, quiet=quiet, as_json=as_json
        ):
            say(f"interrupted; to go on:\n  {resume_command(context)}")
            context.exit(failures.ExitCode.INTERRUPTED)
        return
    kept = OutDirectory(out).spec
    edition = load_spec(kept).edition if resume and kept.exists() else NEWEST_EDITION
    spec = adjusted(spec_of_tree(tree, spec_path, edition=edition, files=Path(spec_path).parent))
    first = None if first_path is None else read_remycc(first_path).table
    with progress_view(quiet=quiet) as view:
        run = DesignRun(spec, out, threads=threads, resume=resume, first_table=first)
        result = run.run(DesignProgress(spec.name, view))
    again = resume_command(context)
    if result.reason is None:
        if as_json:
            print_json(result_tree(result.spec, out, result, None))
        say(f"interrupted after step {result.steps}; to go on:\n  {again}")
        context.exit(failures.ExitCode.INTERRUPTED)
    try:
        gain = finish_design(result.spec, out, result, threads=threads, quiet=quiet)
    except KeyboardInterrupt:
        say(f"the design is finished, but not its report; to make it:\n  {again}")
        context.exit(failures.ExitCode.INTERRUPTED)
    if as_json:
        print_json(result_tree(result.spec, out, result, gain))
    else:
        print_gain(result.spec, out, result, gain)
    if is_certified:
        _certify(out, result, requirements, threads=threads, quiet=quiet or as_json)


def _certify(
    out: str, result: DesignResult, requirements: Path, *, threads: int, quiet: bool
) -> None:
    """Raises Failure for the first table that is refused, once all have their certificates."""
    folder = OutDirectory(out)
    certificates = []
    for name in result.tables:
        path = folder.table_file(result.spec, name, ".json")
        place = Path(out) / CERTIFICATE / (name if len(result.tables) > 1 else "")
        certificates.append(
            certify_table(str(path), place, requirements, threads=threads, quiet=quiet)
        )
    refused = [each for each in certificates if not each.holds]
    if refused:
        raise failures.Failure(refused[0].sentence(), failures.ExitCode.REFUSED)
    for each in certificates:
        say(each.sentence())


def _swept(
    texts: Sequence[str], settings: Sequence[str], *, seed: int | None, steps: int | None
) -> list[Sweep]:
    """The sweeps, none of which an option may overrule."""
    sweeps = [parse_sweep(text) for text in texts]
    for sweep in sweeps:
        if sweep.path in settings:
            raise click.UsageError(f"--set and a sweep of {sweep.path} exclude each other")
    _check_overruled([sweep.path for sweep in sweeps], "a sweep", seed=seed, steps=steps)
    return sweeps


def _check_overruled(
    paths: Sequence[str], what: str, *, seed: int | None, steps: int | None
) -> None:
    overruled = {
        "search.seed": seed,
        "search.joint.steps": steps,
        "search.joint.cpu_seconds": steps,
        "search.joint.simulated_packets": steps,
        "search.pattern.steps": steps,
    }
    for path in paths:
        if overruled.get(path) is not None:
            option = "--seed" if path == "search.seed" else "--steps"
            raise click.UsageError(f"{option} and {what} of {path} exclude each other")


def _adjusted(
    spec: spec_pb2.DesignSpec, *, seed: int | None, steps: int | None
) -> spec_pb2.DesignSpec:
    if seed is not None:
        spec.search.seed = seed
    if steps is None:
        return spec
    changed = with_steps(spec, steps)
    check_spec(changed, source="--steps")
    return changed
