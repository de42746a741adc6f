"""The rules of a table in words, one row each."""

from __future__ import annotations

from remy_services.remycc import ReadableRule

ACTION_HEAD = ("window multiple", "increment", "intersend ms")


def region_cells(rule: ReadableRule, domain_upper: float) -> list[str]:
    """The interval of each signal of the table, in its order; EWMAs in ms."""
    return [_interval(low, high, domain_upper) for low, high in rule.region.values()]


def action_cells(rule: ReadableRule) -> tuple[str, str, str]:
    """As ACTION_HEAD says."""
    return (
        f"{rule.window_multiple:.6g}",
        f"{rule.window_increment:+.6g}",
        f"{rule.intersend_ms:.6g}",
    )


def use_cell(rule: ReadableRule) -> str:
    """The share of all look-ups."""
    if rule.use_share is None:
        return "-"
    return "0" if rule.use_share == 0 else f"{100 * rule.use_share:.3g} %"


def _interval(low: float, high: float, domain_upper: float) -> str:
    if low == 0 and high == domain_upper:
        return "any"
    if low == 0:
        return f"< {high:.6g}"
    if high == domain_upper:
        return f">= {low:.6g}"
    return f"{low:.6g} .. {high:.6g}"
