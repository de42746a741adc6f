"""Represents rule tables as trees, overlays two trees, and computes with actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from remy_farm.specification.links import KILOBITS_PER_PACKET
from remy_proto.v1 import evaluation_pb2, rule_table_pb2
from remy_simulator import InvalidTable, RuleTable, from_coordinates, to_coordinates
from remy_simulator.messages import AXES, Action, PathModel, native_bounds


class ExplainError(Exception):
    """A table cannot be explained. The message is a clause in which "it" is the table."""


Threshold = tuple[int, float]

_Value = TypeVar("_Value")
_A = TypeVar("_A")
_B = TypeVar("_B")

_MAX_LEAVES: Final = 100_000
# Action of inner nodes, which the native table ignores.
_NO_ACTION: Final = Action(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Leaf(Generic[_Value]):
    """A region that is not split."""

    value: _Value


@dataclass(frozen=True, slots=True)
class Branch(Generic[_Value]):
    """A region split at (axis, value) thresholds, each axis at most once.

    Child c lies at or above thresholds[j] if and only if bit j of c is set.
    """

    thresholds: tuple[Threshold, ...]
    children: tuple[Tree[_Value], ...]


Tree: TypeAlias = Leaf[_Value] | Branch[_Value]


@dataclass(frozen=True, slots=True)
class Box:
    """A half-open box of memory space: lower <= value < upper by axis."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @classmethod
    def whole(cls, domain_upper: float) -> Box:
        """Returns the box of the whole memory space."""
        return cls((0.0,) * AXES, (domain_upper,) * AXES)

    def child(self, thresholds: Sequence[Threshold], number: int) -> Box:
        """Returns the part of the box that belongs to child `number` of a branch."""
        lower, upper = list(self.lower), list(self.upper)
        for bit, (axis, value) in enumerate(thresholds):
            (lower if number >> bit & 1 else upper)[axis] = value
        return Box(tuple(lower), tuple(upper))

    def is_empty(self) -> bool:
        """Tells whether the box contains no memory value."""
        return any(low >= high for low, high in zip(self.lower, self.upper, strict=True))


def tree_of(table: RuleTable) -> Tree[int]:
    """Returns the table's tree; leaves hold the numbers of the rules."""
    nodes = iter(table.nodes())
    numbers = iter(range(table.rule_count))

    def take() -> Tree[int]:
        thresholds, _ = next(nodes)
        if not thresholds:
            return Leaf(next(numbers))
        return Branch(tuple(thresholds), tuple(take() for _ in range(1 << len(thresholds))))

    return take()


def table_of(
    tree: Tree[Action],
    signals: Sequence[int],
    domain_upper: float,
    rules: int = rule_table_pb2.RULES_ABSOLUTE,
    path_model: PathModel | None = None,
) -> RuleTable:
    """Returns the table of a tree of actions; rules are numbered in the order of the leaves.

    Raises ExplainError if the tree is too deep for a table.
    """
    nodes: list[tuple[Sequence[Threshold], Action]] = []

    def put(node: Tree[Action]) -> None:
        if isinstance(node, Leaf):
            nodes.append(([], node.value))
            return
        nodes.append((node.thresholds, _NO_ACTION))
        for child in node.children:
            put(child)

    put(tree)
    try:
        return RuleTable(signals, nodes, domain_upper, rules, path_model)
    except InvalidTable as error:
        problem = str(error).rstrip(".")
        raise ExplainError(f"its regions do not combine: {problem}") from error


def map_leaves(tree: Tree[_A], change: Callable[[_A], _B]) -> Tree[_B]:
    """Returns the tree with `change` applied to the value of every leaf, in order."""
    if isinstance(tree, Leaf):
        return Leaf(change(tree.value))
    return Branch(tree.thresholds, tuple(map_leaves(child, change) for child in tree.children))


def leaves(tree: Tree[_Value]) -> Iterator[_Value]:
    """Yields the values of the leaves, in order."""
    if isinstance(tree, Leaf):
        yield tree.value
        return
    for child in tree.children:
        yield from leaves(child)


def overlay(
    first: Tree[_A], second: Tree[_B], box: Box, combine: Callable[[_A, _B], _Value]
) -> Tree[_Value]:
    """Returns the coarsest tree of `box` that has the splits of both trees; combines the values.

    The splits of `first` come above those of `second`, so that two trees of the same structure give
    that structure. Raises ExplainError beyond 100,000 leaves.
    """
    count = 0

    def divided(
        thresholds: tuple[Threshold, ...], parts: Sequence[tuple[Tree[_A], Tree[_B]]], box: Box
    ) -> Tree[_Value]:
        children = (
            walk(a, b, box.child(thresholds, number)) for number, (a, b) in enumerate(parts)
        )
        return Branch(thresholds, tuple(children))

    def walk(a: Tree[_A], b: Tree[_B], box: Box) -> Tree[_Value]:
        b = _inside(b, box)
        if isinstance(a, Branch):
            return divided(a.thresholds, [(child, b) for child in a.children], box)
        if isinstance(b, Branch):
            return divided(b.thresholds, [(a, child) for child in b.children], box)
        nonlocal count
        count += 1
        if count > _MAX_LEAVES:
            raise ExplainError(
                f"its regions overlap in more than {_MAX_LEAVES} pieces; at most "
                f"{_MAX_LEAVES} are supported"
            )
        return Leaf(combine(a.value, b.value))

    return walk(first, second, box)


def _inside(tree: Tree[_Value], box: Box) -> Tree[_Value]:
    """Restricts a tree to a box: removes splits, and thresholds of splits, outside the box.

    An empty box, which occurs in published tables, is not split.
    """
    empty = box.is_empty()
    while isinstance(tree, Branch):
        cut: list[int] = []
        taken = 0
        for bit, (axis, value) in enumerate(tree.thresholds):
            if not empty and box.lower[axis] < value < box.upper[axis]:
                cut.append(bit)
            elif value <= box.lower[axis]:
                taken |= 1 << bit
        if len(cut) == len(tree.thresholds):
            return tree
        children = tuple(
            tree.children[taken | _spread(number, cut)] for number in range(1 << len(cut))
        )
        if not cut:
            (tree,) = children
        else:
            return Branch(tuple(tree.thresholds[bit] for bit in cut), children)
    return tree


def without_axis(thresholds: Sequence[Threshold], axis: int) -> tuple[tuple[Threshold, ...], int]:
    """Returns the thresholds on other axes, and the index of the one on `axis` (-1 if none)."""
    bits = [bit for bit, threshold in enumerate(thresholds) if threshold[0] == axis]
    rest = tuple(threshold for threshold in thresholds if threshold[0] != axis)
    return rest, bits[0] if bits else -1


def _spread(number: int, bits: Sequence[int]) -> int:
    """Returns the number whose bit bits[i] is bit i of `number`; all other bits are 0."""
    return sum((number >> i & 1) << bit for i, bit in enumerate(bits))


_LARGEST_WINDOW: Final = 1e6
# The coordinate of an intersend time is its logarithm, so shorter times are treated as this one.
_SHORTEST_INTERSEND_MS: Final = 0.001


def settled_window_packets(action: Action) -> float | None:
    """Returns the window that repeated application converges to: increment / (1 - multiple).

    The result is within 0 to 1,000,000 packets, to which windows are clamped. None if the window
    grows without bound or depends on its first value.
    """
    settled = settled_window(action)
    return None if settled is None else min(settled, _LARGEST_WINDOW)


def settled_window(action: Action) -> float | None:
    """Returns that window without an upper bound, in the unit of the window increment."""
    multiple, increment = action.window_multiple, action.window_increment
    if multiple > 1 or (multiple == 1 and increment >= 0):
        return None
    if multiple == 1 or increment <= 0:
        return 0.0
    return increment / (1 - multiple)


def pacing_rate_mbps(action: Action) -> float | None:
    """Returns the rate that the intersend time allows, in Mbit/s; None if there is no limit."""
    return pacing_rate(action, KILOBITS_PER_PACKET)


def pacing_rate(action: Action, unit: float = 1.0) -> float | None:
    """Returns `unit` divided by the intersend time; None if there is no limit.

    For relative actions and a unit of 1 this is the rate in multiples of the measured rate.
    """
    rate = unit / action.intersend_ms if action.intersend_ms > 0 else math.inf
    return rate if rate < math.inf else None


class ActionScale:
    """The coordinates of docs/explanation/simulator.md, with bounds that contain a set of actions.

    The bounds also contain window multiples and increments from 0 to 1.
    """

    def __init__(
        self, actions: Iterable[Action], rules: int = rule_table_pb2.RULES_ABSOLUTE
    ) -> None:
        self._has_whole_increments = rules == rule_table_pb2.RULES_ABSOLUTE
        known = list(actions)
        multiples = [_clamped(action.window_multiple) for action in known]
        increments = [_clamped(action.window_increment) for action in known]
        times_ms = [max(action.intersend_ms, _SHORTEST_INTERSEND_MS) for action in known]
        self._bounds = native_bounds(
            evaluation_pb2.ActionBounds(
                window_multiple_minimum=0.0,
                window_multiple_maximum=max(1.0, *multiples),
                window_increment_minimum=min(0.0, *increments),
                window_increment_maximum=max(1.0, *increments),
                intersend_minimum_ms=min(times_ms),
                intersend_maximum_ms=max(times_ms),
            )
        )

    def mean(self, actions: Sequence[Action], weights: Sequence[int]) -> Action:
        """Returns the weighted mean in these coordinates, with a whole absolute increment.

        If all weights are 0, all actions have the same weight. A component that is equal in all
        actions with a weight is returned bit for bit.
        """
        if not any(weights):
            weights = [1] * len(actions)
        counted = [pair for pair in zip(actions, weights, strict=True) if pair[1]]
        total = sum(weight for _, weight in counted)
        points = [(to_coordinates(action, self._bounds), weight) for action, weight in counted]
        multiple, increment, intersend = (
            math.fsum(point[k] * weight for point, weight in points) / total for k in range(3)
        )
        centre = from_coordinates((multiple, increment, intersend), self._bounds)
        if self._has_whole_increments:
            centre = centre._replace(window_increment=float(round(centre.window_increment)))
        components = zip(*(action for action, _ in counted), strict=True)
        return Action(
            *(
                each[0] if len(set(each)) == 1 else component
                for each, component in zip(components, centre, strict=True)
            )
        )

    def distance(self, first: Action, second: Action) -> float:
        """Returns the Euclidean distance of two actions in these coordinates."""
        a, b = to_coordinates(first, self._bounds), to_coordinates(second, self._bounds)
        return math.sqrt(math.fsum((x - y) * (x - y) for x, y in zip(a, b, strict=True)))


def _clamped(value: float) -> float:
    """Clamps a value to the range of windows, so that larger values have no weight in a mean."""
    return max(-_LARGEST_WINDOW, min(value, _LARGEST_WINDOW))
