"""`remy-farm evaluate`, `convert`, `validate` and `completion`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

import remy_farm as rf
from remy_cli import failures
from remy_cli.common import (
    FILE,
    SPECIMEN_COUNT,
    PlainTable,
    examples,
    json_option,
    option,
    print_json,
    print_pairs,
    print_table,
    rules_alone_flag,
    seed_option,
    threads_option,
    time_unit_option,
)
from remy_cli.measures import rtt_cells
from remy_cli.senders import SENDER, TRANSPORT
from remy_farm.analysis import count, estimate_fields, format_estimate, number, percentage
from remy_farm.evaluation import (
    PACKETS_RECEIVED,
    PERCENTS,
    REMYCC,
    SenderSpec,
    Summary,
    Trial,
    check_default_transport,
    packets_row,
    parse_sender,
)
from remy_farm.remycc import RemyCC, read_remycc, write_remycc
from remy_farm.specification import (
    SpecError,
    designed_tables,
    load_single_table_spec,
    load_spec,
    to_yaml,
)
from remy_proto.v1 import evaluation_pb2


@click.command(
    "evaluate",
    epilog=examples(
        "remy-farm evaluate --remycc remycc.json --spec spec.yaml --specimens 64",
        "remy-farm evaluate --sender cubic --spec spec.yaml --specimens 64",
    ),
)
@option(
    "--remycc FILE",
    "RemyCC file, .dna or .json. For tables designed together, give all in the specification's "
    "order.",
    FILE,
    name="remycc_paths",
    multiple=True,
)
@option(
    "--sender WHAT",
    "What all senders run, as in simulate: a protocol, or remycc:FILE with its transport.",
    SENDER,
)
@option("--transport TRANSPORT", "Transport that it runs over, as in simulate.", TRANSPORT)
@option(
    "--spec SPEC.yaml",
    "Specification: networks, traffic, objective and simulated time.",
    FILE,
    name="spec_path",
    required=True,
)
@option("--specimens N", "Number of networks to draw.", SPECIMEN_COUNT, required=True)
@seed_option("Seed of the networks and of all other random draws.")
@time_unit_option
@threads_option
@json_option
def evaluate_command(
    remycc_paths: Sequence[str],
    sender: SenderSpec | None,
    transport: evaluation_pb2.Choice | None,
    spec_path: str,
    specimens: int,
    seed: int,
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Score a RemyCC or a protocol on networks drawn from a specification.

    The seed alone determines the networks, so use the same seed to compare two RemyCCs or
    protocols. The datagram transport counts every received packet as throughput; the other
    transports count packets that are delivered in order.
    """
    if bool(remycc_paths) == (sender is not None):
        raise click.UsageError("give either --remycc FILE or --sender WHAT")
    sender_spec = sender or parse_sender(f"{REMYCC}{remycc_paths[0]}=1")
    if sender_spec.count != 1:
        raise click.UsageError(
            f"--sender {sender_spec.name}={sender_spec.count} has a number of senders, which the "
            "specification sets"
        )
    if sender_spec.rtt_ms is not None:
        raise click.UsageError(
            f"--sender {sender_spec.name} has an RTT, which the specification sets"
        )
    try:
        check_default_transport([sender_spec], transport)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    spec = load_spec(spec_path) if len(remycc_paths) > 1 else load_single_table_spec(spec_path)
    if len(remycc_paths) > 1 and len(remycc_paths) != len(names := designed_tables(spec)):
        raise click.UsageError(
            f"--remycc is given {len(remycc_paths)} times, but {spec_path} designs {len(names)} "
            f"({', '.join(names)})"
        )
    paths = remycc_paths or ([sender_spec.remycc] if sender_spec.remycc is not None else [])
    tables = tuple(rf.load_table(Path(path), time_unit_ms=time_unit_ms) for path in paths)
    scores = rf.evaluate(
        tables or sender_spec.name,
        rf.Spec.of_message(spec, spec_path),
        networks=specimens,
        seed=seed,
        transport=sender_spec.transport or transport,
        threads=threads,
    )
    (score,) = scores
    if as_json:
        # The key is printed only for the newer measures, so that older output does not change.
        named = {"throughput_of": score.throughput_of}
        named = {} if score.throughput_of == PACKETS_RECEIVED else named
        print_json({**named, **_trial_dict(score.trial, seed, scores.cpu_seconds)})
    else:
        _print_evaluation(score.trial, scores.cpu_seconds)
        if score.throughput_of != PACKETS_RECEIVED:
            click.echo("Throughput counts packets delivered in order.")


def _trial_dict(trial: Trial, seed: int, cpu_seconds: float) -> dict[str, Any]:
    return {
        **_summary_with_packets(trial.summary()),
        "packets_received": trial.packets_received,
        "seed": seed,
        "by_senders": [
            {"senders": senders, **_summary_with_packets(summary)}
            for senders, summary in trial.by_senders().items()
        ],
        "cpu_seconds": cpu_seconds,
        "digest": trial.digest,
    }


def _summary_with_packets(summary: Summary) -> dict[str, Any]:
    return {**summary_dict(summary), **packets_row(summary.packets)}


def summary_dict(summary: Summary) -> dict[str, Any]:
    """Returns the scores of a table on specimens as a dict for --json."""
    scored = summary.score.count if summary.score else 0
    return {
        **estimate_fields(summary.score),
        "specimens": summary.specimens,
        "specimens_left_out": summary.specimens - scored,
        "throughput_over_link_rate_median": summary.throughput_over_link_rate,
        "delay_over_rtt_median": summary.delay_over_rtt,
        "loss_mean": summary.packets.loss,
    }


def _print_evaluation(trial: Trial, cpu_seconds: float) -> None:
    table = PlainTable(
        *("senders", "specimens", *SUMMARY_COLUMNS),
        *(f"RTT {percent} %, ms" for percent in PERCENTS),
        "retransmitted",
    )
    groups = trial.by_senders()
    if len(groups) > 1:
        for senders, summary in groups.items():
            table.add_row(str(senders), *summary_cells(summary), *packet_cells(summary))
    summary = trial.summary()
    table.add_row("all", *summary_cells(summary), *packet_cells(summary), style="bold")
    print_table(table)
    click.echo()
    print_pairs(
        [
            ("packets received", count(trial.packets_received)),
            ("CPU time", f"{cpu_seconds:.3g} s"),
            ("digest", trial.digest),
        ]
    )
    click.echo(
        "score: mean over specimens ± standard error; loss: mean; retransmitted: sum; other "
        "columns: medians."
    )


def packet_cells(summary: Summary) -> list[str]:
    """Returns table cells of the percentiles of the RTT, and retransmissions."""
    packets = summary.packets
    return [*rtt_cells(packets), str(packets.packets_retransmitted)]


SUMMARY_COLUMNS = ("score", "throughput / link rate", "delay / RTT", "loss")


def summary_cells(summary: Summary) -> tuple[str, ...]:
    """Returns table cells: the number of specimens, then SUMMARY_COLUMNS."""
    return (
        str(summary.specimens),
        format_estimate(summary.score),
        number(summary.throughput_over_link_rate),
        number(summary.delay_over_rtt),
        percentage(summary.packets.loss),
    )


@click.command(
    "convert",
    epilog=examples(
        "remy-farm convert remycc.dna remycc.json",
        "remy-farm convert remycc.json safer.json --path-model",
        "remy-farm convert safer.json fairer.json --compete 1.2",
    ),
)
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@click.option(
    "--path-model", is_flag=True, help="Give OUT a path model with the default constants."
)
@option(
    "--compete RATIO",
    "Let OUT, which has a path model, compete beside senders that fill queues, once the RTT stands "
    "above RATIO times the base RTT; 0 takes it away.",
    click.FloatRange(0, 100),
    name="competition_rtt_ratio",
)
@rules_alone_flag
@time_unit_option
def convert_command(
    source: str,
    target: str,
    path_model: bool,
    competition_rtt_ratio: float | None,
    rules_alone: bool,
    time_unit_ms: float,
) -> None:
    """Convert the RemyCC file IN to OUT. The suffixes .dna and .json select the formats.

    Times in OUT are in milliseconds. An existing OUT is replaced atomically.
    """
    remycc = read_remycc(source, time_unit_ms)
    if path_model and rules_alone:
        raise click.UsageError("--path-model and --rules-alone exclude each other; give one.")
    if path_model:
        remycc = remycc.with_path_model()
    elif rules_alone:
        remycc = RemyCC(remycc.table.with_path_model(None), remycc.dna_metadata)
    if competition_rtt_ratio is not None:
        if remycc.table.path_model is None:
            raise click.UsageError(
                f"--compete needs a path model, which {source} does not have; add --path-model."
            )
        remycc = remycc.with_competition(competition_rtt_ratio)
    write_remycc(target, remycc)


@click.command("validate")
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@click.pass_context
def validate_command(context: click.Context, spec_path: str) -> None:
    """Check a specification and print it with all defaults.

    Prints each error as a line on standard error.
    """
    try:
        spec = load_spec(spec_path)
    except SpecError as error:
        for violation in error.violations:
            failures.print_error(f"{error.source}: {violation}")
        context.exit(failures.ExitCode.BAD_INPUT)
    click.echo(f"# {spec_path} is valid; with all defaults:")
    click.echo(to_yaml(spec), nl=False)


_VARIABLE = "_REMY_FARM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print a script that adds completion of remy-farm to a shell.

    For bash, add this line to ~/.bashrc: eval "$(remy-farm completion bash)"
    """
    program = context.find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(program, {}, "remy-farm", _VARIABLE).source())
