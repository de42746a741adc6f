"""Describes rules in sentences, for tables shown in a notebook."""

from __future__ import annotations

from typing import Final

from remy_farm.remycc import ReadableRule
from remy_simulator import signals

#: Unit of each signal; ratios have none and are missing.
UNITS: Final = {name: form.unit for name, form in signals.FORMS.items() if form.unit != "1"}


def end_columns(signal: str) -> tuple[str, str]:
    """Returns the column names for the lower and upper bound of a signal, with its unit."""
    unit = UNITS.get(signal)
    name = signal if unit is None else f"{signal}_{unit}"
    return f"{name}_from", f"{name}_below"


def rule_sentence(rule: ReadableRule, domain_upper: float) -> str:
    """Returns a sentence on a rule's region and action; signals without bounds are left out."""
    conditions = [
        condition
        for signal, (low, high) in rule.region.items()
        if (condition := _condition(signal, low, high, domain_upper))
    ]
    where = f"where {' and '.join(conditions)}" if conditions else "everywhere"
    share = "" if rule.use_share is None else f" ({100 * rule.use_share:.3g} % of look-ups)"
    return f"Rule {rule.number}{share}: {where}, {_window(rule)} and {_pacing(rule)}."


def _condition(signal: str, low: float, high: float, domain_upper: float) -> str:
    unit = f" {UNITS[signal]}" if signal in UNITS else ""
    if low == 0 and high == domain_upper:
        return ""
    if low == 0:
        return f"{signal} is below {high:.6g}{unit}"
    if high == domain_upper:
        return f"{signal} is at least {low:.6g}{unit}"
    return f"{signal} is {low:.6g} to {high:.6g}{unit}"


def _window(rule: ReadableRule) -> str:
    multiple, increment = rule.window_multiple, rule.window_increment
    if rule.is_relative:
        amount = f"{abs(increment):.4g} % of the bandwidth-delay product"
    else:
        amount = f"{abs(increment):.6g} packet{'' if abs(increment) == 1 else 's'}"
    if multiple == 0:
        return f"set the window to {amount if increment > 0 else '0 packets'}"
    if multiple == 1:
        if increment == 0:
            return "keep the window"
        return f"add {amount} to the window" if increment > 0 else f"take {amount} off the window"
    change = f" {'plus' if increment > 0 else 'minus'} {amount}" if increment else ""
    return f"set the window to {multiple:.4g} of itself{change}"


def _pacing(rule: ReadableRule) -> str:
    interval = rule.intersend_ms
    if interval == 0:
        return "send at once"
    if rule.is_relative:
        return f"send packets at least {interval:.4g} of the measured interval apart"
    return f"send packets at least {interval:.4g} ms apart"
