"""Senders' results as columns, and slices of them."""

from __future__ import annotations

import itertools

from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native, messages
from remy_simulator.columns.layout import NUMBER_BYTES

#: Columns of TransportColumns with one entry per sender: lists of counts, and means as bytes.
TRANSPORT_COUNTS = (*messages.TRANSPORT_COUNTS, "flows")
TRANSPORT_MEANS = ("sampled_rtt_ms", "sampled_rtt_over_time_ms")
#: Columns of the histograms of RTTs; all are empty unless the request asks for distributions.
RTT_HISTOGRAMS = ("rtt_histogram_sizes", "rtt_histogram_buckets", "rtt_histogram_counts")
_TRANSPORT = (
    *TRANSPORT_COUNTS,
    "flow_packets",
    "completion_ms",
    *TRANSPORT_MEANS,
    *RTT_HISTOGRAMS,
)


def sender_columns(
    result: _native.OutcomeColumns, *, has_transports: bool
) -> evaluation_pb2.SenderColumns:
    """Returns every sender's results; those of transports only if the outcome has them."""
    senders = evaluation_pb2.SenderColumns(
        packets_received=result.packets_received,
        packets_sent=result.sender_packets_sent,
        packets_lost=result.packets_lost,
        on_ms=result.on_ms,
        share_ms=result.share_ms,
        delay_sum_ms=result.delay_sum_ms,
        first_on_ms=result.first_on_ms,
    )
    if has_transports:
        transport = result.transport
        senders.transport.MergeFrom(
            evaluation_pb2.TransportColumns(
                **{name: getattr(transport, name) for name in _TRANSPORT}
            )
        )
    return senders


class TransportRows:
    """Slices TransportColumns by senders."""

    def __init__(self, columns: evaluation_pb2.TransportColumns) -> None:
        """The columns must not change."""
        self._columns = columns
        self._flows_before = [0, *itertools.accumulate(columns.flows)]
        self._buckets_before = [0, *itertools.accumulate(columns.rtt_histogram_sizes)]
        # Reading a bytes field of a message copies it.
        self._completion_ms = columns.completion_ms
        self._means = [(name, getattr(columns, name)) for name in TRANSPORT_MEANS]

    def append_to(self, target: evaluation_pb2.TransportColumns, first: int, end: int) -> None:
        """Appends the senders from `first` to `end`, exclusive."""
        for name in TRANSPORT_COUNTS:
            getattr(target, name).extend(getattr(self._columns, name)[first:end])
        first_flow, end_flow = self._flows_before[first], self._flows_before[end]
        target.flow_packets.extend(self._columns.flow_packets[first_flow:end_flow])
        target.completion_ms += self._completion_ms[
            first_flow * NUMBER_BYTES : end_flow * NUMBER_BYTES
        ]
        if self._columns.rtt_histogram_sizes:
            target.rtt_histogram_sizes.extend(self._columns.rtt_histogram_sizes[first:end])
            place = slice(self._buckets_before[first], self._buckets_before[end])
            target.rtt_histogram_buckets.extend(self._columns.rtt_histogram_buckets[place])
            target.rtt_histogram_counts.extend(self._columns.rtt_histogram_counts[place])
        for name, column in self._means:
            means = column[first * NUMBER_BYTES : end * NUMBER_BYTES]
            setattr(target, name, getattr(target, name) + means)
