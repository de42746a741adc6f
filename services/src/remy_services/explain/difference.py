"""How two tables differ."""

from __future__ import annotations

from dataclasses import dataclass

from remy_services.explain.actions import ActionScale
from remy_services.explain.bench import Bench
from remy_services.explain.tree import Action, Box, leaves, map_leaves, overlay, table_of, tree_of
from remy_services.remycc import ReadableRule, readable_rules
from remy_services.report.trial import Estimate
from remy_simulator import RuleTable


@dataclass(frozen=True, slots=True)
class Change:
    """A region in which the first table has one rule and the second has one."""

    before: ReadableRule
    """The region, the first table's action and rule number; the share of its look-ups there."""
    after_rule: int
    after_action: Action
    distance: float
    """Between the two actions, in the coordinates of docs/algorithm.md."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What the second of two tables does differently."""

    signals: tuple[int, ...]
    """Axes of either table."""
    domain_upper: float
    same_regions: bool
    """Whether both divide memory space in the same way."""
    regions: int
    """Pieces that both leave undivided, without those that hold no memory value."""
    changes: tuple[Change, ...]
    """Those of them in which the actions differ, by use times distance, largest first."""
    share_of_lookups: float | None
    """How many of the first table's look-ups meet another action; None without a bench."""
    score_before: Estimate | None
    score_after: Estimate | None
    score_difference: Estimate | None
    """Second minus first, on the same specimens."""


def compare_tables(first: RuleTable, second: RuleTable, bench: Bench | None) -> Difference:
    """Lays the tables' regions over each other and compares the actions in each piece.

    With a bench, the first table is simulated with its rules cut into these pieces, so that its
    look-ups are counted exactly; without one, changes are ranked by distance alone. Raises
    ExplainError if the tables are too fine or too deep to be laid over each other.
    """
    # Beyond a table's domain its outermost rules go on, so that the larger domain serves both.
    domain_upper = max(first.domain_upper, second.domain_upper)
    signals = sorted({*first.signals, *second.signals})
    pieces = overlay(tree_of(first), tree_of(second), Box.whole(domain_upper), lambda a, b: (a, b))
    cut = table_of(map_leaves(pieces, lambda pair: first.action(pair[0])), signals, domain_upper)
    before = bench.trial(cut) if bench else None
    after = bench.trial(second) if bench else None
    scale = ActionScale(
        table.action(rule) for table in (first, second) for rule in range(table.rule_count)
    )
    regions, changes = 0, []
    readable = readable_rules(cut, before.rule_uses if before else None)
    for piece, (a, b) in zip(readable, leaves(pieces), strict=True):
        if any(low >= high for low, high in piece.region.values()):
            continue
        regions += 1
        if first.action(a) != second.action(b):
            distance = scale.distance(first.action(a), second.action(b))
            rule = ReadableRule(a, piece.region, *first.action(a), use_share=piece.use_share)
            changes.append(Change(rule, b, second.action(b), distance))
    changes.sort(key=_rank)
    return Difference(
        signals=tuple(signals),
        domain_upper=domain_upper,
        same_regions=_structure(first) == _structure(second),
        regions=regions,
        changes=tuple(changes),
        share_of_lookups=_share(changes) if bench else None,
        score_before=before.summary().score if before else None,
        score_after=after.summary().score if after else None,
        score_difference=bench.difference(before, after) if bench and before and after else None,
    )


def _rank(change: Change) -> tuple[float, float, int]:
    share = change.before.use_share
    weight = 1.0 if share is None else share
    return (-weight * change.distance, -change.distance, change.before.number)


def _share(changes: list[Change]) -> float:
    return sum(change.before.use_share or 0.0 for change in changes)


def _structure(table: RuleTable) -> list[list[tuple[int, float]]]:
    return [thresholds for thresholds, _ in table.nodes()]
