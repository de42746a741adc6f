"""What `remy-farm inspect` shows to people."""

from __future__ import annotations

from collections.abc import Sequence

import click

from remy_services.cli.output import plain_table, print_table
from remy_services.explain import Difference, Merging, SignalStudy, is_without_loss
from remy_services.explain.actions import pacing_rate_mbps, settled_window_packets
from remy_services.explain.tree import Action
from remy_services.remycc import ReadableRule
from remy_services.remycc.readable import signal_name
from remy_services.report.rules import ACTION_HEAD, action_cells, region_cells, use_cell
from remy_services.report.wording import number, several, with_error
from remy_simulator import RuleTable

_EFFECT_HEAD = ("settles at", "Mbit/s")
_MOST_CHANGES = 20
_PAIRED = "Differences are paired by specimen, with their standard errors; below zero is a loss."


def print_rules(table: RuleTable, rules: Sequence[ReadableRule]) -> None:
    """The rules, the most-used first."""
    rows = plain_table("rule", *rules[0].region, *ACTION_HEAD, *_EFFECT_HEAD, "use")
    for rule in sorted(rules, key=lambda rule: -(rule.use_share or 0)):
        rows.add_row(
            str(rule.number),
            *region_cells(rule, table.domain_upper),
            *action_cells(rule),
            *_effect_cells(_action_of(rule)),
            use_cell(rule),
        )
    print_table(rows)
    click.echo(
        f"\n{several(len(rules), 'rule')}; EWMAs in ms, domain up to {table.domain_upper:g}. "
        "Applied for ever, an action\nsettles the window at increment / (1 - multiple) packets, "
        "and lets out so many Mbit/s at most."
    )


def print_signal_worth(study: SignalStudy) -> None:
    """The signals, the one that is worth most first."""
    rows = plain_table("without", "score", "difference", left=1)
    rows.add_row("-", with_error(study.score), "")
    for signal in study.signals:
        rows.add_row(
            signal_name(signal.axis),
            with_error(signal.score_without),
            with_error(signal.difference, signed=True),
        )
    print_table(rows)
    click.echo(
        "\nWithout a signal, rules that differ by it alone are one, with their mean action by use."
        f"\n{_PAIRED}"
    )


def print_merging(table: RuleTable, merging: Merging) -> None:
    """The merges that were tried, then the scores of the merged table."""
    if merging.merges:
        rows = plain_table(
            *merging.merges[0].rule.region, "rules", "use", *ACTION_HEAD, "difference", "merged"
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
    scores = plain_table("specimens", "score", "merged", "difference", left=1)
    for name, score, merged, difference in (
        ("chosen on", merging.score, merging.score_merged, merging.difference),
        ("fresh", merging.fresh_score, merging.fresh_score_merged, merging.fresh_difference),
    ):
        scores.add_row(
            name, with_error(score), with_error(merged), with_error(difference, signed=True)
        )
    print_table(scores)
    click.echo(f"\n{several(table.rule_count, 'rule')}, {merging.table.rule_count} when merged.")
    if not is_without_loss(merging.fresh_difference):
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
    if difference.share_of_lookups is not None:
        share = 100 * difference.share_of_lookups
        click.echo(f"{share:.3g} % of the first table's look-ups meet another action.")
        click.echo(
            f"Score {with_error(difference.score_before)}, other "
            f"{with_error(difference.score_after)}, difference "
            f"{with_error(difference.score_difference, signed=True)}."
        )
        click.echo(_PAIRED)


def _print_changes(difference: Difference) -> None:
    first = difference.changes[0].before
    rows = plain_table("rule", "other", *first.region, *ACTION_HEAD, "use")
    for change in difference.changes[:_MOST_CHANGES]:
        after = ReadableRule(
            change.after_rule, change.before.region, *change.after_action, use_share=None
        )
        cells = [
            old if old == new else f"{old} -> {new}"
            for old, new in zip(action_cells(change.before), action_cells(after), strict=True)
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


def _effect_cells(action: Action) -> tuple[str, str]:
    window = settled_window_packets(action)
    grows = window is None and action[1] > 0
    return "grows" if grows else number(window), number(pacing_rate_mbps(action))


def _action_of(rule: ReadableRule) -> Action:
    return (rule.window_multiple, rule.window_increment, rule.intersend_ms)
