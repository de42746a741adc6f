"""`remy-farm inspect`: shows, explains, merges, compares and certifies a RemyCC's rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import remy_farm as rf
from remy_cli.common import (
    FILE,
    NOT_NEGATIVE,
    SPECIMEN_COUNT,
    PlainTable,
    examples,
    flag,
    json_option,
    option,
    print_json,
    print_note,
    print_status,
    print_table,
    seed_option,
    threads_option,
    time_unit_option,
)
from remy_cli.reproduce import FOLDER
from remy_cli.robustness import certify_table, require_option, robustness_option, show_certificate
from remy_farm.analysis import (
    Difference,
    ExplainError,
    Merging,
    SignalStudy,
    action_cells,
    action_head,
    action_of,
    format_estimate,
    is_without_loss,
    number,
    pacing_rate,
    pacing_rate_mbps,
    plural,
    region_cells,
    rule_after,
    settled_window,
    settled_window_packets,
    use_cell,
)
from remy_farm.files import FileError
from remy_farm.remycc import (
    ReadableRule,
    RemyCC,
    RemyCCError,
    check_remycc_name,
    clock_precision_sentence,
    path_model_sentence,
    signal_name,
    write_remycc,
)
from remy_farm.specification import load_single_table_spec
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

_ABSOLUTE = (
    "EWMAs are in ms; signals range up to {domain_upper:g}. If a rule always applies, the window "
    "settles at increment / (1 - multiple) packets, and pacing limits the rate to the given Mbit/s."
)
_SCALE_FREE = (
    "scale-free: % means percent of the measured bandwidth-delay product (minimum RTT / rec_ewma); "
    "x means multiples of the measured packet interval (rec_ewma) or of its rate. A rule that "
    "applies before anything is measured is in packets and ms. An age is the time after which "
    "slow_rec_ratio reaches the bound if ACKs arrive at a constant rate. If a rule always applies, "
    "the window settles at increment / (1 - multiple)."
)
_MAX_CHANGES = 20
_PAIRED = "Differences are paired by specimen, with standard errors; negative means a lower score."


def print_rules(table: RuleTable, rules: Sequence[ReadableRule]) -> None:
    """Prints the rules, most-used first, and the path model."""
    is_absolute = table.rules == rule_table_pb2.RULES_ABSOLUTE
    effect_columns = ("settles at", "Mbit/s" if is_absolute else "paced at")
    rows = PlainTable("rule", *rules[0].region, *action_head(table.rules), *effect_columns, "use")
    for rule in sorted(rules, key=lambda rule: -(rule.use_share or 0)):
        rows.add_row(
            str(rule.number),
            *region_cells(rule, table.domain_upper),
            *action_cells(rule),
            *_effect_cells(rule),
            use_cell(rule),
        )
    print_table(rows)
    print_note(
        f"{plural(len(rules), 'rule')}; "
        + (_ABSOLUTE.format(domain_upper=table.domain_upper) if is_absolute else _SCALE_FREE)
    )
    if clocks := clock_precision_sentence(rules):
        print_note(clocks)
    if path_model := path_model_sentence(table):
        print_note(path_model)


def print_signal_worth(study: SignalStudy) -> None:
    """Prints the signals, most valuable first."""
    rows = PlainTable("without", "score", "difference", left=1)
    rows.add_row("-", format_estimate(study.score), "")
    for signal in study.signals:
        rows.add_row(
            signal_name(signal.axis, study.rules),
            format_estimate(signal.scores.after),
            format_estimate(signal.scores.difference, signed=True),
        )
    print_table(rows)
    print_note(
        "Without a signal, rules that differ only in it are merged, with their mean action by use. "
        + _PAIRED
    )


def print_merging(table: RuleTable, merging: Merging, *, priced: bool) -> None:
    """Prints the attempted merges, then the scores of the merged table.

    `priced` is true if the user set a price per rule, which accepts a lower score; otherwise a
    loss on fresh specimens is pointed out.
    """
    if merging.merges:
        rows = PlainTable(
            *merging.merges[0].rule.region,
            "rules",
            "use",
            *action_head(table.rules),
            "difference",
            "merged",
        )
        for merge in merging.merges:
            rows.add_row(
                *region_cells(merge.rule, table.domain_upper),
                str(merge.rules),
                use_cell(merge.rule),
                *action_cells(merge.rule),
                format_estimate(merge.difference, signed=True),
                "yes" if merge.accepted else "no",
            )
        print_table(rows)
        click.echo()
    scores = PlainTable("specimens", "score", "merged", "difference", left=1)
    for name, pair in (("chosen on", merging.scores), ("fresh", merging.fresh)):
        difference = format_estimate(pair.difference, signed=True)
        scores.add_row(name, format_estimate(pair.before), format_estimate(pair.after), difference)
    print_table(scores)
    click.echo(f"\n{plural(table.rule_count, 'rule')}, {merging.table.rule_count} after merging.")
    if not priced and not is_without_loss(merging.fresh.difference):
        click.echo(
            "On fresh specimens the merged table loses more than two standard errors; use more "
            "specimens to choose the merges."
        )
    click.echo(_PAIRED)


def print_difference(difference: Difference) -> None:
    """Prints the largest changes, then a summary."""
    if difference.changes:
        _print_changes(difference)
    regions = "the same regions" if difference.same_regions else "different regions"
    click.echo(
        f"{len(difference.changes)} of {plural(difference.regions, 'region')} differ in action; "
        f"the tables have {regions}."
    )
    if not difference.same_path_model:
        click.echo("The tables have different path models, which also affects the scores.")
    if difference.share_of_lookups is not None and (scores := difference.scores) is not None:
        share = 100 * difference.share_of_lookups
        click.echo(f"{share:.3g} % of the first table's look-ups have a different action.")
        click.echo(
            f"Score {format_estimate(scores.before)}, other {format_estimate(scores.after)}, "
            f"difference {format_estimate(scores.difference, signed=True)}."
        )
        click.echo(_PAIRED)


def _print_changes(difference: Difference) -> None:
    first = difference.changes[0].before
    rows = PlainTable("rule", "other", *first.region, *action_head(first.rules), "use")
    for change in difference.changes[:_MAX_CHANGES]:
        cells = [
            old if old == new else f"{old} -> {new}"
            for old, new in zip(
                action_cells(change.before), action_cells(rule_after(change)), strict=True
            )
        ]
        rows.add_row(
            str(change.before.number),
            str(change.after_rule),
            *region_cells(change.before, difference.domain_upper),
            *cells,
            use_cell(change.before),
        )
    print_table(rows)
    remaining = len(difference.changes) - _MAX_CHANGES
    if remaining > 0:
        click.echo(f"... and {remaining} more; --json lists all.")
    click.echo()


def _effect_cells(rule: ReadableRule) -> tuple[str, str]:
    action = action_of(rule)
    window = settled_window(action) if rule.is_relative else settled_window_packets(action)
    rate = pacing_rate(action) if rule.is_relative else pacing_rate_mbps(action)
    if rule.rules == rule_table_pb2.RULES_ABSOLUTE:
        units = ("", "")
    else:
        units = (" %", " x") if rule.is_relative else (" packets", " Mbit/s")
    grows = window is None and action[1] > 0
    window_text = "grows" if grows else _with_unit(window, units[0])
    return window_text, _with_unit(rate, units[1])


def _with_unit(value: float | None, unit: str) -> str:
    return number(value) + ("" if value is None else unit)


_SECONDS_BETWEEN_LINES = 2.0


class ProgressLines:
    """Prints a progress line at most every two seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_line_seconds = clock()

    def __call__(self, part: str, evaluated: int, tables: int) -> None:
        """Prints how many tables of this part were evaluated, unless a line was just printed."""
        now = self._clock()
        if now - self._last_line_seconds >= _SECONDS_BETWEEN_LINES:
            self._last_line_seconds = now
            print_status(f"{part}: {evaluated} of {tables} evaluated")


@click.command(
    "inspect",
    epilog=examples(
        "remy-farm inspect design/remycc.json --spec spec.yaml",
        "remy-farm inspect design/remycc.json --diff other.json",
        "remy-farm inspect design/remycc.json --certify certificate",
    ),
)
@click.argument("remycc_path", metavar="FILE", type=FILE)
@option(
    "--spec SPEC.yaml",
    "Specification whose networks are used to count rule uses and to measure scores.",
    FILE,
    name="spec_path",
)
@option("--specimens N", "Number of networks to draw from --spec.", SPECIMEN_COUNT, default=16)
@seed_option("Seed of those networks and of all other random draws.")
@flag("--signals", "Measure how much score each signal contributes.")
@flag("--merge", "Find sibling rules that can be merged without losing score.")
@option(
    "--price-per-rule P",
    "Merge rules that contribute less than P to the score; implies --merge.",
    NOT_NEGATIVE,
    name="price",
)
@option(
    "--merge-out OUT", "Write the RemyCC with merged rules to this file; implies --merge.", FILE
)
@option("--diff OTHER", "Compare with the RemyCC in OTHER.", FILE, name="other_path")
@option(
    "--certify DIR",
    "Check the robustness requirements; write certificate.html and certificate.json to DIR.",
    FOLDER,
)
@require_option
@robustness_option
@time_unit_option
@threads_option
@json_option
def command(
    remycc_path: str,
    spec_path: str | None,
    specimens: int,
    seed: int,
    signals: bool,
    merge: bool,
    price: float | None,
    merge_out: str | None,
    other_path: str | None,
    certify: Path | None,
    required: tuple[str, ...],
    requirements: Path,
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Show and explain the rules of the RemyCC in FILE: region, action, use.

    A rule applies when every signal lies in its interval, which includes the lower bound. Its
    action sets the window to multiple * window + increment packets, and sets the minimum time
    between two sends. Rule use depends on the networks, so give --spec to count it; the most-used
    rules are then listed first.

    With --certify, the RemyCC runs on sets of networks that are not used for training, and must
    stay within bounds on each network. Otherwise it is refused, with exit code 6.
    """
    if certify is not None:
        if spec_path or merge or signals or other_path or merge_out or price is not None:
            raise click.UsageError(
                "--certify has its own networks and cannot be combined with other views or --spec"
            )
        certificate = certify_table(
            remycc_path,
            certify,
            requirements,
            required=required,
            time_unit_ms=time_unit_ms,
            threads=threads,
            quiet=as_json,
        )
        show_certificate(certificate, certify, as_json=as_json)
        return
    merge = merge or merge_out is not None or price is not None
    _check_flags(spec_path, signals=signals, merge=merge, diff=other_path is not None)
    if merge_out is not None:
        _check_target(merge_out)
    table = rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms)
    other = None
    if other_path is not None:
        other = rf.load_table(Path(other_path), time_unit_ms=time_unit_ms)
    explanation = rf.explain(
        table,
        None if spec_path is None else rf.Spec.of_message(load_single_table_spec(spec_path)),
        networks=specimens,
        seed=seed,
        threads=threads,
        on_progress=ProgressLines(),
    )
    try:
        if other is not None:
            _show_difference(explanation.difference(other), as_json=as_json)
        elif signals or merge:
            results = {"specimens": specimens, "seed": seed}
            request = _Measurements(signals, merge, price, merge_out)
            _show_measurements(table, explanation, request, results, as_json=as_json)
        elif as_json:
            print_json(explanation.to_dict())
        else:
            table_with_use = explanation.table
            print_rules(table_with_use.rule_table, table_with_use.rules)
    except ExplainError as error:
        name = remycc_path if other_path is None else f"{other_path} on {remycc_path}"
        raise RemyCCError(f"{name} cannot be explained: {error}") from error


def _check_flags(spec_path: str | None, *, signals: bool, merge: bool, diff: bool) -> None:
    if diff and (signals or merge):
        raise click.UsageError(
            "--diff compares two RemyCCs and excludes --signals and --merge, which explain one"
        )
    if (signals or merge) and spec_path is None:
        name = "--signals" if signals else "--merge"
        raise click.UsageError(f"{name} measures scores, which needs --spec for the networks")


def _check_target(merge_out: str) -> None:
    """Checks that --merge-out is writable, before minutes of measurements."""
    check_remycc_name(merge_out)
    directory = Path(merge_out).parent
    if not directory.is_dir():
        raise FileError(f"{merge_out}: cannot be written ({directory} is not a directory)")


@dataclass(frozen=True)
class _Measurements:
    """Measurements that the user requested."""

    signals: bool
    merge: bool
    price: float | None
    merge_out: str | None


def _show_difference(difference: rf.Explained[Difference], *, as_json: bool) -> None:
    if as_json:
        print_json(difference.to_dict())
    else:
        print_difference(difference.found)


def _show_measurements(
    table: rf.Table,
    explanation: rf.Explanation,
    request: _Measurements,
    results: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    if request.signals:
        study = explanation.signal_worth()
        results["signal_worth"] = study.to_dict()
        if not as_json:
            print_signal_worth(study.found)
    if request.merge:
        merging = explanation.merged(price=request.price)
        if request.merge_out is not None:
            merged = RemyCC(merging.found.table, table.remycc.dna_metadata)
            write_remycc(request.merge_out, merged)
        results["merging"] = {**merging.to_dict(), "written": request.merge_out}
        if not as_json:
            if request.signals:
                click.echo()
            print_merging(table.rule_table, merging.found, priced=request.price is not None)
            if request.merge_out is not None:
                click.echo(f"The merged table is in {request.merge_out}.")
    if as_json:
        print_json(results)
