"""Converts explanations of tables to the dicts that --json prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from remy_farm.analysis.explain import Change, Difference, PairedScores, SignalStudy
from remy_farm.analysis.merging import Merging
from remy_farm.analysis.trees import (
    pacing_rate,
    pacing_rate_mbps,
    settled_window,
    settled_window_packets,
)
from remy_farm.analysis.wording import estimate_fields
from remy_farm.remycc import ReadableRule, share_beyond_clocks, signal_name
from remy_simulator import RuleTable
from remy_simulator.messages import Action


def rules_dict(
    table: RuleTable, readable: Sequence[ReadableRule], uses: Sequence[int] | None
) -> dict[str, Any]:
    """Returns all rules of a table, by number."""
    return {
        "signals": [signal_name(axis, table.rules) for axis in table.signals],
        "domain_upper": table.domain_upper,
        "path_model": path_model_dict(table),
        "share_beyond_clocks": share_beyond_clocks(readable),
        "rules": [
            {
                "rule": rule.number,
                "region": _region(rule),
                **_action(rule),
                "uses": None if uses is None else uses[rule.number],
                "use_share": rule.use_share,
            }
            for rule in readable
        ],
    }


def path_model_dict(table: RuleTable) -> dict[str, float] | None:
    """Returns the constants of a table's path model by name; None if it has none."""
    return None if table.path_model is None else table.path_model._asdict()


def _scores_dict(scores: PairedScores | None, other: str) -> dict[str, float | None]:
    """Returns the scores of two tables; `other` names the second one in the keys."""
    pair = scores or PairedScores(None, None, None)
    return {
        **estimate_fields(pair.before),
        **estimate_fields(pair.after, f"score_{other}_mean"),
        **estimate_fields(pair.difference, "difference_mean"),
    }


def signal_worth_dict(study: SignalStudy) -> dict[str, Any]:
    """Returns the value of each signal, the most valuable first."""
    return {
        **estimate_fields(study.score),
        "signals": [
            {
                "signal": signal_name(signal.axis, study.rules),
                **estimate_fields(signal.scores.after, "score_without_mean"),
                **estimate_fields(signal.scores.difference, "difference_mean"),
            }
            for signal in study.signals
        ],
    }


def merging_dict(table: RuleTable, result: Merging) -> dict[str, Any]:
    """Returns all merges that were evaluated, and the table after the accepted ones."""
    return {
        "rules": table.rule_count,
        "rules_merged": result.table.rule_count,
        **_scores_dict(result.scores, "merged"),
        "fresh": _scores_dict(result.fresh, "merged"),
        "merges": [
            {
                "region": _region(merge.rule),
                "rules": merge.rules,
                "use_share": merge.rule.use_share,
                **_action(merge.rule),
                **estimate_fields(merge.difference, "difference_mean"),
                "accepted": merge.accepted,
            }
            for merge in result.merges
        ],
    }


def difference_dict(result: Difference) -> dict[str, Any]:
    """Returns every region in which two tables differ."""
    return {
        "signals": [signal_name(axis, result.rules) for axis in result.signals],
        "domain_upper": result.domain_upper,
        "same_regions": result.same_regions,
        "same_path_model": result.same_path_model,
        "regions": result.regions,
        "regions_changed": len(result.changes),
        "share_of_lookups_changed": result.share_of_lookups,
        **_scores_dict(result.scores, "other"),
        "changes": [_change(change) for change in result.changes],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "region": _region(change.before),
        "use_share": change.before.use_share,
        "distance": change.distance,
        "before": {"rule": change.before.number, **_action(change.before)},
        "after": {"rule": change.after_rule, **_action(rule_after(change))},
    }


def rule_after(change: Change) -> ReadableRule:
    """Returns the second table's rule in the region of a change."""
    multiple, increment, intersend_ms = change.after_action
    return replace(
        change.before,
        number=change.after_rule,
        window_multiple=multiple,
        window_increment=increment,
        intersend_ms=intersend_ms,
    )


def _region(rule: ReadableRule) -> dict[str, dict[str, float]]:
    return {signal: {"lower": low, "upper": high} for signal, (low, high) in rule.region.items()}


def action_of(rule: ReadableRule) -> Action:
    """Returns the action of a rule."""
    return Action(
        window_multiple=rule.window_multiple,
        window_increment=rule.window_increment,
        intersend_ms=rule.intersend_ms,
    )


def _action(rule: ReadableRule) -> dict[str, float | None]:
    action = action_of(rule)
    if rule.is_relative:
        return {
            "window_multiple": action.window_multiple,
            "window_increment_percent": action.window_increment,
            "intersend_ratio": action.intersend_ms,
            "settled_window_percent": settled_window(action),
            "pacing_rate_ratio": pacing_rate(action),
        }
    return {
        "window_multiple": action.window_multiple,
        "window_increment": action.window_increment,
        "intersend_ms": action.intersend_ms,
        "settled_window_packets": settled_window_packets(action),
        "pacing_rate_mbps": pacing_rate_mbps(action),
    }
