"""Rule tables as integers: fixed-point arithmetic in 64 bits that does what the simulator's doubles
do, as a C header without dependencies (kernel/remy_table.h is its template)."""

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
from remy_simulator.messages import USUAL_AXES

#: Fractional bits: of times in us, of ratios, of window multiples beside increments that are shares
#: of the bandwidth-delay product, of these, of paces in measured intervals, and of multiples and
#: increments of absolute rules, beside their integers.
TIME_BITS: Final = 20
RATIO_BITS: Final = 24
MULTIPLE_BITS: Final = 40
SHARE_BITS: Final = 30
UNIT_BITS: Final = 28
ABSOLUTE_BITS: Final = 64

_AGE: Final = 1
_RTT_RATIO: Final = 2
_US_PER_MS: Final = 1000
_PERCENT: Final = 100
#: The threshold of an axis that is not divided on: above every value of a signal.
UNREACHED: Final = 2**64 - 1
_MOST_SLOTS: Final = 1 << 15
_LARGEST_MULTIPLE: Final = 8
_LARGEST_PACKETS: Final = 1 << 20
_LARGEST_SHARE: Final = 16
_LONGEST_US: Final = (1 << 30) - 1
_A_LINE: Final = 98
# Of the 53 bits of a double that is smaller, some are below 2^-64.
_LEAST_WITH_ALL_BITS: Final = Fraction(1, 1 << 11)


class UnsuitableTable(RemyCCError):
    """A table that the fixed-point arithmetic cannot express; one sentence."""


@dataclass(frozen=True)
class IntegerNode:
    """An inner node: what each signal must reach, and the children by the signals that do: inner
    nodes, or the complements of rules."""

    thresholds: tuple[int, ...]
    children: tuple[int, ...]


@dataclass(frozen=True)
class AbsoluteAction:
    """An absolute action: multiple and increment as the doubles that they are, in 2^-64, and the
    interval in 2^-20 us. The multiple is 2^shift times as large, so that it has all its bits."""

    multiple: int
    shift: int
    increment: int
    interval: int

    @property
    def row(self) -> str:
        """As C has it."""
        whole, rest = divmod(self.multiple, 1 << ABSOLUTE_BITS)
        added, added_rest = divmod(self.increment, 1 << ABSOLUTE_BITS)
        return (
            f"{{{whole}ull, {rest}ull, {self.shift}ull, "
            f"{added}ll, {added_rest}ull, {self.interval}ull}}"
        )


@dataclass(frozen=True)
class ShareAction:
    """A scale-free action: the window multiple in 2^-40, and increment and interval in 2^-30 and
    2^-28 of what was measured."""

    multiple: int
    increment: int
    interval: int

    @property
    def row(self) -> str:
        """As C has it."""
        return f"{{{self.multiple}ull, {self.increment}ll, {self.interval}ull}}"


@dataclass(frozen=True)
class IntegerTable:
    """A rule table as the arithmetic uses it. `start_rule` is for senders that have measured
    nothing; its `start_action` is absolute whatever the others are."""

    table: RuleTable
    nodes: tuple[IntegerNode, ...]
    actions: tuple[AbsoluteAction | ShareAction, ...]
    start_rule: int
    start_action: AbsoluteAction
    depth: int

    @property
    def is_scale_free(self) -> bool:
        """Whether actions are relative to what was measured."""
        return self.table.is_scale_free

    @property
    def looks_at_age(self) -> bool:
        """Whether averages are means while they are young."""
        return self.is_scale_free and _AGE in self.table.signals

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the table's .json form, without what a .dna file held beside it."""
        return hashlib.sha256(to_bytes(RemyCC(self.table), ".json")).hexdigest()

    @classmethod
    def of(cls, table: RuleTable) -> IntegerTable:
        """The table in integers. Raises UnsuitableTable for numbers beyond what they hold."""
        for axis in table.signals:
            if axis >= USUAL_AXES:
                raise UnsuitableTable(
                    f"the table looks at {signal_name(axis, table.rules)}, which ACKs do not tell"
                )
        nodes, depth = _nodes(table)
        for what, count in (("rules", table.rule_count), ("inner nodes", len(nodes))):
            if count > _MOST_SLOTS:
                raise UnsuitableTable(f"the table has {count} {what}; at most {_MOST_SLOTS} fit")
        start = table.find((0.0,))
        relative = table.is_scale_free
        # A start rule is in packets and ms, which are no shares of anything.
        only_absolute = start_rule(table)
        actions = tuple(
            _absolute(table, rule)
            if not relative
            # What is measured never leads to it.
            else ShareAction(0, 0, 0)
            if rule == only_absolute
            else _share(table, rule)
            for rule in range(table.rule_count)
        )
        return cls(table, nodes, actions, start, _absolute(table, start), depth)


def _nodes(table: RuleTable) -> tuple[tuple[IntegerNode, ...], int]:
    """The inner nodes in pre-order, and on how many a look-up comes by at most."""
    source = iter(table.nodes())
    scale = [
        1 << RATIO_BITS if axis == _RTT_RATIO or table.is_scale_free else _US_PER_MS << TIME_BITS
        for axis in range(USUAL_AXES)
    ]
    found: list[IntegerNode] = []
    rules = 0
    deepest = 0

    def subtree(depth: int) -> int:
        nonlocal rules, deepest
        thresholds, _ = next(source)
        if not thresholds:
            rules += 1
            return -rules
        deepest = max(deepest, depth + 1)
        number = len(found)
        limits = [UNREACHED] * USUAL_AXES
        for axis, value in thresholds:
            limits[axis] = _least_reaching(value, scale[axis])
        children = [0] * (1 << USUAL_AXES)
        found.append(IntegerNode(tuple(limits), ()))
        for child in range(1 << len(thresholds)):
            orthant = sum(
                (child >> place & 1) << axis for place, (axis, _) in enumerate(thresholds)
            )
            children[orthant] = subtree(depth + 1)
        found[number] = IntegerNode(tuple(limits), tuple(children))
        return number

    if subtree(0) < 0:
        found.append(IntegerNode((UNREACHED,) * USUAL_AXES, (-1,) * (1 << USUAL_AXES)))
    return tuple(found), max(deepest, 1)


def _least_reaching(threshold: float, scale: int) -> int:
    """The least multiple of 1 / scale that, as a double, is not below a threshold."""
    least = ceil(Fraction(threshold) * scale)
    return max(least - 1 if (least - 1) / scale >= threshold else least, 0)


def _within(
    table: RuleTable, rule: int, largest_increment: int, longest: int, unit: str
) -> tuple[Fraction, Fraction, Fraction]:
    """The action of a rule. Raises UnsuitableTable if 64 bits do not hold its numbers."""
    multiple, increment, intersend = (Fraction(value) for value in table.action(rule))
    for name, value, largest, of in (
        ("a window multiple", multiple, _LARGEST_MULTIPLE, ""),
        ("a window increment", abs(increment), largest_increment, ""),
        ("an intersend time", intersend, longest, unit),
    ):
        if value > largest:
            raise UnsuitableTable(
                f"rule {rule} has {name} of {float(value):g}{of}; up to {float(largest):g} can be "
                "computed in 64 bits"
            )
    return multiple, increment, intersend


def _absolute(table: RuleTable, rule: int) -> AbsoluteAction:
    multiple, increment, intersend = _within(
        table, rule, _LARGEST_PACKETS, _LONGEST_US // _US_PER_MS, " ms"
    )
    shift = 0
    while 0 < multiple * (1 << shift) < _LEAST_WITH_ALL_BITS and shift < ABSOLUTE_BITS - 1:
        shift += 1
    return AbsoluteAction(
        floor(multiple * (1 << ABSOLUTE_BITS + shift)),
        shift,
        floor(increment * (1 << ABSOLUTE_BITS)),
        _nearest(intersend * _US_PER_MS * (1 << TIME_BITS)),
    )


def _share(table: RuleTable, rule: int) -> ShareAction:
    multiple, increment, intersend = _within(
        table, rule, _LARGEST_SHARE * _PERCENT, _LARGEST_SHARE, " measured intervals"
    )
    # Upwards, as a product that would be whole must not fall short of it.
    return ShareAction(
        ceil(multiple * (1 << MULTIPLE_BITS)),
        ceil(increment / _PERCENT * (1 << SHARE_BITS)),
        _nearest(intersend * (1 << UNIT_BITS)),
    )


def _nearest(value: Fraction) -> int:
    """Never 0 for what is above it, which would mean no pacing at all."""
    return max(floor(value + Fraction(1, 2)), 1 if value > 0 else 0)


#: Templates and programs in C: the repository's folder `kernel`, which a wheel has a copy of.
SOURCES: Final = Path(__file__).parent / "sources"


def _slots(count: int) -> int:
    """A power of two, so that an index can be masked."""
    return 1 << (count - 1).bit_length()


def _wrapped(items: Iterable[str]) -> list[str]:
    lines: list[str] = []
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > _A_LINE:
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


def header(table: IntegerTable, *, deadband_us: int = 0) -> str:
    """The C header of a table. RTTs up to `deadband_us` above the smallest count as it. The
    same table gives the same text."""
    rules, nodes = len(table.actions), len(table.nodes)
    kind = "remy_share" if table.is_scale_free else "remy_absolute"
    lines = [
        f"/* The table with the SHA-256 {table.digest}. */",
        f"#define REMY_SCALE_FREE {int(table.is_scale_free)}",
        f"#define REMY_LOOKS_AT_AGE {int(table.looks_at_age)}",
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
        *_wrapped(action.row for action in table.actions),
        "};",
    ]
    if table.is_scale_free:
        lines += [
            "",
            f"REMY_DATA struct remy_absolute remy_start_action = {table.start_action.row};",
        ]
    template = (SOURCES / "remy_table.h").read_text(encoding="utf-8")
    return template.replace("/*@TABLE@*/", "\n".join(lines))
