"""`remy-farm inspect`: a RemyCC's rules, and what explains them."""

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
    json_option,
    option,
    print_json,
    print_note,
    print_table,
    say,
    seed_option,
    switch,
    threads_option,
    time_unit_option,
)
from remy_cli.reproduce import FOLDER
from remy_cli.robustness import certify_table, robustness_option, show_certificate
from remy_farm.analysis import (
    Difference,
    ExplainError,
    Merging,
    SignalStudy,
    action_cells,
    action_head,
    action_of,
    is_without_loss,
    number,
    pacing_rate,
    pacing_rate_mbps,
    region_cells,
    rule_after,
    settled_window,
    settled_window_packets,
    several,
    use_cell,
    with_error,
)
from remy_farm.files import FileError
from remy_farm.remycc import (
    ReadableRule,
    RemyCC,
    RemyCCError,
    check_remycc_name,
    sentence_of_clocks,
    signal_name,
    write_remycc,
)
from remy_farm.specification import load_spec_of_one_table
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

_ABSOLUTE = (
    "EWMAs in ms, domain up to {domain_upper:g}. Applied for ever, an action settles the window at "
    "increment / (1 - multiple) packets, and lets out so many Mbit/s at most."
)
_SCALE_FREE = (
    "scale-free: % are of the measured bandwidth-delay product (smallest RTT / rec_ewma), x are "
    "multiples of the measured interval between packets (rec_ewma) or of its rate. A rule for "
    "when nothing is measured is in packets and ms. An age is that at which slow_rec_ratio gets "
    "there while ACKs come at an even pace. Applied for ever, an action settles the window at "
    "increment / (1 - multiple)."
)
_MOST_CHANGES = 20
_PAIRED = "Differences are paired by specimen, with their standard errors; below zero is a loss."


def print_rules(table: RuleTable, rules: Sequence[ReadableRule]) -> None:
    """The rules, the most-used first."""
    is_absolute = table.rules == rule_table_pb2.RULES_ABSOLUTE
    effect_head = ("settles at", "Mbit/s" if is_absolute else "paced at")
    rows = PlainTable("rule", *rules[0].region, *action_head(table.rules), *effect_head, "use")
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
        f"{several(len(rules), 'rule')}; "
        + (_ABSOLUTE.format(domain_upper=table.domain_upper) if is_absolute else _SCALE_FREE)
    )
    if said := sentence_of_clocks(rules):
        print_note(said)


def print_signal_worth(study: SignalStudy) -> None:
    """The signals, the one that is worth most first."""
    rows = PlainTable("without", "score", "difference", left=1)
    rows.add_row("-", with_error(study.score), "")
    for signal in study.signals:
        rows.add_row(
            signal_name(signal.axis, study.rules),
            with_error(signal.scores.after),
            with_error(signal.scores.difference, signed=True),
        )
    print_table(rows)
    print_note(
        "Without a signal, rules that differ by it alone are one, with their mean action by use. "
        + _PAIRED
    )


def print_merging(table: RuleTable, merging: Merging, *, priced: bool) -> None:
    """The merges that were tried, then the scores of the merged table; if merges were `priced`,
    losing is what was asked for."""
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
                with_error(merge.difference, signed=True),
                "yes" if merge.accepted else "no",
            )
        print_table(rows)
        click.echo()
    scores = PlainTable("specimens", "score", "merged", "difference", left=1)
    for name, pair in (("chosen on", merging.scores), ("fresh", merging.fresh)):
        difference = with_error(pair.difference, signed=True)
        scores.add_row(name, with_error(pair.before), with_error(pair.after), difference)
    print_table(scores)
    click.echo(f"\n{several(table.rule_count, 'rule')}, {merging.table.rule_count} when merged.")
    if not priced and not is_without_loss(merging.fresh.difference):
        click.echo(
            "On fresh specimens the merged table loses more than two standard errors; more "
            "specimens choose better."
        )
    click.echo(_PAIRED)


def print_difference(difference: Difference) -> None:
    """The largest changes, then what they amount to."""
    if difference.changes:
        _print_changes(difference)
    regions = "the same regions" if difference.same_regions else "regions that cut each other"
    click.echo(
        f"{len(difference.changes)} of {several(difference.regions, 'region')} differ in action; "
        f"the tables have {regions}."
    )
    if difference.share_of_lookups is not None and (scores := difference.scores) is not None:
        share = 100 * difference.share_of_lookups
        click.echo(f"{share:.3g} % of the first table's look-ups meet another action.")
        click.echo(
            f"Score {with_error(scores.before)}, other {with_error(scores.after)}, difference "
            f"{with_error(scores.difference, signed=True)}."
        )
        click.echo(_PAIRED)


def _print_changes(difference: Difference) -> None:
    first = difference.changes[0].before
    rows = PlainTable("rule", "other", *first.region, *action_head(first.rules), "use")
    for change in difference.changes[:_MOST_CHANGES]:
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
    rest = len(difference.changes) - _MOST_CHANGES
    if rest > 0:
        click.echo(f"... and {rest} more; --json has them all.")
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
    settled = "grows" if grows else _with_unit(window, units[0])
    return settled, _with_unit(rate, units[1])


def _with_unit(value: float | None, unit: str) -> str:
    return number(value) + ("" if value is None else unit)


_SECONDS_BETWEEN_LINES = 2.0


class ProgressLines:
    """A line now and then; none where the work is done before one is due."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at_seconds = clock()

    def __call__(self, part: str, tried: int, tables: int) -> None:
        """Says how far the work has got, unless it has just been said."""
        now = self._clock()
        if now - self._said_at_seconds >= _SECONDS_BETWEEN_LINES:
            self._said_at_seconds = now
            say(f"{part}: {tried} of {tables} tried")


@click.command("inspect")
@click.argument("remycc_path", metavar="FILE", type=FILE)
@option(
    "--spec SPEC.yaml",
    "Count the rules' use, and measure scores, on networks drawn from this specification.",
    FILE,
    name="spec_path",
)
@option("--specimens N", "Networks to draw for that.", SPECIMEN_COUNT, default=16)
@seed_option("Names those networks and all other random draws.")
@switch("--signals", "Measure what each signal is worth.")
@switch("--merge", "Find sibling rules that can be merged without loss.")
@option(
    "--price-per-rule P",
    "Merge rules that are worth less, in the objective's unit; implies --merge.",
    NOT_NEGATIVE,
    name="price",
)
@option("--merge-out OUT", "Write the RemyCC with these rules merged; implies --merge.", FILE)
@option("--diff OTHER", "Show what the RemyCC in OTHER does differently.", FILE, name="other_path")
@option(
    "--certify DIR",
    "Have it meet the requirements of robustness, and write certificate.html and .json there.",
    FOLDER,
)
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
    requirements: Path,
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Explain the RemyCC in FILE; without other flags, show its rules: region, action, use.

    A rule applies where every signal lies in its interval, the lower end included. Its action sets
    the window to multiple * window + increment packets, and the least time between two sends. How
    much each rule is used depends on the networks: name some with --spec, and the most-used rules
    come first.

    With --certify it runs on sets of networks apart from training, on each of which it must have a
    score; where it has not, it is refused (exit code 6).
    """
    if certify is not None:
        if spec_path or merge or signals or other_path or merge_out or price is not None:
            raise click.UsageError("--certify has networks of its own, and goes with no other view")
        certificate = certify_table(
            remycc_path,
            certify,
            requirements,
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
        None if spec_path is None else rf.Spec.of_message(load_spec_of_one_table(spec_path)),
        networks=specimens,
        seed=seed,
        threads=threads,
        on_progress=ProgressLines(),
    )
    try:
        if other is not None:
            _show_difference(explanation.difference(other), as_json=as_json)
        elif signals or merge:
            tree = {"specimens": specimens, "seed": seed}
            asked = _Asked(signals, merge, price, merge_out)
            _show_measured(table, explanation, asked, tree, as_json=as_json)
        elif as_json:
            print_json(explanation.to_dict())
        else:
            used = explanation.table
            print_rules(used.rule_table, used.rules)
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


@dataclass(frozen=True)
class _Asked:
    """What is to be measured."""

    signals: bool
    merge: bool
    price: float | None
    merge_out: str | None


def _show_difference(difference: rf.Explained[Difference], *, as_json: bool) -> None:
    if as_json:
        print_json(difference.to_dict())
    else:
        print_difference(difference.found)


def _show_measured(
    table: rf.Table,
    explanation: rf.Explanation,
    asked: _Asked,
    tree: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    if asked.signals:
        study = explanation.signal_worth()
        tree["signal_worth"] = study.to_dict()
        if not as_json:
            print_signal_worth(study.found)
    if asked.merge:
        merging = explanation.merged(price=asked.price)
        if asked.merge_out is not None:
            merged = RemyCC(merging.found.table, table.remycc.dna_metadata)
            write_remycc(asked.merge_out, merged)
        tree["merging"] = {**merging.to_dict(), "written": asked.merge_out}
        if not as_json:
            if asked.signals:
                click.echo()
            print_merging(table.rule_table, merging.found, priced=asked.price is not None)
            if asked.merge_out is not None:
                click.echo(f"The merged table is in {asked.merge_out}.")
    if as_json:
        print_json(tree)
