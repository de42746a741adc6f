"""Actions as points, as candidates of an evaluation, and where a search begins."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from remy_farm.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_services.specification.networks import KILOBITS_PER_PACKET, quantile
from remy_simulator import RuleTable, from_coordinates, to_coordinates
from remy_simulator.messages import ActionTuple as Action
from remy_simulator.messages import action_message, action_tuple, axis_of, native_bounds

#: Actions as points (docs/algorithm.md, "Coordinates of an action"): one row a rule, of window
#: multiple, window increment and intersend.
Coordinates = NDArray[np.float64]


class ActionSpace:
    """The box of actions that a specification allows, and its coordinates."""

    def __init__(
        self,
        search: spec_pb2.JointSearch | spec_pb2.PatternSearch,
        rules: int = rule_table_pb2.RULES_ABSOLUTE,
    ) -> None:
        self._has_whole_increments = rules == rule_table_pb2.RULES_ABSOLUTE
        increment, intersend = (
            (search.window_increment, search.intersend_ms)
            if rules == rule_table_pb2.RULES_ABSOLUTE
            else (search.window_increment_percent, search.intersend_ratio)
        )
        self.bounds = evaluation_pb2.ActionBounds(
            window_multiple_minimum=search.window_multiple.minimum,
            window_multiple_maximum=search.window_multiple.maximum,
            window_increment_minimum=increment.minimum,
            window_increment_maximum=increment.maximum,
            intersend_minimum_ms=intersend.minimum,
            intersend_maximum_ms=intersend.maximum,
        )
        self._native = native_bounds(self.bounds)
        # The first coordinate falls as the window multiple rises.
        corners = np.array(
            [
                to_coordinates(self._corner("maximum", "minimum"), self._native),
                to_coordinates(self._corner("minimum", "maximum"), self._native),
            ]
        )
        self._lowest, self._highest = corners

    def coordinates(self, table: RuleTable) -> Coordinates:
        """The coordinates of a table's actions."""
        actions = [table.action(rule) for rule in range(table.rule_count)]
        return np.array([to_coordinates(action, self._native) for action in actions])

    def clamped(self, coordinates: Coordinates) -> Coordinates:
        """The nearest point in the box."""
        clamped: Coordinates = np.minimum(np.maximum(coordinates, self._lowest), self._highest)
        return clamped

    def with_actions(self, table: RuleTable, coordinates: Coordinates) -> RuleTable:
        """The table with the actions at `coordinates`, window increments not rounded."""
        return table.with_coordinates(coordinates.tobytes(), self._native)

    def with_rounded_actions(self, table: RuleTable, coordinates: Coordinates) -> RuleTable:
        """The same, absolute window increments whole, as a .dna file holds them."""
        return table.with_actions([self.rounded_action(row) for row in coordinates.tolist()])

    def point(self, action: Action) -> list[float]:
        """The coordinates of one action."""
        return list(to_coordinates(action, self._native))

    def rounded_action(self, row: Sequence[float]) -> Action:
        """The action at a point, or at the nearest one in the box, an absolute increment whole."""
        multiple, increment, intersend_ms = self._action(row)
        return (multiple, self.whole_increment(increment), intersend_ms)

    def whole_increment(self, increment: float) -> float:
        """The nearest window increment within the bounds; whole, unless it is in percent."""
        if not self._has_whole_increments:
            low, high = self.bounds.window_increment_minimum, self.bounds.window_increment_maximum
            return min(max(increment, low), high)
        least = math.ceil(self.bounds.window_increment_minimum)
        most = math.floor(self.bounds.window_increment_maximum)
        return float(min(max(round(increment), least), most))

    def _action(self, row: Sequence[float]) -> Action:
        multiple, increment, intersend = row
        return from_coordinates((multiple, increment, intersend), self._native)

    def _corner(self, multiple: str, rest: str) -> Action:
        bounds = self.bounds
        return (
            getattr(bounds, f"window_multiple_{multiple}"),
            getattr(bounds, f"window_increment_{rest}"),
            getattr(bounds, f"intersend_{rest}_ms"),
        )


def action_change(rule: int, action: Action) -> evaluation_pb2.ActionChange:
    """One rule's new action."""
    return evaluation_pb2.ActionChange(rule=rule, action=action_message(action))


def unchanged() -> evaluation_pb2.Candidate:
    """The table as it is."""
    return evaluation_pb2.Candidate()


def one_rule(rule: int, action: Action) -> evaluation_pb2.Candidate:
    """The table with another action for one rule."""
    return several_rules(evaluation_pb2.ActionChanges(changes=[action_change(rule, action)]))


def several_rules(changes: evaluation_pb2.ActionChanges) -> evaluation_pb2.Candidate:
    """The table with other actions for several rules."""
    return evaluation_pb2.Candidate(actions=changes)


def differences(before: RuleTable, after: RuleTable) -> evaluation_pb2.ActionChanges:
    """What turns `before` into `after`, a table of the same structure, by increasing rule."""
    return evaluation_pb2.ActionChanges(
        changes=[
            action_change(rule, after.action(rule))
            for rule in range(before.rule_count)
            if before.action(rule) != after.action(rule)
        ]
    )


def apply(table: RuleTable, changes: evaluation_pb2.ActionChanges) -> RuleTable:
    """The table with all changes made."""
    for change in changes.changes:
        table = table.with_action(change.rule, action_tuple(change.action))
    return table


# Where to begin: single rules about right for the network in the middle of the model.
#
# The paper begins at m = 1, b = 1, r = 0.01 (section 4.3), and the later reference tool at r = 3:
# poor places both, from which local steps hardly lead away. Actions that score best as single rules
# are no better to grow a table from: they keep a constant window (m = 0) and send in bursts. What
# works is to pace at the fair share of the link, with a window that settles at the fair share of
# the path, and to leave the rest to the search.
#
# Starts differ in how much of its window a sender keeps at each ACK.
_WINDOW_MULTIPLES = (0.9, 0.8, 0.95, 0.7, 0.5, 0.98, 0.85, 0.6)
#: How many there are.
STARTS = len(_WINDOW_MULTIPLES)
_MEDIAN = 0.5


def first_table(spec: spec_pb2.DesignSpec, space: ActionSpace, start: int) -> RuleTable:
    """The single rule of start number `start`, from 0 to `STARTS` - 1."""
    axes = [axis_of(signal) for signal in spec.signals]
    if spec.rules == rule_table_pb2.RULES_SCALE_FREE:
        return _scale_free_start(axes, _WINDOW_MULTIPLES[start])
    table = RuleTable(axes, [([], first_action(spec, _WINDOW_MULTIPLES[start]))])
    return space.with_rounded_actions(table, space.coordinates(table))


def first_action(spec: spec_pb2.DesignSpec, window_multiple: float) -> Action:
    """Fair shares of the median network: of its rate as pacing, of its packets as window."""
    network = spec.network
    packets_per_ms = quantile(network.link_rate_mbps, _MEDIAN) / KILOBITS_PER_PACKET
    senders_on = max(1.0, quantile(network.senders, _MEDIAN) * _share_of_time_on(spec.traffic))
    window = packets_per_ms * quantile(network.rtt_ms, _MEDIAN) / senders_on
    # A constant multiple and increment settle at the window b / (1 - m).
    return (window_multiple, (1 - window_multiple) * window, senders_on / packets_per_ms)


def _scale_free_start(axes: list[int], window_multiple: float) -> RuleTable:
    """A rule for senders that have measured nothing, and one that sends a little faster than
    packets arrive, into a window a little larger than the path."""
    begin: Action = (0.0, 30.0, 0.02)
    follow: Action = (window_multiple, 110.0 * (1 - window_multiple), 0.9)
    # All of memory is 0 before anything is measured, and rtt_ratio at least 1 from then on.
    measured = (2, 0.5) if 2 in axes else (axes[-1], 2**-20)
    return RuleTable(
        axes,
        [([measured], begin), ([], begin), ([], follow)],
        rules=rule_table_pb2.RULES_SCALE_FREE,
    )


def _share_of_time_on(traffic: spec_pb2.TrafficModel) -> float:
    """Half where it depends on the congestion control."""
    if traffic.WhichOneof("on") != "exponential_time":
        return 0.5
    on_ms = quantile(traffic.exponential_time.mean_ms, _MEDIAN)
    return on_ms / (on_ms + quantile(traffic.mean_off_ms, _MEDIAN))
