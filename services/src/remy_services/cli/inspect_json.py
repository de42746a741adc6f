"""What `remy-farm inspect --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remy_services.explain import Change, Difference, Merging, SignalStudy
from remy_services.explain.actions import pacing_rate_mbps, settled_window_packets
from remy_services.explain.tree import Action
from remy_services.remycc import ReadableRule
from remy_services.remycc.readable import signal_name
from remy_services.report.trial import Estimate
from remy_simulator import RuleTable


def rules(
    table: RuleTable, readable: Sequence[ReadableRule], uses: Sequence[int] | None
) -> dict[str, Any]:
    """All rules by number."""
    return {
        "signals": [signal_name(axis) for axis in table.signals],
        "domain_upper": table.domain_upper,
        "rules": [
            {
                "rule": rule.number,
                "region": _region(rule),
                **_action(_action_of(rule)),
                "uses": None if uses is None else uses[rule.number],
                "use_share": rule.use_share,
            }
            for rule in readable
        ],
    }


def signal_worth(study: SignalStudy) -> dict[str, Any]:
    """Each signal, the one that is worth most first."""
    return {
        **_estimate("score", study.score),
        "signals": [
            {
                "signal": signal_name(signal.axis),
                **_estimate("score_without", signal.score_without),
                **_estimate("difference", signal.difference),
            }
            for signal in study.signals
        ],
    }


def merging(table: RuleTable, result: Merging) -> dict[str, Any]:
    """All merges that were tried, and the table with those that were accepted."""
    return {
        "rules": table.rule_count,
        "rules_merged": result.table.rule_count,
        **_estimate("score", result.score),
        **_estimate("score_merged", result.score_merged),
        **_estimate("difference", result.difference),
        "fresh": {
            **_estimate("score", result.fresh_score),
            **_estimate("score_merged", result.fresh_score_merged),
            **_estimate("difference", result.fresh_difference),
        },
        "merges": [
            {
                "region": _region(merge.rule),
                "rules": merge.rules,
                "use_share": merge.rule.use_share,
                **_action(_action_of(merge.rule)),
                **_estimate("difference", merge.difference),
                "accepted": merge.accepted,
            }
            for merge in result.merges
        ],
    }


def difference(result: Difference) -> dict[str, Any]:
    """Every region in which two tables differ."""
    return {
        "signals": [signal_name(axis) for axis in result.signals],
        "domain_upper": result.domain_upper,
        "same_regions": result.same_regions,
        "regions": result.regions,
        "regions_changed": len(result.changes),
        "share_of_lookups_changed": result.share_of_lookups,
        **_estimate("score", result.score_before),
        **_estimate("score_other", result.score_after),
        **_estimate("difference", result.score_difference),
        "changes": [_change(change) for change in result.changes],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "region": _region(change.before),
        "use_share": change.before.use_share,
        "distance": change.distance,
        "before": {"rule": change.before.number, **_action(_action_of(change.before))},
        "after": {"rule": change.after_rule, **_action(change.after_action)},
    }


def _region(rule: ReadableRule) -> dict[str, dict[str, float]]:
    return {signal: {"lower": low, "upper": high} for signal, (low, high) in rule.region.items()}


def _action_of(rule: ReadableRule) -> Action:
    return (rule.window_multiple, rule.window_increment, rule.intersend_ms)


def _action(action: Action) -> dict[str, float | None]:
    multiple, increment, intersend_ms = action
    return {
        "window_multiple": multiple,
        "window_increment": increment,
        "intersend_ms": intersend_ms,
        "settled_window_packets": settled_window_packets(action),
        "pacing_rate_mbps": pacing_rate_mbps(action),
    }


def _estimate(name: str, value: Estimate | None) -> dict[str, float | None]:
    return {
        f"{name}_mean": value.mean if value else None,
        f"{name}_stderr": value.standard_error if value else None,
    }
