"""`remy-farm inspect`: a RemyCC's rules, and what explains them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click

from remy_services.cli import inspect_json, inspect_text
from remy_services.cli.options import FILE, json_option, seed_option, threads_option
from remy_services.cli.output import print_json
from remy_services.cli.progress_lines import ProgressLines
from remy_services.evaluation import LocalEvaluator
from remy_services.explain import (
    Bench,
    ExplainError,
    compare_tables,
    merge_siblings,
    worth_of_signals,
)
from remy_services.files import FileError
from remy_services.remycc import (
    RemyCC,
    RemyCCError,
    check_remycc_name,
    read_remycc,
    readable_rules,
    write_remycc,
)
from remy_services.spec import load_spec
from remy_simulator import RuleTable


@click.command("inspect")
@click.argument("remycc_path", metavar="FILE", type=FILE)
@click.option(
    "--spec",
    "spec_path",
    type=FILE,
    metavar="SPEC.yaml",
    help="Count the rules' use, and measure scores, on networks drawn from this specification.",
)
@click.option(
    "--specimens",
    type=click.IntRange(1, 1_000_000),
    default=16,
    show_default=True,
    metavar="N",
    help="Networks to draw for that.",
)
@seed_option(default=1, text="Names those networks and all other random draws.")
@click.option("--signals", is_flag=True, help="Measure what each signal is worth.")
@click.option("--merge", is_flag=True, help="Find sibling rules that can be merged without loss.")
@click.option(
    "--merge-out",
    type=FILE,
    metavar="OUT",
    help="Write the RemyCC with these rules merged; implies --merge.",
)
@click.option(
    "--diff",
    "other_path",
    type=FILE,
    metavar="OTHER",
    help="Show what the RemyCC in OTHER does differently.",
)
@threads_option()
@json_option()
def command(
    remycc_path: str,
    spec_path: str | None,
    specimens: int,
    seed: int,
    signals: bool,
    merge: bool,
    merge_out: str | None,
    other_path: str | None,
    threads: int,
    as_json: bool,
) -> None:
    """Explain the RemyCC in FILE; without other flags, show its rules: region, action, use.

    A rule applies where every signal lies in its interval, the lower end included. Its action sets
    the window to multiple * window + increment packets, and the least time between two sends. How
    much each rule is used depends on the networks: name some with --spec, and the most-used rules
    come first.
    """
    merge = merge or merge_out is not None
    _check_flags(spec_path, signals=signals, merge=merge, diff=other_path is not None)
    if merge_out is not None:
        _check_target(merge_out)
    remycc = read_remycc(remycc_path)
    other = None if other_path is None else read_remycc(other_path).table
    with ExitStack() as stack:
        bench = None
        if spec_path is not None:
            spec = load_spec(spec_path)
            evaluator = stack.enter_context(closing(LocalEvaluator(threads)))
            bench = Bench(spec, seed, specimens, evaluator.evaluate)
        try:
            if other is not None:
                _show_difference(remycc.table, other, bench, as_json)
            elif bench is not None and (signals or merge):
                _show_measured(remycc, bench, signals, merge, merge_out, as_json)
            else:
                uses = None if bench is None else bench.trial(remycc.table).rule_uses
                _show_rules(remycc.table, uses, as_json)
        except ExplainError as error:
            name = remycc_path if other_path is None else f"{other_path} on {remycc_path}"
            raise RemyCCError(f"{name} cannot be explained: {error}") from error


def _check_flags(spec_path: str | None, *, signals: bool, merge: bool, diff: bool) -> None:
    if diff and (signals or merge):
        raise click.UsageError("--diff explains two RemyCCs, --signals and --merge explain one")
    if (signals or merge) and spec_path is None:
        flag = "--signals" if signals else "--merge"
        raise click.UsageError(f"{flag} measures scores and needs the networks of a --spec")


def _check_target(merge_out: str) -> None:
    """What is measured for minutes must not be lost for a file that cannot be written."""
    check_remycc_name(merge_out)
    folder = Path(merge_out).parent
    if not folder.is_dir():
        raise FileError(f"{merge_out}: cannot be written ({folder} is not a folder)")


def _show_rules(table: RuleTable, uses: Sequence[int] | None, as_json: bool) -> None:
    rules = readable_rules(table, uses)
    if as_json:
        print_json(inspect_json.rules(table, rules, uses))
    else:
        inspect_text.print_rules(table, rules)


def _show_difference(
    first: RuleTable, second: RuleTable, bench: Bench | None, as_json: bool
) -> None:
    difference = compare_tables(first, second, bench)
    if as_json:
        print_json(inspect_json.difference(difference))
    else:
        inspect_text.print_difference(difference)


def _show_measured(
    remycc: RemyCC,
    bench: Bench,
    signals: bool,
    merge: bool,
    merge_out: str | None,
    as_json: bool,
) -> None:
    tree: dict[str, Any] = {"specimens": bench.specimens, "seed": bench.seed}
    lines = ProgressLines()
    if signals:
        study = worth_of_signals(remycc.table, bench, lines)
        tree["signal_worth"] = inspect_json.signal_worth(study)
        if not as_json:
            inspect_text.print_signal_worth(study)
    if merge:
        merging = merge_siblings(remycc.table, bench, lines)
        if merge_out is not None:
            write_remycc(merge_out, RemyCC(merging.table, remycc.dna_metadata))
        tree["merging"] = {
            **inspect_json.merging(remycc.table, merging),
            "written": merge_out,
        }
        if not as_json:
            if signals:
                click.echo()
            inspect_text.print_merging(remycc.table, merging)
            if merge_out is not None:
                click.echo(f"The merged table is in {merge_out}.")
    if as_json:
        print_json(tree)
