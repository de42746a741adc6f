"""Actions: as points in coordinates, as candidates of an evaluation, and those of first tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from remy_farm.specification.distributions import extent, quantile
from remy_farm.specification.links import kilobits_per_packet
from remy_farm.specification.models import Model, mean_off_ms, outline
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import RuleTable, from_coordinates, power, to_coordinates
from remy_simulator.messages import (
    Action,
    PathModel,
    action_message,
    axis_of,
    form_of,
    is_scale_free,
    native_action,
    native_bounds,
    native_path_model,
    signals_zero_until_measured,
)

# Actions as points

#: Actions as points, one row per rule, with the columns window multiple, window increment and
#: intersend (see docs/explanation/simulator.md, "Coordinates of an action").
Coordinates = NDArray[np.float64]


class ActionRanges(Protocol):
    """The settings of a search that limit each component of an action."""

    @property
    def window_multiple(self) -> spec_pb2.ComponentRange: ...

    @property
    def window_increment(self) -> spec_pb2.ComponentRange: ...

    @property
    def intersend_ms(self) -> spec_pb2.ComponentRange: ...

    @property
    def window_increment_percent(self) -> spec_pb2.ComponentRange: ...

    @property
    def intersend_ratio(self) -> spec_pb2.ComponentRange: ...


class ActionSpace:
    """The box of actions that a specification allows, and its coordinates."""

    def __init__(self, search: ActionRanges, rules: int = rule_table_pb2.RULES_ABSOLUTE) -> None:
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
        """Returns the coordinates of a table's actions."""
        actions = [table.action(rule) for rule in range(table.rule_count)]
        return np.array([to_coordinates(action, self._native) for action in actions])

    def clamped(self, coordinates: Coordinates) -> Coordinates:
        """Returns the nearest points within the bounds."""
        clamped: Coordinates = np.minimum(np.maximum(coordinates, self._lowest), self._highest)
        return clamped

    def with_actions(self, table: RuleTable, coordinates: Coordinates) -> RuleTable:
        """Returns the table with the actions at `coordinates`; increments are not rounded."""
        return table.with_coordinates(coordinates.tobytes(), self._native)

    def with_rounded_actions(self, table: RuleTable, coordinates: Coordinates) -> RuleTable:
        """Returns the table with the actions at `coordinates`.

        Absolute window increments are rounded to whole packets, as in a .dna file.
        """
        return table.with_actions([self.rounded_action(row) for row in coordinates.tolist()])

    def point(self, action: Action) -> list[float]:
        """Returns the coordinates of one action."""
        return list(to_coordinates(action, self._native))

    def rounded_action(self, row: Sequence[float]) -> Action:
        """Returns the action at the nearest point within the bounds.

        An absolute window increment is rounded to whole packets.
        """
        action = self._action(row)
        return action._replace(window_increment=self.whole_increment(action.window_increment))

    def whole_increment(self, increment: float) -> float:
        """Returns the nearest window increment within the bounds; in whole packets if absolute."""
        if not self._has_whole_increments:
            low, high = self.bounds.window_increment_minimum, self.bounds.window_increment_maximum
            return min(max(increment, low), high)
        low = math.ceil(self.bounds.window_increment_minimum)
        high = math.floor(self.bounds.window_increment_maximum)
        return float(min(max(round(increment), low), high))

    def _action(self, row: Sequence[float]) -> Action:
        multiple, increment, intersend = row
        return from_coordinates((multiple, increment, intersend), self._native)

    def _corner(self, multiple: str, rest: str) -> Action:
        bounds = self.bounds
        return Action(
            window_multiple=getattr(bounds, f"window_multiple_{multiple}"),
            window_increment=getattr(bounds, f"window_increment_{rest}"),
            intersend_ms=getattr(bounds, f"intersend_{rest}_ms"),
        )


# Candidates: a table, or changes of its actions


def unchanged() -> evaluation_pb2.Candidate:
    """Returns the candidate that is the table itself."""
    return evaluation_pb2.Candidate()


def changed(rules: Iterable[tuple[int, Action]]) -> evaluation_pb2.Candidate:
    """Returns the candidate with other actions for some rules."""
    changes = [
        evaluation_pb2.ActionChange(rule=rule, action=action_message(action))
        for rule, action in rules
    ]
    return evaluation_pb2.Candidate(actions=evaluation_pb2.ActionChanges(changes=changes))


def differences(before: RuleTable, after: RuleTable) -> evaluation_pb2.ActionChanges:
    """Returns the changes, by rule, from `before` to `after`, a table of the same structure."""
    rules = range(before.rule_count)
    return changed(
        (rule, after.action(rule)) for rule in rules if before.action(rule) != after.action(rule)
    ).actions


def apply(table: RuleTable, changes: evaluation_pb2.ActionChanges) -> RuleTable:
    """Returns the table with all changes made."""
    for change in changes.changes:
        table = table.with_action(change.rule, native_action(change.action))
    return table


# First tables, which suit the median network of the model
#
# The paper starts with m = 1, b = 1, r = 0.01 (section 4.3), and the later reference tool with
# r = 3. Local steps hardly lead away from either. The actions that score best as single rules are a
# poor start too: they keep a constant window (m = 0) and send in bursts. A good start paces at the
# fair share of the link, with a window that converges to the fair share of the path.

# Window multiples of the first tables; they differ in nothing else.
_WINDOW_MULTIPLES = (0.9, 0.8, 0.95, 0.7, 0.5, 0.98, 0.85, 0.6)
#: Number of first tables.
STARTS = len(_WINDOW_MULTIPLES)
_MEDIAN = 0.5


def path_model_of(spec: spec_pb2.DesignSpec) -> PathModel | None:
    """Returns the path model of a specification's tables; None if it has none."""
    return native_path_model(spec.path_model) if spec.HasField("path_model") else None


def first_table(spec: spec_pb2.DesignSpec, space: ActionSpace, start: int) -> RuleTable:
    """Returns first table number `start`, from 0 to `STARTS` - 1."""
    axes = sorted(axis_of(signal) for signal in spec.signals)
    if is_scale_free(spec.rules):
        table = _scale_free_first_table(spec, axes, _SCALE_FREE_MULTIPLES[start], space)
        return table.with_path_model(path_model_of(spec))
    action = first_action(spec, _WINDOW_MULTIPLES[start])
    # The start rule is for senders that have measured nothing. Without it, the action of the first
    # region would be applied again at each ACK of an earlier on period.
    burst = start_action(spec, space)
    nodes: list[Node] = [_start_rule_node(axes, spec.rules), ([], burst), ([], action)]
    table = RuleTable(axes, nodes, path_model=path_model_of(spec))
    return space.with_rounded_actions(table, space.coordinates(table))


def first_action(spec: spec_pb2.DesignSpec, window_multiple: float) -> Action:
    """Returns the action that paces at the fair share of the median network's link.

    Its window converges to the fair share of the path.
    """
    model = outline(spec)
    network = model.network
    packets_per_ms = quantile(network.rate_mbps, _MEDIAN) / kilobits_per_packet(network)
    senders_on = _senders_on(model)
    window = packets_per_ms * quantile(network.rtt_ms, _MEDIAN) / senders_on
    # With a constant multiple m and increment b the window converges to b / (1 - m).
    return Action(
        window_multiple=window_multiple,
        window_increment=(1 - window_multiple) * window,
        intersend_ms=senders_on / packets_per_ms,
    )


#: Number of the rule that contains the all-zero memory, the lower bound of every axis. It is the
#: start rule, for senders that have measured nothing yet, if it contains no other memory.
START_RULE = 0
# Axis of send_ewma (send_ratio in scale-free rules).
_SEND = axis_of(rule_table_pb2.SIGNAL_SEND_RATIO)
RTT_RATIO = axis_of(rule_table_pb2.SIGNAL_RTT_RATIO)
# Axis of slow_rec_ewma (slow_rec_ratio in scale-free rules).
_SLOW_REC = axis_of(rule_table_pb2.SIGNAL_SLOW_REC_RATIO)
# Axis of age, which only scale-free rules have.
_AGE = axis_of(rule_table_pb2.SIGNAL_AGE)
# Lower bound of measured values on axes without a natural one.
_MIN_MEASURED = 1 / (1 << 20)


def has_start_rule(table: RuleTable) -> bool:
    """Tells whether the rule of the all-zero memory contains no other memory."""
    _, upper = table.region(START_RULE)
    minimum = _min_measured(table.signals, table.rules)
    return any(upper[axis] <= value for axis, value in minimum.items())


def _min_measured(axes: Sequence[int], rules: int) -> dict[int, float]:
    """Returns the smallest measured value by axis, for axes that are 0 only before a measurement.

    The best axes to tell such memories apart from the all-zero memory come first.
    """
    sure = {axis_of(signal) for signal in signals_zero_until_measured(rules)}
    known = [axis for axis in reversed(axes) if axis in sure]
    first = [axis for axis in known if form_of(axis, rules).least_measured == 1]
    return dict.fromkeys(first, 1.0) | {axis: _MIN_MEASURED for axis in known if axis not in first}


def start_action(spec: spec_pb2.DesignSpec, space: ActionSpace) -> Action:
    """Returns the start rule's action: a first burst of about a fair share of the smallest path.

    Its window multiple is 0. The rule is applied again at each ACK of an earlier on period, so that
    a window that it kept would grow without bound.
    """
    model = outline(spec)
    network = model.network
    slowest, fastest = (mbps / kilobits_per_packet(network) for mbps in extent(network.rate_mbps))
    max_senders_on = max(1.0, extent(network.senders)[1] * _share_of_time_on(model.network.traffic))
    packets = slowest * extent(network.rtt_ms)[0] / max_senders_on
    share = _first_cells(spec).share_of_path
    burst = round(min(max(share * packets, _MIN_BURST_PACKETS), _MAX_BURST_PACKETS))
    intersend_ms = max(_senders_on(model) / fastest / 2, _MIN_INTERSEND_MS)
    return Action(
        window_multiple=0.0,
        window_increment=float(burst),
        intersend_ms=min(intersend_ms, space.bounds.intersend_maximum_ms),
    )


_MIN_BURST_PACKETS, _MAX_BURST_PACKETS = 4.0, 100.0
_MIN_INTERSEND_MS = 0.02


# First tables of scale-free rules, which pace relative to the measured rate
#
# Senders pace slightly faster than packets arrive while the queue is empty. The longer the queue
# is, the slower they pace and the smaller their window is (docs/explanation/algorithm.md,
# "Starts"). Young senders are recognized by their age in ACKs. Edition 2 has no signal for it, but
# can infer it: after k ACKs a moving average of weight w, which starts at 0, has reached the share
# 1 - (1 - w)^k of its final value, so that the slow average over the fast one depends on k.

# Window multiples of the first tables.
_SCALE_FREE_MULTIPLES = (0.7, 0.8, 0.9, 0.5, 0.6, 0.85, 0.95, 0.98)
# Window increment in percent, and multiple of the interval, of a sender that resumes with a
# remembered path. Its window multiple is 0 for the reason given in `start_action`.
_RESUMED_PERCENT, _RESUMED_PACE = 90.0, 1.0


class _FirstCells(NamedTuple):
    """The actions of a scale-free first table by region.

    A pair holds the window, in percent of the bandwidth-delay product, and the time between
    packets, as a multiple of the measured interval.
    """

    #: Upper bounds of the age of young senders, in ACKs: one region for each.
    ages: tuple[int, ...] = (40,)
    #: A typical age in each of these regions.
    typical_ages: tuple[int, ...] = (14,)
    #: For young senders.
    young: tuple[float, float] = (60.0, 1.2)
    #: For young senders whose ACKs arrive as fast as they send, so that the link has spare
    #: capacity; None if the table has no such region.
    unlimited: tuple[float, float] | None = (150.0, 0.8)
    #: For older senders: (upper bound of rtt_ratio, *pair), from an empty to a long queue.
    older: tuple[tuple[float, ...], ...] = ((1.001, 600, 0.8), (1.05, 600, 1), (math.inf, 600, 1.2))
    #: For all senders if rtt_ratio is above `_QUEUEING_RTT_RATIO`.
    queueing: tuple[float, float] = (80.0, 1.5)
    #: First burst, relative to the fair share of the smallest path.
    share_of_path: float = 1.6


_FIRST_CELLS_OF_EDITION_2 = _FirstCells(
    (5, 10, 20, 40), (3, 7, 14, 28), (110.0, 0.9), None, ((math.inf, 110, 0.9),), (80.0, 1.1), 0.8
)
_QUEUEING_RTT_RATIO, _UNLIMITED_SEND_RATIO = 1.25, 0.97
# An age region is split by link rate if it starts before this many first bursts are acknowledged.
# Only one burst is measured there, but climbs make the burst longer than the first table's.
_SPLIT_BURSTS = 2
# Decay rates of the fast and the slow moving averages in a sender's memory.
_FAST_DECAY, _SLOW_DECAY = 7 / 8, 255 / 256

#: Thresholds of an inner node, or none for a rule; and the rule's action.
Node = tuple[Sequence[tuple[int, float]], Action]
_NO_ACTION: Final = Action(0.0, 0.0, 1.0)


def _first_cells(spec: spec_pb2.DesignSpec) -> _FirstCells:
    """Returns the regions of the first table. Absolute rules use only `share_of_path`."""
    is_new = spec.edition > 2 and is_scale_free(spec.rules)
    return _FirstCells() if is_new else _FIRST_CELLS_OF_EDITION_2


def _start_rule_node(axes: Sequence[int], rules: int) -> Node:
    """Returns the inner node that separates the all-zero memory from all others."""
    axis, value = next(iter(_min_measured(axes, rules).items()))
    return [(axis, value if value == _MIN_MEASURED else value / 2)], _NO_ACTION


def _scale_free_first_table(
    spec: spec_pb2.DesignSpec, axes: Sequence[int], window_multiple: float, space: ActionSpace
) -> RuleTable:
    def rule(percent: float, pace: float, maturity: float = 1.0) -> Node:
        # `maturity` is the share of its final value that the average of the rate has reached.
        increment = float(round(percent * (1 - window_multiple) * maturity))
        return [], Action(window_multiple, increment, pace / maturity)

    cells, has_rtt, has_age = _first_cells(spec), RTT_RATIO in axes, _AGE in axes
    burst = start_action(spec, space)
    split_cells = sum(age < _SPLIT_BURSTS * burst.window_increment for age in (0, *cells.ages[:-1]))
    max_ratio = _UNLIMITED_SEND_RATIO if cells.unlimited else 1.0
    ratios = _send_ratios(spec, axes, burst.intersend_ms, max_ratio)

    def young(cell: int) -> list[Node]:
        # Rules with the signal age have averages that are means from the first ACK on.
        maturity = 1.0 if has_age else 1 - power(_FAST_DECAY, cells.typical_ages[cell])
        node = rule(*cells.young, maturity)
        nodes = _split_by_send_ratio(node, ratios if cell < split_cells else ())
        if cells.unlimited and _SEND in axes:
            unlimited = rule(*cells.unlimited, maturity)
            nodes = [([(_SEND, max_ratio)], _NO_ACTION), *nodes, unlimited]
        return nodes

    def older() -> list[Node]:
        by_rtt = cells.older if has_rtt else _FIRST_CELLS_OF_EDITION_2.older
        nodes = [rule(*by_rtt[-1][1:])]
        for end, *action in reversed(by_rtt[:-1]):
            nodes = [([(RTT_RATIO, end)], _NO_ACTION), rule(*action), *nodes]
        return nodes

    def by_age(first: int, last: int) -> list[Node]:
        if first == last:
            return young(first) if first < len(cells.ages) else older()
        middle = (first + last) // 2
        age = cells.ages[middle]
        ratio = (1 - power(_SLOW_DECAY, age)) / (1 - power(_FAST_DECAY, age))
        threshold = (_AGE, float(age)) if has_age else (_SLOW_REC, ratio)
        inner: Node = ([threshold], _NO_ACTION)
        return [inner, *by_age(first, middle), *by_age(middle + 1, last)]

    nodes = by_age(0, len(cells.ages)) if has_age or _SLOW_REC in axes else older()
    if has_rtt:
        queueing = rule(*cells.queueing)
        nodes = [([(RTT_RATIO, _QUEUEING_RTT_RATIO)], _NO_ACTION), *nodes, queueing]
    if spec.rules == rule_table_pb2.RULES_SCALE_FREE_REMEMBERING and has_rtt:
        resumed: Node = ([], Action(0.0, _RESUMED_PERCENT, _RESUMED_PACE))
        nodes = [([(RTT_RATIO, 1.0 / 2)], _NO_ACTION), resumed, *nodes]
    nodes = [_start_rule_node(axes, spec.rules), ([], burst), *nodes]
    return RuleTable(axes, nodes, rules=spec.rules)


def _send_ratios(
    spec: spec_pb2.DesignSpec, axes: Sequence[int], intersend_ms: float, maximum: float
) -> list[float]:
    """Returns the values of send_ratio that divide link rates into equally probable parts.

    `rates_at_start` is the number of parts. The values are valid while a sender has measured only
    its first burst: its packets leave at intervals of `intersend_ms`, and their ACKs arrive at the
    intervals of the link. Values from `maximum` on are left out.
    """
    if _SEND not in axes:
        return []
    parts, network = spec.search.joint.rates_at_start, outline(spec).network
    kilobits = kilobits_per_packet(network)
    packets_per_ms = (quantile(network.rate_mbps, n / parts) / kilobits for n in range(1, parts))
    return sorted({ratio for each in packets_per_ms if (ratio := intersend_ms * each) < maximum})


def _split_by_send_ratio(node: Node, ratios: Sequence[float]) -> list[Node]:
    """Returns a subtree that splits on send_ratio at `ratios`, with `node` as every leaf."""
    if not ratios:
        return [node]
    middle = len(ratios) // 2
    below = _split_by_send_ratio(node, ratios[:middle])
    above = _split_by_send_ratio(node, ratios[middle + 1 :])
    return [([(_SEND, ratios[middle])], _NO_ACTION), *below, *above]


def _senders_on(model: Model) -> float:
    """Returns the mean number of senders that are on at a time, on the median network."""
    return max(
        1.0, quantile(model.network.senders, _MEDIAN) * _share_of_time_on(model.network.traffic)
    )


def cycle_ms(spec: spec_pb2.DesignSpec) -> float:
    """Returns the mean duration of an on/off cycle on the median network, in ms.

    It is at least four round trips. A flow of a given size is on for as long as it takes at its
    fair share of the link.
    """
    model = outline(spec)
    network, traffic = model.network, model.network.traffic
    off_ms = mean_off_ms(model, lambda each: quantile(each, _MEDIAN))
    match traffic.WhichOneof("on"):
        case "exponential_time":
            on_ms = quantile(traffic.exponential_time.mean_ms, _MEDIAN)
        case "always" | "intervals":
            return spec.search.simulated_seconds * 1000
        case "exponential_bytes" | "constant_bytes":
            size = traffic.exponential_bytes.mean_bytes
            if traffic.HasField("constant_bytes"):
                size = traffic.constant_bytes.bytes
            packets = quantile(size, _MEDIAN) / 1500
            rate = quantile(network.rate_mbps, _MEDIAN) / kilobits_per_packet(network)
            on_ms = packets / rate * _senders_on(model)
        case _:
            on_ms = off_ms
    return max(on_ms + off_ms, 4 * quantile(network.rtt_ms, _MEDIAN))


def _share_of_time_on(traffic: spec_pb2.TrafficModel) -> float:
    """Returns the share of time that a sender is on; 0.5 if that depends on congestion control."""
    if traffic.HasField("always"):
        return 1.0
    if traffic.WhichOneof("on") != "exponential_time":
        return 0.5
    on_ms = quantile(traffic.exponential_time.mean_ms, _MEDIAN)
    return on_ms / (on_ms + quantile(traffic.mean_off_ms, _MEDIAN))
