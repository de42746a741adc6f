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
    json_option,
    option,
    print_json,
    print_pairs,
    print_table,
    seed_option,
    threads_option,
    time_unit_option,
)
from remy_cli.senders import SENDER, TRANSPORT
from remy_farm.analysis import count, estimate_tree, number, with_error
from remy_farm.evaluation import (
    RECEIVED,
    REMYCC,
    Summary,
    Trial,
    Words,
    check_usual_body,
    parse_sender,
)
from remy_farm.remycc import read_remycc, write_remycc
from remy_farm.specification import SpecError, designs, load_spec, load_spec_of_one_table, to_yaml
from remy_proto.v1 import evaluation_pb2


@click.command("evaluate")
@option(
    "--remycc FILE",
    "RemyCC, .dna or .json; of tables designed together each, in the specification's order.",
    FILE,
    name="remycc_paths",
    multiple=True,
)
@option(
    "--sender WHAT",
    "What all senders run, as in simulate: a protocol, or remycc:FILE with a transport.",
    SENDER,
)
@option("--transport TRANSPORT", "What carries it, as in simulate.", TRANSPORT)
@option(
    "--spec SPEC.yaml",
    "Specification: networks, traffic, objective and simulated time.",
    FILE,
    name="spec_path",
    required=True,
)
@option("--specimens N", "Networks to draw.", SPECIMEN_COUNT, required=True)
@seed_option("Names the networks and all other random draws.")
@time_unit_option
@threads_option
@json_option
def evaluate_command(
    remycc_paths: Sequence[str],
    sender: Words | None,
    transport: evaluation_pb2.Choice | None,
    spec_path: str,
    specimens: int,
    seed: int,
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Score a RemyCC or a protocol on networks drawn from a specification.

    The same seed draws the same networks whatever is scored: two compare best with equal seeds.
    Packets count when they are received, on bodies other than datagram when they are in order.
    """
    if bool(remycc_paths) == (sender is not None):
        raise click.UsageError("say what is scored: --remycc FILE, or --sender WHAT")
    words = sender or parse_sender(f"{REMYCC}{remycc_paths[0]}=1")
    if words.count != 1:
        raise click.UsageError(
            f"--sender {words.name}={words.count} counts senders; the specification has the number"
        )
    if words.rtt_ms is not None:
        raise click.UsageError(
            f"--sender {words.name} has an RTT; the specification has those of its networks"
        )
    try:
        check_usual_body([words], transport)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    spec = load_spec(spec_path) if len(remycc_paths) > 1 else load_spec_of_one_table(spec_path)
    if len(remycc_paths) > 1 and len(remycc_paths) != len(names := designs(spec)):
        raise click.UsageError(
            f"--remycc is given {len(remycc_paths)} times, but {spec_path} designs {len(names)} "
            f"({', '.join(names)})"
        )
    paths = remycc_paths or ([words.remycc] if words.remycc is not None else [])
    tables = tuple(rf.load_table(Path(path), time_unit_ms=time_unit_ms) for path in paths)
    scores = rf.evaluate(
        tables or words.name,
        rf.Spec.of_message(spec, spec_path),
        networks=specimens,
        seed=seed,
        transport=words.body or transport,
        threads=threads,
    )
    (score,) = scores
    if as_json:
        # What was printed before there were others stays as it was.
        named = {"throughput_of": score.throughput_of}
        named = {} if score.throughput_of == RECEIVED else named
        print_json({**named, **_tree(score.trial, seed, scores.cpu_seconds)})
    else:
        _print_evaluation(score.trial, scores.cpu_seconds)
        if score.throughput_of != RECEIVED:
            click.echo("Throughput is of packets handed on in order.")


def _tree(trial: Trial, seed: int, cpu_seconds: float) -> dict[str, Any]:
    return {
        **summary_tree(trial.summary()),
        "packets_received": trial.packets_received,
        "seed": seed,
        "by_senders": [
            {"senders": senders, **summary_tree(summary)}
            for senders, summary in trial.by_senders().items()
        ],
        "cpu_seconds": cpu_seconds,
        "digest": trial.digest,
    }


def summary_tree(summary: Summary) -> dict[str, Any]:
    """How a table did on specimens."""
    scored = summary.score.count if summary.score else 0
    return {
        **estimate_tree(summary.score),
        "specimens": summary.specimens,
        "specimens_left_out": summary.specimens - scored,
        "throughput_over_link_rate_median": summary.throughput_over_link_rate,
        "delay_over_rtt_median": summary.delay_over_rtt,
    }


def _print_evaluation(trial: Trial, cpu_seconds: float) -> None:
    table = PlainTable("senders", "specimens", *SUMMARY_HEAD)
    groups = trial.by_senders()
    if len(groups) > 1:
        for senders, summary in groups.items():
            table.add_row(str(senders), *summary_cells(summary))
    table.add_row("all", *summary_cells(trial.summary()), style="bold")
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
        "The score is the mean over specimens with its standard error; the others are medians."
    )


SUMMARY_HEAD = ("score", "throughput / link rate", "delay / RTT")


def summary_cells(summary: Summary) -> tuple[str, str, str, str]:
    """The same for people: specimens, and what stands under SUMMARY_HEAD."""
    return (
        str(summary.specimens),
        with_error(summary.score),
        number(summary.throughput_over_link_rate),
        number(summary.delay_over_rtt),
    )


@click.command("convert")
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@time_unit_option
def convert_command(source: str, target: str, time_unit_ms: float) -> None:
    """Convert the RemyCC in IN to OUT; the endings .dna and .json say which format is which.

    OUT is in milliseconds. It is replaced in one step, or left as it was.
    """
    write_remycc(target, read_remycc(source, time_unit_ms))


@click.command("validate")
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@click.pass_context
def validate_command(context: click.Context, spec_path: str) -> None:
    """Check a specification, and print it complete with its defaults.

    What is wrong with it goes to standard error, one line each.
    """
    try:
        spec = load_spec(spec_path)
    except SpecError as error:
        for violation in error.violations:
            failures.complain(f"{error.source}: {violation}")
        context.exit(failures.ExitCode.BAD_INPUT)
    click.echo(f"# {spec_path} is valid; with all defaults it reads:")
    click.echo(to_yaml(spec), nl=False)


_VARIABLE = "_REMY_FARM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script that has a shell complete what is typed after remy-farm.

    As a line in ~/.bashrc: eval "$(remy-farm completion bash)"
    """
    program = context.find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(program, {}, "remy-farm", _VARIABLE).source())
