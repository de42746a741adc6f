"""Where to begin: single rules about right for the network in the middle of the model.

The paper begins at m = 1, b = 1, r = 0.01 (section 4.3), and the later reference tool at r = 3:
poor places both, from which local steps hardly lead away. Actions that score best as single rules
are no better to grow a table from: they keep a constant window (m = 0) and send in bursts. What
works is to pace at the fair share of the link, with a window that settles at the fair share of the
path, and to leave the rest to the search.
"""

from __future__ import annotations

from remy_farm.v1 import spec_pb2
from remy_services.designer.action_space import ActionSpace
from remy_services.spec.network import KILOBITS_PER_PACKET, quantile
from remy_simulator import RuleTable
from remy_simulator.messages import ActionTuple as Action
from remy_simulator.messages import axis_of

# Starts differ in how much of its window a sender keeps at each ACK.
_WINDOW_MULTIPLES = (0.9, 0.8, 0.95, 0.7, 0.5, 0.98, 0.85, 0.6)
#: How many there are.
STARTS = len(_WINDOW_MULTIPLES)
_MEDIAN = 0.5


def first_table(spec: spec_pb2.DesignSpec, space: ActionSpace, start: int) -> RuleTable:
    """The single rule of start number `start`, from 0 to `STARTS` - 1."""
    action = first_action(spec, _WINDOW_MULTIPLES[start])
    table = RuleTable([axis_of(signal) for signal in spec.signals], [([], action)])
    return space.with_rounded_actions(table, space.coordinates(table))


def first_action(spec: spec_pb2.DesignSpec, window_multiple: float) -> Action:
    """Fair shares of the median network: of its rate as pacing, of its packets as window."""
    network = spec.network
    packets_per_ms = quantile(network.link_rate_mbps, _MEDIAN) / KILOBITS_PER_PACKET
    senders_on = max(1.0, quantile(network.senders, _MEDIAN) * _share_of_time_on(spec.traffic))
    window = packets_per_ms * quantile(network.rtt_ms, _MEDIAN) / senders_on
    # A constant multiple and increment settle at the window b / (1 - m).
    return (window_multiple, (1 - window_multiple) * window, senders_on / packets_per_ms)


def _share_of_time_on(traffic: spec_pb2.TrafficModel) -> float:
    """Half where it depends on the congestion control."""
    if traffic.WhichOneof("on") != "exponential_time":
        return 0.5
    on_ms = quantile(traffic.exponential_time.mean_ms, _MEDIAN)
    return on_ms / (on_ms + quantile(traffic.mean_off_ms, _MEDIAN))
