"""`remy-farm evaluate`: a RemyCC on networks drawn from a specification."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import click

from remy_services.cli.options import FILE, json_option, seed_option, threads_option
from remy_services.cli.output import plain_table, print_json, print_pairs, print_table
from remy_services.evaluation import LocalEvaluator
from remy_services.remycc import read_remycc
from remy_services.report.trial import Summary, Trial, try_table
from remy_services.report.wording import count, number, with_error
from remy_services.spec import load_spec


@click.command("evaluate")
@click.option(
    "--remycc",
    "remycc_path",
    type=FILE,
    required=True,
    metavar="FILE",
    help="RemyCC, .dna or .json.",
)
@click.option(
    "--spec",
    "spec_path",
    type=FILE,
    required=True,
    metavar="SPEC.yaml",
    help="Specification: networks, traffic, objective and simulated time.",
)
@click.option(
    "--specimens",
    type=click.IntRange(1, 1_000_000),
    required=True,
    metavar="N",
    help="Networks to draw.",
)
@seed_option(default=1, text="Names the networks and all other random draws.")
@threads_option()
@json_option()
def command(
    remycc_path: str, spec_path: str, specimens: int, seed: int, threads: int, as_json: bool
) -> None:
    """Score a RemyCC on networks drawn from a specification.

    The same seed draws the same networks whatever the RemyCC: two RemyCCs compare best with equal
    seeds.
    """
    spec = load_spec(spec_path)
    table = read_remycc(remycc_path).table
    started = time.process_time()
    with closing(LocalEvaluator(threads)) as evaluator:
        trial = try_table(spec, table, seed=seed, specimens=specimens, evaluate=evaluator.evaluate)
    cpu_seconds = time.process_time() - started
    if as_json:
        print_json(_tree(trial, seed, cpu_seconds))
    else:
        _print_for_people(trial, cpu_seconds)


def _tree(trial: Trial, seed: int, cpu_seconds: float) -> dict[str, Any]:
    return {
        **_summary_tree(trial.summary()),
        "packets_received": trial.packets_received,
        "seed": seed,
        "by_senders": [
            {"senders": senders, **_summary_tree(summary)}
            for senders, summary in trial.by_senders().items()
        ],
        "cpu_seconds": cpu_seconds,
        "digest": trial.digest,
    }


def _summary_tree(summary: Summary) -> dict[str, Any]:
    score = summary.score
    return {
        "score_mean": score.mean if score else None,
        "score_stderr": score.standard_error if score else None,
        "specimens": summary.specimens,
        "specimens_left_out": summary.specimens - (score.count if score else 0),
        "throughput_over_link_rate_median": summary.throughput_over_link_rate,
        "delay_over_rtt_median": summary.delay_over_rtt,
    }


def _print_for_people(trial: Trial, cpu_seconds: float) -> None:
    table = plain_table("senders", "specimens", "score", "throughput / link rate", "delay / RTT")
    groups = trial.by_senders()
    if len(groups) > 1:
        for senders, summary in groups.items():
            table.add_row(str(senders), *_cells(summary))
    table.add_row("all", *_cells(trial.summary()), style="bold")
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


def _cells(summary: Summary) -> tuple[str, str, str, str]:
    return (
        str(summary.specimens),
        with_error(summary.score),
        number(summary.throughput_over_link_rate),
        number(summary.delay_over_rtt),
    )
