"""Actions as points, as candidates of an evaluation, and where a search begins."""

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
    action_message,
    axis_of,
    form_of,
    is_scale_free,
    native_action,
    native_bounds,
    sure_signals,
)

# Actions as points, and where a search begins

#: Actions as points (docs/explanation/simulator.md, "Coordinates of an action"): one row a rule, of
#: window multiple, window increment and intersend.
Coordinates = NDArray[np.float64]


class ActionRanges(Protocol):
    """Settings of a search that say in which range each component of an action lies."""

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
        action = self._action(row)
        return action._replace(window_increment=self.whole_increment(action.window_increment))

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
        return Action(
            window_multiple=getattr(bounds, f"window_multiple_{multiple}"),
            window_increment=getattr(bounds, f"window_increment_{rest}"),
            intersend_ms=getattr(bounds, f"intersend_{rest}_ms"),
        )


def unchanged() -> evaluation_pb2.Candidate:
    """The table as it is."""
    return evaluation_pb2.Candidate()


def changed(rules: Iterable[tuple[int, Action]]) -> evaluation_pb2.Candidate:
    """The table with other actions for some rules."""
    changes = [
        evaluation_pb2.ActionChange(rule=rule, action=action_message(action))
        for rule, action in rules
    ]
    return evaluation_pb2.Candidate(actions=evaluation_pb2.ActionChanges(changes=changes))


def differences(before: RuleTable, after: RuleTable) -> evaluation_pb2.ActionChanges:
    """What turns `before` into `after`, a table of the same structure, by increasing rule."""
    rules = range(before.rule_count)
    return changed(
        (rule, after.action(rule)) for rule in rules if before.action(rule) != after.action(rule)
    ).actions


def apply(table: RuleTable, changes: evaluation_pb2.ActionChanges) -> RuleTable:
    """The table with all changes made."""
    for change in changes.changes:
        table = table.with_action(change.rule, native_action(change.action))
    return table


# Where to begin: about right for the network in the middle of the model.
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
    """The table of start number `start`, from 0 to `STARTS` - 1."""
    axes = sorted(axis_of(signal) for signal in spec.signals)
    if is_scale_free(spec.rules):
        return _scale_free_start(spec, axes, _SCALE_FREE_MULTIPLES[start], space)
    action = first_action(spec, _WINDOW_MULTIPLES[start])
    # The first rule is for senders that have measured nothing: that of a whole region would be
    # applied again at each ACK of an earlier on period.
    burst = start_action(spec, space)
    nodes: list[Node] = [_measured_something(axes, spec.rules), ([], burst), ([], action)]
    table = RuleTable(axes, nodes)
    return space.with_rounded_actions(table, space.coordinates(table))


def first_action(spec: spec_pb2.DesignSpec, window_multiple: float) -> Action:
    """Fair shares of the median network: of its rate as pacing, of its packets as window."""
    model = outline(spec)
    network = model.network
    packets_per_ms = quantile(network.rate_mbps, _MEDIAN) / kilobits_per_packet(network)
    senders_on = _senders_on(model)
    window = packets_per_ms * quantile(network.rtt_ms, _MEDIAN) / senders_on
    # A constant multiple and increment settle at the window b / (1 - m).
    return Action(
        window_multiple=window_multiple,
        window_increment=(1 - window_multiple) * window,
        intersend_ms=senders_on / packets_per_ms,
    )


#: The number of the rule for the all-zero memory, which lies at the lower end of every axis: where
#: it is for nothing else, that of senders that have measured nothing yet.
START_RULE = 0
#: The native axes of send_ewma or send_ratio, rtt_ratio, and slow_rec_ewma or slow_rec_ratio.
_SEND = axis_of(rule_table_pb2.SIGNAL_SEND_RATIO)
RTT_RATIO = axis_of(rule_table_pb2.SIGNAL_RTT_RATIO)
_SLOW_REC = axis_of(rule_table_pb2.SIGNAL_SLOW_REC_RATIO)
#: That of age, of scale-free rules.
_AGE = axis_of(rule_table_pb2.SIGNAL_AGE)
#: No measured memory value lies below, of other axes that cannot stay 0.
_LEAST_OTHER = 1 / (1 << 20)


def has_start_rule(table: RuleTable) -> bool:
    """Whether the rule for the all-zero memory has no other."""
    _, upper = table.region(START_RULE)
    least = _least_measured(table.signals, table.rules)
    return any(upper[axis] <= value for axis, value in least.items())


def _least_measured(axes: Sequence[int], rules: int) -> dict[int, float]:
    """What nothing that is known lies below on the axes where it is not 0, the best to divide on
    first."""
    sure = {axis_of(signal) for signal in sure_signals(rules)}
    known = [axis for axis in reversed(axes) if axis in sure]
    first = [axis for axis in known if form_of(axis, rules).least_measured == 1]
    return dict.fromkeys(first, 1.0) | {axis: _LEAST_OTHER for axis in known if axis not in first}


def start_action(spec: spec_pb2.DesignSpec, space: ActionSpace) -> Action:
    """The start rule's: most of a fair share of the smallest path at once, and no window to keep.

    It is applied again at each ACK of an earlier on period, where a window that it kept would grow
    without end.
    """
    model = outline(spec)
    network = model.network
    slowest, fastest = (mbps / kilobits_per_packet(network) for mbps in extent(network.rate_mbps))
    most_on = max(1.0, extent(network.senders)[1] * _share_of_time_on(model.network.traffic))
    packets = slowest * extent(network.rtt_ms)[0] / most_on
    share = _start_of(spec).share_of_path
    burst = round(min(max(share * packets, _FEWEST_PACKETS), _MOST_PACKETS))
    intersend_ms = max(_senders_on(model) / fastest / 2, _SHORTEST_MS)
    return Action(
        window_multiple=0.0,
        window_increment=float(burst),
        intersend_ms=min(intersend_ms, space.bounds.intersend_maximum_ms),
    )


_FEWEST_PACKETS, _MOST_PACKETS = 4.0, 100.0
_SHORTEST_MS = 0.02


# Scale-free rules need no network in the middle: what they pace at is measured. Senders pace a
# little faster than packets arrive while the queue is empty, and slower into a smaller window the
# more has built up (docs/explanation/algorithm.md, "Starts"). Young senders are told apart by their
# age: after k ACKs an average of weight w has come to a share 1 - (1 - w)^k of what it will be, and
# how far the slow one over the fast one has come tells k.
_SCALE_FREE_MULTIPLES = (0.7, 0.8, 0.9, 0.5, 0.6, 0.85, 0.95, 0.98)
# At once, and no more: as the start rule, it is applied again at each ACK of an earlier on period.
_RESUMED_PERCENT, _RESUMED_PACE = 90.0, 1.0


class _Start(NamedTuple):
    """The cells of a first table: window in percent of the measured path, and pace, of each."""

    #: Ages in ACKs: where one cell ends, and in its middle.
    ages: tuple[int, ...] = (40,)
    middles: tuple[int, ...] = (14,)
    young: tuple[float, float] = (60.0, 1.2)
    #: Young, and what is sent comes back as it left: the link has room.
    unhindered: tuple[float, float] | None = (150.0, 0.8)
    #: Older, by where rtt_ratio ends: nothing waits, a little, more.
    older: tuple[tuple[float, ...], ...] = ((1.001, 600, 0.8), (1.05, 600, 1), (math.inf, 600, 1.2))
    queueing: tuple[float, float] = (80.0, 1.5)
    #: How much of a fair share of the smallest path is sent at once.
    share_of_path: float = 1.6


_START_OF_EDITION_2 = _Start(
    (5, 10, 20, 40), (3, 7, 14, 28), (110.0, 0.9), None, ((math.inf, 110, 0.9),), (80.0, 1.1), 0.8
)
_QUEUEING_RTT_RATIO, _UNHINDERED_SEND_RATIO = 1.25, 0.97
#: A cell of age may be about the first burst if it begins before so many bursts are acknowledged:
#: climbs like them longer than the first table's.
_LONGEST_BURST = 2
_FAST_KEEP, _SLOW_KEEP = 7 / 8, 255 / 256

Node = tuple[Sequence[tuple[int, float]], Action]
_NO_ACTION: Final = Action(0.0, 0.0, 1.0)


def _start_of(spec: spec_pb2.DesignSpec) -> _Start:
    """Of absolute rules only the first burst."""
    is_new = spec.edition > 2 and is_scale_free(spec.rules)
    return _Start() if is_new else _START_OF_EDITION_2


def _measured_something(axes: Sequence[int], rules: int) -> Node:
    """The node that divides all memory into what is all zero and what is not."""
    axis, value = next(iter(_least_measured(axes, rules).items()))
    return [(axis, value if value == _LEAST_OTHER else value / 2)], _NO_ACTION


def _scale_free_start(
    spec: spec_pb2.DesignSpec, axes: Sequence[int], window_multiple: float, space: ActionSpace
) -> RuleTable:
    def follow(percent: float, pace: float, grown: float = 1.0) -> Node:
        increment = float(round(percent * (1 - window_multiple) * grown))
        return [], Action(window_multiple, increment, pace / grown)

    start, has_rtt, knows_age = _start_of(spec), RTT_RATIO in axes, _AGE in axes
    burst = start_action(spec, space)
    told = sum(age < _LONGEST_BURST * burst.window_increment for age in (0, *start.ages[:-1]))
    most = _UNHINDERED_SEND_RATIO if start.unhindered else 1.0
    rates = _ratios_of_rates(spec, axes, burst.intersend_ms, most)

    def young(cell: int) -> list[Node]:
        # Averages that know the age are means from the first.
        grown = 1.0 if knows_age else 1 - power(_FAST_KEEP, start.middles[cell])
        nodes = _alike(follow(*start.young, grown), rates if cell < told else ())
        if start.unhindered and _SEND in axes:
            above = follow(*start.unhindered, grown)
            nodes = [([(_SEND, most)], _NO_ACTION), *nodes, above]
        return nodes

    def older() -> list[Node]:
        cells = start.older if has_rtt else _START_OF_EDITION_2.older
        nodes = [follow(*cells[-1][1:])]
        for end, *action in reversed(cells[:-1]):
            nodes = [([(RTT_RATIO, end)], _NO_ACTION), follow(*action), *nodes]
        return nodes

    def by_age(first: int, last: int) -> list[Node]:
        if first == last:
            return young(first) if first < len(start.ages) else older()
        middle = (first + last) // 2
        age = start.ages[middle]
        ratio = (1 - power(_SLOW_KEEP, age)) / (1 - power(_FAST_KEEP, age))
        threshold = (_AGE, float(age)) if knows_age else (_SLOW_REC, ratio)
        divided: Node = ([threshold], _NO_ACTION)
        return [divided, *by_age(first, middle), *by_age(middle + 1, last)]

    nodes = by_age(0, len(start.ages)) if knows_age or _SLOW_REC in axes else older()
    if has_rtt:
        queueing = follow(*start.queueing)
        nodes = [([(RTT_RATIO, _QUEUEING_RTT_RATIO)], _NO_ACTION), *nodes, queueing]
    if spec.rules == rule_table_pb2.RULES_SCALE_FREE_REMEMBERING and has_rtt:
        resumed: Node = ([], Action(0.0, _RESUMED_PERCENT, _RESUMED_PACE))
        nodes = [([(RTT_RATIO, 1.0 / 2)], _NO_ACTION), resumed, *nodes]
    nodes = [_measured_something(axes, spec.rules), ([], burst), *nodes]
    return RuleTable(axes, nodes, rules=spec.rules)


def _ratios_of_rates(
    spec: spec_pb2.DesignSpec, axes: Sequence[int], intersend_ms: float, most: float
) -> list[float]:
    """Where send_ratio divides link rates into `rates_at_start` equally probable parts while all
    that a sender has heard of is its first burst, whose packets left at such intervals, and came
    back at those of the link."""
    if _SEND not in axes:
        return []
    parts, network = spec.search.joint.rates_at_start, outline(spec).network
    kilobits = kilobits_per_packet(network)
    packets_per_ms = (quantile(network.rate_mbps, n / parts) / kilobits for n in range(1, parts))
    # A burst that is slower than the link comes back as it left.
    return sorted({ratio for each in packets_per_ms if (ratio := intersend_ms * each) < most})


def _alike(node: Node, ratios: Sequence[float]) -> list[Node]:
    """The node, divided on send_ratio."""
    if not ratios:
        return [node]
    middle = len(ratios) // 2
    below, above = _alike(node, ratios[:middle]), _alike(node, ratios[middle + 1 :])
    return [([(_SEND, ratios[middle])], _NO_ACTION), *below, *above]


def _senders_on(model: Model) -> float:
    """How many are on at a time on the median network."""
    return max(
        1.0, quantile(model.network.senders, _MEDIAN) * _share_of_time_on(model.network.traffic)
    )


def cycle_ms(spec: spec_pb2.DesignSpec) -> float:
    """How long an on and an off period of the median network take, but no less than four of its
    round trips. A flow by bytes is on for as long as its fair share of the link needs."""
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
    """Half where it depends on the congestion control."""
    if traffic.HasField("always"):
        return 1.0
    if traffic.WhichOneof("on") != "exponential_time":
        return 0.5
    on_ms = quantile(traffic.exponential_time.mean_ms, _MEDIAN)
    return on_ms / (on_ms + quantile(traffic.mean_off_ms, _MEDIAN))
