"""The rate and RTT of a specimen's path over time, and measures of recordings relative to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from remy_farm.specification.specimens import unloaded_paths
from remy_proto.v1 import evaluation_pb2

_MS_PER_SECOND: Final = 1000.0
# A queue that grows by less counts as one that does not grow.
_NEGLIGIBLE_PACKETS: Final = 1.0


@dataclass(frozen=True)
class PathHistory:
    """The bottleneck's rate and the senders' RTTs without queueing, which change at given times."""

    times_ms: np.ndarray
    """Ascending times from which on the values hold; the first one is 0."""
    rates_packets_per_ms: np.ndarray
    """Rate at which the bottleneck can transmit; 0 in an outage."""
    added_ms: np.ndarray
    """Transmission times, in an outage those before it, and the delay since the start."""
    rtts_ms: np.ndarray
    """RTT of each sender at the start, without queueing and transmission times."""

    def capacity_packets(self, from_ms: float, to_ms: float) -> float:
        """Returns the number of packets that the bottleneck can transmit between two times."""
        ends = np.append(self.times_ms[1:], np.inf)
        spans = np.clip(np.minimum(ends, to_ms) - np.maximum(self.times_ms, from_ms), 0, None)
        return float((spans * self.rates_packets_per_ms).sum())

    def rtt_ms(self, sender: int, time_ms: np.ndarray) -> np.ndarray:
        """Returns a lone packet's RTT at each time."""
        steps = np.searchsorted(self.times_ms, time_ms, side="right") - 1
        return np.asarray((self.rtts_ms[sender] + self.added_ms)[steps])

    def own_rtt_ms(self, sender: int, time_ms: np.ndarray, rtt_ms: np.ndarray) -> np.ndarray:
        """Returns the path's own part of RTTs that end at these times.

        It is the longer one of the path's RTTs when the packet was sent and when its ACK arrived.
        """
        sent_ms = np.maximum(time_ms - rtt_ms, 0.0)
        longer: np.ndarray = np.maximum(self.rtt_ms(sender, time_ms), self.rtt_ms(sender, sent_ms))
        return longer


def path_history(specimen: evaluation_pb2.Specimen) -> PathHistory | None:
    """Returns the history of the first sender's path; None if it follows random draws or a trace.

    At most one link of the path has a schedule, which does not start again.
    """
    route = specimen.senders[0].route.links[:] or range(len(specimen.links))
    links = [specimen.links[index] for index in route]
    scheduled = [link for link in links if link.HasField("schedule")]
    if any(link.WhichOneof("driver") or link.HasField("walk") for link in links):
        return None
    if len(scheduled) > 1 or any(link.schedule.repeat_after_ms for link in scheduled):
        return None
    others = [link for link in links if not link.HasField("schedule")]
    if not links:
        rates = policed = [specimen.link_rate_packets_per_ms]
    else:
        rates = [link.rate_packets_per_ms for link in others]
        policed = [link.policer.rate_packets_per_ms for link in links if link.HasField("policer")]
    sent_ms = math.fsum(1 / rate for rate in rates)
    limit = min([*rates, *policed], default=math.inf)
    states = [(0.0, limit, sent_ms)]
    if scheduled:
        (link,) = scheduled
        rate, delay_ms, last_rate = link.rate_packets_per_ms, 0.0, link.rate_packets_per_ms
        states = [(0.0, min(rate, limit), sent_ms + 1 / rate)]
        for step in link.schedule.steps:
            if step.HasField("rate_packets_per_ms"):
                rate = step.rate_packets_per_ms
            if step.HasField("delay_ms"):
                delay_ms = step.delay_ms - link.delay_ms
            last_rate = rate or last_rate
            states.append((step.at_ms, min(rate, limit), sent_ms + delay_ms + 1 / last_rate))
    times_ms, capacities, added_ms = (np.array(column) for column in zip(*states, strict=True))
    rtts_ms = np.array([rtt_ms or specimen.rtt_ms for _, rtt_ms in unloaded_paths(specimen)])
    return PathHistory(times_ms, capacities, added_ms, rtts_ms)


@dataclass(frozen=True)
class RecordedMeasures:
    """Measures of a recorded run's packets from a time on. None without values."""

    utilization: float | None = None
    """Packets delivered over what the bottleneck can transmit, from that time on."""
    rtt_over_path_mean: float | None = None
    """Mean of the RTT over the path's own RTT at that instant, over the packets received."""
    rtt_over_path_p95: float | None = None
    """95th percentile of the same."""
    queue_growth: float | None = None
    """Mean queue of the last third of the run over that of the third before it; 1 if it grows by
    at most a packet."""
    first_second_mbps: float | None = None
    """Packets delivered in the first second of the run."""
    second_second_mbps: float | None = None
    """Packets delivered in the second second of the run."""


RECORDED_NAMES: Final = tuple(field.name for field in fields(RecordedMeasures))


def measure_recording(
    recording: Mapping[str, np.ndarray],
    history: PathHistory,
    senders: Sequence[int],
    *,
    from_ms: float,
    megabits_per_packet: float,
) -> RecordedMeasures:
    """Measures the packets of several senders in a recording."""
    time_ms = recording["time_ms"]
    received = recording["packets_received"][:, senders]
    in_order = recording["packets_in_order"][:, senders]
    # Transports that do not deliver in order count every packet.
    delivered = np.where(in_order[-1:] > 0, in_order, received).sum(axis=1)

    def delivered_between(from_ms: float, to_ms: float) -> float:
        ends = np.interp([from_ms, to_ms], [0.0, *time_ms], [0.0, *delivered])
        return float(ends[1] - ends[0])

    end_ms = float(time_ms[-1])
    capacity = history.capacity_packets(from_ms, end_ms)
    ratios, weights = [], []
    counts = np.diff(received, axis=0, prepend=0.0)
    for column, sender in enumerate(senders):
        rtt_ms = recording["rtt_ms"][:, sender]
        is_counted = (rtt_ms > 0) & (counts[:, column] > 0) & (time_ms > from_ms)
        own_ms = history.own_rtt_ms(sender, time_ms[is_counted], rtt_ms[is_counted])
        ratios.append(rtt_ms[is_counted] / own_ms)
        weights.append(counts[is_counted, column])
    ratio, weight = np.concatenate(ratios), np.concatenate(weights)
    has_packets = weight.sum() > 0
    queue = recording["waiting_packets"][:, 0]
    thirds = [
        queue[(time_ms > end_ms * start / 3) & (time_ms <= end_ms * (start + 1) / 3)].mean()
        for start in (1, 2)
    ]
    return RecordedMeasures(
        utilization=delivered_between(from_ms, end_ms) / capacity if capacity > 0 else None,
        rtt_over_path_mean=float(np.average(ratio, weights=weight)) if has_packets else None,
        rtt_over_path_p95=_weighted_percentile(ratio, weight, 0.95) if has_packets else None,
        queue_growth=_growth(*map(float, thirds)),
        first_second_mbps=delivered_between(0, _MS_PER_SECOND) * megabits_per_packet,
        second_second_mbps=delivered_between(_MS_PER_SECOND, 2 * _MS_PER_SECOND)
        * megabits_per_packet,
    )


def _growth(before: float, last: float) -> float:
    if last - before <= _NEGLIGIBLE_PACKETS:
        return min(1.0, last / before) if before > 0 else 1.0
    return last / max(before, _NEGLIGIBLE_PACKETS)


def _weighted_percentile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Returns the smallest value that `share` of the weight does not exceed."""
    order = np.argsort(values)
    heavy = np.cumsum(weights[order]) >= share * weights.sum()
    return float(values[order][heavy.argmax()])
