"""The rules of a table for people to read."""

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.v1 import rule_table_pb2
from remy_services.spec.constraints import short_name
from remy_simulator import RuleTable
from remy_simulator.messages import signal_of


@dataclass(frozen=True)
class ReadableRule:
    """One rule: where it applies, what it does, and how much it is used.

    `region` holds, for each signal that the table may look at, the half-open interval in which the
    rule applies (ms, or a ratio). Memory beyond the domain is clamped to it, so that an interval
    that ends at `domain_upper` has no end. `use_share` is the rule's share of all look-ups, None
    if it is not known.
    """

    number: int
    region: dict[str, tuple[float, float]]
    window_multiple: float
    window_increment: float
    intersend_ms: float
    use_share: float | None


def readable_rules(table: RuleTable, uses: Sequence[int] | None = None) -> list[ReadableRule]:
    """The table's rules by number; `uses` counts the look-ups of each, if that is known."""
    if uses is not None and len(uses) != table.rule_count:
        raise ValueError(f"{len(uses)} use counts for a table of {table.rule_count} rules")
    total = sum(uses) if uses is not None else 0
    rules = []
    for number in range(table.rule_count):
        lower, upper = table.region(number)
        region = {signal_name(axis): (lower[axis], upper[axis]) for axis in table.signals}
        share = None if uses is None else (uses[number] / total if total else 0.0)
        rules.append(ReadableRule(number, region, *table.action(number), use_share=share))
    return rules


def signal_name(axis: int) -> str:
    """The name of a native axis as specifications spell it: 0 is send_ewma."""
    values = rule_table_pb2.Signal.DESCRIPTOR.values_by_number
    return short_name(values[signal_of(axis)])
