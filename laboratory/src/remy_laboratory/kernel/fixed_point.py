"""Converts rule tables to 64-bit fixed-point arithmetic, which reproduces the simulator's doubles.

kernel/remy_table.h is the template of the C header, which has no dependencies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from pathlib import Path
from typing import Final

from remy_farm.remycc import RemyCC, RemyCCError, signal_name, start_rule, to_bytes
from remy_simulator import RuleTable
from remy_simulator.messages import BASIC_AXES

#: Fractional bits of times in us.
TIME_BITS: Final = 20
#: Fractional bits of ratios.
RATIO_BITS: Final = 24
#: Fractional bits of a scale-free rule's window multiple.
MULTIPLE_BITS: Final = 40
#: Fractional bits of a scale-free rule's increment, a share of the bandwidth-delay product.
SHARE_BITS: Final = 30
#: Fractional bits of a scale-free rule's pacing interval, in measured packet intervals.
UNIT_BITS: Final = 28
#: Fractional bits of an absolute rule's window multiple and increment.
ABSOLUTE_BITS: Final = 64

_AGE: Final = 1
_RTT_RATIO: Final = 2
_US_PER_MS: Final = 1000
_PERCENT: Final = 100
#: The threshold of an axis that a node does not divide: above every value of a signal.
UNREACHED: Final = 2**64 - 1
_MAX_SLOTS: Final = 1 << 15
_MAX_MULTIPLE: Final = 8
_MAX_PACKETS: Final = 1 << 20
_MAX_SHARE: Final = 16
_MAX_INTERVAL_US: Final = (1 << 30) - 1
_LINE_LENGTH: Final = 98
# A smaller double has some of its 53 bits below 2^-64.
_MIN_WITH_ALL_BITS: Final = Fraction(1, 1 << 11)


class UnsuitableTable(RemyCCError):
    """The fixed-point arithmetic cannot express a table's numbers; the text is one sentence."""


@dataclass(frozen=True)
class IntegerNode:
    """An inner node: the threshold of each signal, and the children.

    The index of a child has a bit for each signal that reaches its threshold. A child is the index
    of an inner node, or the bitwise complement of a rule's index.
    """

    thresholds: tuple[int, ...]
    children: tuple[int, ...]


@dataclass(frozen=True)
class AbsoluteAction:
    """An absolute action.

    `multiple` and `increment` are in units of 2^-64 and equal the doubles exactly; `interval` is in
    units of 2^-20 us. `multiple` is scaled up by 2^shift so that no bit of a small double is lost.
    """

    multiple: int
    shift: int
    increment: int
    interval: int

    @property
    def row(self) -> str:
        """The action as a C initializer."""
        whole, rest = divmod(self.multiple, 1 << ABSOLUTE_BITS)
        added, added_rest = divmod(self.increment, 1 << ABSOLUTE_BITS)
        return (
            f"{{{whole}ull, {rest}ull, {self.shift}ull, "
            f"{added}ll, {added_rest}ull, {self.interval}ull}}"
        )


@dataclass(frozen=True)
class ShareAction:
    """A scale-free action.

    `multiple` is in units of 2^-40. `increment` and `interval` are in units of 2^-30 and 2^-28 of
    the measured bandwidth-delay product and of the measured packet interval.
    """

    multiple: int
    increment: int
    interval: int

    @property
    def row(self) -> str:
        """The action as a C initializer."""
        return f"{{{self.multiple}ull, {self.increment}ll, {self.interval}ull}}"


@dataclass(frozen=True)
class IntegerTable:
    """A rule table in fixed-point numbers.

    `start_rule` applies to senders that have not measured anything. Its action `start_action` is
    absolute, also in scale-free tables.
    """

    table: RuleTable
    nodes: tuple[IntegerNode, ...]
    actions: tuple[AbsoluteAction | ShareAction, ...]
    start_rule: int
    start_action: AbsoluteAction
    depth: int

    @property
    def is_scale_free(self) -> bool:
        """Whether actions are relative to measured values."""
        return self.table.is_scale_free

    @property
    def uses_age(self) -> bool:
        """Whether the averages are plain means until they have enough samples."""
        return self.is_scale_free and _AGE in self.table.signals

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the table's .json form, without .dna metadata."""
        return hashlib.sha256(to_bytes(RemyCC(self.table), ".json")).hexdigest()

    @classmethod
    def from_rule_table(cls, table: RuleTable) -> IntegerTable:
        """Converts a table.

        Raises UnsuitableTable for numbers out of range, and for a path model.
        """
        if table.path_model is not None:
            raise UnsuitableTable(
                "the table has a path model, which the exported program does not have; export its "
                "rules alone (--rules-alone, or Table.without_path_model)"
            )
        for axis in table.signals:
            if axis >= BASIC_AXES:
                raise UnsuitableTable(
                    f"the table uses {signal_name(axis, table.rules)}, which ACKs do not carry"
                )
        nodes, depth = _nodes(table)
        for what, count in (("rules", table.rule_count), ("inner nodes", len(nodes))):
            if count > _MAX_SLOTS:
                raise UnsuitableTable(f"the table has {count} {what}; the maximum is {_MAX_SLOTS}")
        start = table.find((0.0,))
        is_scale_free = table.is_scale_free
        # A start rule is in packets and ms even in a scale-free table.
        absolute_only = start_rule(table)
        actions = tuple(
            _absolute_action(table, rule)
            if not is_scale_free
            # Measured signals never select this rule.
            else ShareAction(0, 0, 0)
            if rule == absolute_only
            else _share_action(table, rule)
            for rule in range(table.rule_count)
        )
        return cls(table, nodes, actions, start, _absolute_action(table, start), depth)


def _nodes(table: RuleTable) -> tuple[tuple[IntegerNode, ...], int]:
    """Returns the inner nodes in pre-order, and the largest number of them on a look-up's path."""
    source = iter(table.nodes())
    scale = [
        1 << RATIO_BITS if axis == _RTT_RATIO or table.is_scale_free else _US_PER_MS << TIME_BITS
        for axis in range(BASIC_AXES)
    ]
    nodes: list[IntegerNode] = []
    rules = 0
    deepest = 0

    def subtree(depth: int) -> int:
        nonlocal rules, deepest
        thresholds, _ = next(source)
        if not thresholds:
            rules += 1
            return -rules
        deepest = max(deepest, depth + 1)
        number = len(nodes)
        limits = [UNREACHED] * BASIC_AXES
        for axis, value in thresholds:
            limits[axis] = _smallest_reaching(value, scale[axis])
        children = [0] * (1 << BASIC_AXES)
        nodes.append(IntegerNode(tuple(limits), ()))
        for child in range(1 << len(thresholds)):
            orthant = sum((child >> bit & 1) << axis for bit, (axis, _) in enumerate(thresholds))
            children[orthant] = subtree(depth + 1)
        nodes[number] = IntegerNode(tuple(limits), tuple(children))
        return number

    if subtree(0) < 0:
        nodes.append(IntegerNode((UNREACHED,) * BASIC_AXES, (-1,) * (1 << BASIC_AXES)))
    return tuple(nodes), max(deepest, 1)


def _smallest_reaching(threshold: float, scale: int) -> int:
    """Returns the smallest n for which the double n / scale is not below the threshold."""
    smallest = ceil(Fraction(threshold) * scale)
    return max(smallest - 1 if (smallest - 1) / scale >= threshold else smallest, 0)


def _bounded_action(
    table: RuleTable, rule: int, max_increment: int, max_interval: int, unit: str
) -> tuple[Fraction, Fraction, Fraction]:
    """Returns the action of a rule. Raises UnsuitableTable if its numbers do not fit 64 bits."""
    multiple, increment, intersend = (Fraction(value) for value in table.action(rule))
    for name, value, maximum, unit_suffix in (
        ("a window multiple", multiple, _MAX_MULTIPLE, ""),
        ("a window increment", abs(increment), max_increment, ""),
        ("an intersend time", intersend, max_interval, unit),
    ):
        if value > maximum:
            raise UnsuitableTable(
                f"rule {rule} has {name} of {float(value):g}{unit_suffix}; the maximum for 64-bit "
                f"arithmetic is {float(maximum):g}"
            )
    return multiple, increment, intersend


def _absolute_action(table: RuleTable, rule: int) -> AbsoluteAction:
    multiple, increment, intersend = _bounded_action(
        table, rule, _MAX_PACKETS, _MAX_INTERVAL_US // _US_PER_MS, " ms"
    )
    shift = 0
    while 0 < multiple * (1 << shift) < _MIN_WITH_ALL_BITS and shift < ABSOLUTE_BITS - 1:
        shift += 1
    return AbsoluteAction(
        floor(multiple * (1 << ABSOLUTE_BITS + shift)),
        shift,
        floor(increment * (1 << ABSOLUTE_BITS)),
        _round_interval(intersend * _US_PER_MS * (1 << TIME_BITS)),
    )


def _share_action(table: RuleTable, rule: int) -> ShareAction:
    multiple, increment, intersend = _bounded_action(
        table, rule, _MAX_SHARE * _PERCENT, _MAX_SHARE, " measured intervals"
    )
    # Rounds up, so that a product that should be a whole number is not below it.
    return ShareAction(
        ceil(multiple * (1 << MULTIPLE_BITS)),
        ceil(increment / _PERCENT * (1 << SHARE_BITS)),
        _round_interval(intersend * (1 << UNIT_BITS)),
    )


def _round_interval(value: Fraction) -> int:
    """Rounds to the nearest integer, but to at least 1 if positive, as 0 would disable pacing."""
    return max(floor(value + Fraction(1, 2)), 1 if value > 0 else 0)


#: C templates and programs: the repository's directory `kernel`, which wheels contain a copy of.
SOURCES: Final = Path(__file__).parent / "sources"


def _slots(count: int) -> int:
    """Returns the next power of two, so that an index can be masked."""
    return 1 << (count - 1).bit_length()


def _wrap_items(items: Iterable[str]) -> list[str]:
    lines: list[str] = []
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > _LINE_LENGTH:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return [*lines, line]


def _node_rows(nodes: Sequence[IntegerNode]) -> list[str]:
    return [
        f"{{{{{', '.join(f'{each}ull' for each in node.thresholds)}}},\n"
        f"     {{{', '.join(str(each) for each in node.children)}}}}}"
        for node in nodes
    ]


def c_header(table: IntegerTable, *, deadband_us: int = 0) -> str:
    """Returns the C header of a table; the same arguments give the same text.

    RTTs up to `deadband_us` above the minimum RTT are treated as the minimum.
    """
    rules, nodes = len(table.actions), len(table.nodes)
    kind = "remy_share" if table.is_scale_free else "remy_absolute"
    lines = [
        f"/* The table with the SHA-256 {table.digest}. */",
        f"#define REMY_SCALE_FREE {int(table.is_scale_free)}",
        f"#define REMY_USES_AGE {int(table.uses_age)}",
        f"#define REMY_RULES {rules}",
        f"#define REMY_RULE_SLOTS {_slots(rules)}",
        f"#define REMY_NODE_SLOTS {_slots(nodes)}",
        f"#define REMY_DEPTH {table.depth}",
        f"#define REMY_START_RULE {table.start_rule}",
        f"#define REMY_DEADBAND_US {deadband_us}u",
        "",
        "REMY_DATA struct remy_node remy_nodes[REMY_NODE_SLOTS] = {",
        *(f"    {row}," for row in _node_rows(table.nodes)),
        "};",
        "",
        f"REMY_DATA struct {kind} remy_actions[REMY_RULE_SLOTS] = {{",
        *_wrap_items(action.row for action in table.actions),
        "};",
    ]
    if table.is_scale_free:
        lines += [
            "",
            f"REMY_DATA struct remy_absolute remy_start_action = {table.start_action.row};",
        ]
    template = (SOURCES / "remy_table.h").read_text(encoding="utf-8")
    return template.replace("/*@TABLE@*/", "\n".join(lines))
