"""Writes what one sender sent and received as pcapng, for Wireshark, and as qlog, for qvis."""

from __future__ import annotations

import json
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from remy_farm.evaluation.simulation import Simulation
from remy_simulator import _native
from remy_simulator.messages import packet_bytes

_NS_PER_MS: Final = 1e6
_US_PER_MS: Final = 1e3
_BITS_PER_BYTE: Final = 8
_MS_PER_SECOND: Final = 1000.0
_WORD: Final = 1 << 32

#: Headers of a data packet: IPv4, TCP and the time stamps option with two bytes of padding.
HEADER_BYTES: Final = 20 + 20 + 12
#: The most bytes of an IPv4 packet.
MAX_PACKET_BYTES: Final = 65535


class _Kind(IntEnum):
    """The kinds of events that the simulator captures."""

    SENT = 0
    ACK = 1
    LOST = 2
    TIMEOUT = 3
    STATE = 4


@dataclass(frozen=True)
class Capture:
    """The data packets that one sender sent, and the ACKs that it received.

    The simulator's senders count packets, and have no headers. A packet is written as one of TCP
    over IPv4 with the packet's size, and its sequence number is its number times the bytes of data
    that fit. Times are simulated times since 0.
    """

    sender: int
    """Index of the sender in its network."""
    kind: str
    """Name of its protocol or table."""
    packet_bytes: int
    seen: _native.PacketCapture

    @property
    def payload_bytes(self) -> int:
        """Bytes of data in a packet: its size without headers, but at least 1."""
        return max(self.packet_bytes - HEADER_BYTES, 1)

    def to_pcapng(self) -> bytes:
        """Returns the packets as a pcapng file of raw IPv4 packets, without their data.

        Raises ValueError if the packets are larger than IPv4 allows.
        """
        if self.packet_bytes > MAX_PACKET_BYTES:
            raise ValueError(
                f"packets have {self.packet_bytes} bytes, but IPv4 packets have at most "
                f"{MAX_PACKET_BYTES}"
            )
        return b"".join(_pcapng_blocks(self))

    def to_qlog(self) -> bytes:
        """Returns the packets, losses and the sender's state as a qlog file, version 0.3."""
        head = {
            "qlog_version": "0.3",
            "qlog_format": "JSON",
            "title": f"{self.kind}, sender {self.sender}",
            "description": "Simulated by remy-farm; packet numbers count transmissions.",
        }
        trace = {
            "vantage_point": {"name": f"sender {self.sender}", "type": "client"},
            "common_fields": {"time_format": "relative", "reference_time": 0},
        }
        events = ",\n".join(
            json.dumps(event, separators=(",", ":"), allow_nan=False)
            for event in _qlog_events(self)
        )
        # Both objects are left open for what follows them.
        text = f'{json.dumps(head)[:-1]}, "traces": [{json.dumps(trace)[:-1]}, "events": [\n'
        return f"{text}{events}\n]}}]}}\n".encode()


def capture_of_simulation(simulation: Simulation) -> Capture:
    """Returns the capture of a simulation. Raises ValueError if nothing was captured."""
    seen = simulation.capture
    if seen is None:
        raise ValueError("the simulation has no capture; simulate with capture_sender")
    return Capture(
        sender=seen.sender,
        kind=simulation.kind_names[seen.sender],
        packet_bytes=round(packet_bytes(simulation.specimen.bottleneck)),
        seen=seen,
    )


# Events.


@dataclass(frozen=True, slots=True)
class _Ack:
    """The contents of an ACK. Packet numbers are those of the simulator."""

    echoed_ms: float
    received_ms: float
    cumulative: int
    marked: int
    blocks: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _State:
    window_packets: float
    intersend_ms: float
    #: Packets before it are acknowledged or given up.
    first: int
    in_flight: int
    smoothed_rtt_ms: float
    rtt_variation_ms: float
    ssthresh_packets: float


@dataclass(frozen=True, slots=True)
class _Event:
    kind: _Kind
    time_ms: float
    #: Number of the packet that is sent or found lost, or that an ACK echoes.
    sequence: int
    #: Number of its transmission.
    transmission: int
    ack: _Ack | None
    state: _State | None


def _numbers(column: bytes, kind: type) -> list[Any]:
    values = array("d" if kind is float else "Q", column)
    if sys.byteorder == "big":
        values.byteswap()
    return list(values)


def _events(seen: _native.PacketCapture) -> Iterator[_Event]:
    acks, states = _acks(seen), _states(seen)
    for kind, time_ms, sequence, transmission in zip(
        seen.kind,
        _numbers(seen.time_ms, float),
        _numbers(seen.sequence, int),
        _numbers(seen.transmission_number, int),
        strict=True,
    ):
        yield _Event(
            kind=_Kind(kind),
            time_ms=time_ms,
            sequence=sequence,
            transmission=transmission,
            ack=next(acks) if kind == _Kind.ACK else None,
            state=next(states) if kind == _Kind.STATE else None,
        )


def _acks(seen: _native.PacketCapture) -> Iterator[_Ack]:
    blocks = zip(_numbers(seen.block_first, int), _numbers(seen.block_end, int), strict=True)
    for echoed_ms, received_ms, cumulative, marked, count in zip(
        _numbers(seen.echoed_ms, float),
        _numbers(seen.received_ms, float),
        _numbers(seen.cumulative, int),
        _numbers(seen.marked, int),
        _numbers(seen.blocks, int),
        strict=True,
    ):
        own = [next(blocks) for _ in range(count)]
        yield _Ack(echoed_ms, received_ms, cumulative, marked, own)


def _states(seen: _native.PacketCapture) -> Iterator[_State]:
    rows = zip(
        _numbers(seen.window_packets, float),
        _numbers(seen.intersend_ms, float),
        _numbers(seen.first, int),
        _numbers(seen.in_flight, int),
        _numbers(seen.smoothed_rtt_ms, float),
        _numbers(seen.rtt_variation_ms, float),
        _numbers(seen.ssthresh_packets, float),
        strict=True,
    )
    return (_State(*row) for row in rows)


# pcapng: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html.

_SECTION_HEADER: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_ENHANCED_PACKET: Final = 6
_BYTE_ORDER: Final = 0x1A2B3C4D
_LINKTYPE_RAW: Final = 101
_OPTION_COMMENT: Final = 1
_OPTION_NAME: Final = 2
_OPTION_FLAGS: Final = 2
_OPTION_APPLICATION: Final = 4
_OPTION_RESOLUTION: Final = 9
_INBOUND, _OUTBOUND = struct.pack("<I", 1), struct.pack("<I", 2)
# IPv4 and TCP headers with all options that an ACK can have.
_SNAP_BYTES: Final = 20 + 20 + 40

_SENDER_ADDRESS: Final = bytes((10, 0, 0, 1))
_RECEIVER_ADDRESS: Final = bytes((10, 0, 0, 2))
_FIRST_PORT: Final = 49152
_PORTS: Final = 16384
#: The discard service (RFC 863).
_RECEIVER_PORT: Final = 9
# The first byte of data. There is no handshake.
_FIRST_SEQUENCE: Final = 1
_TCP: Final = 6
_DONT_FRAGMENT: Final = 0x4000
_ECT_0: Final = 2
_FLAG_ACK, _FLAG_ECE = 0x10, 0x40


def _pcapng_blocks(capture: Capture) -> Iterator[bytes]:
    yield _block(
        _SECTION_HEADER,
        struct.pack("<IHHq", _BYTE_ORDER, 1, 0, -1) + _options((_OPTION_APPLICATION, b"remy-farm")),
    )
    name = f"sender {capture.sender}: {capture.kind}".encode()
    yield _block(
        _INTERFACE,
        struct.pack("<HHI", _LINKTYPE_RAW, 0, _SNAP_BYTES)
        + _options((_OPTION_NAME, name), (_OPTION_RESOLUTION, b"\x09")),
    )
    sender_port = _FIRST_PORT + capture.sender % _PORTS
    payload = capture.payload_bytes
    ect = _ECT_0 if capture.seen.is_ecn_capable else 0
    # The number of new packets and of ACKs so far, and the last time stamp of each end.
    next_new = acks = last_sent_us = last_received_us = 0
    for event in _events(capture.seen):
        if event.kind is _Kind.SENT:
            last_sent_us = round(event.time_ms * _US_PER_MS) % _WORD
            headers = _headers(
                (_SENDER_ADDRESS, sender_port, _RECEIVER_ADDRESS, _RECEIVER_PORT),
                sequence=_FIRST_SEQUENCE + event.sequence * payload,
                acknowledged=_FIRST_SEQUENCE,
                flags=_FLAG_ACK,
                time_stamps=(last_sent_us, last_received_us),
                blocks=[],
                payload=payload,
                identification=event.transmission,
                traffic_class=ect,
            )
            is_new = event.sequence >= next_new
            next_new = max(next_new, event.sequence + 1)
            options = [] if is_new else [(_OPTION_COMMENT, b"retransmission")]
            yield _packet_block(
                event.time_ms, headers, payload, (_OPTION_FLAGS, _OUTBOUND), *options
            )
        elif event.ack is not None:
            last_received_us = round(event.ack.received_ms * _US_PER_MS) % _WORD
            headers = _headers(
                (_RECEIVER_ADDRESS, _RECEIVER_PORT, _SENDER_ADDRESS, sender_port),
                sequence=_FIRST_SEQUENCE,
                acknowledged=_FIRST_SEQUENCE + event.ack.cumulative * payload,
                flags=_FLAG_ACK | (_FLAG_ECE if event.ack.marked else 0),
                time_stamps=(last_received_us, round(event.ack.echoed_ms * _US_PER_MS) % _WORD),
                blocks=[
                    (_FIRST_SEQUENCE + first * payload, _FIRST_SEQUENCE + end * payload)
                    for first, end in event.ack.blocks
                ],
                payload=0,
                identification=acks,
                traffic_class=0,
            )
            acks += 1
            yield _packet_block(event.time_ms, headers, 0, (_OPTION_FLAGS, _INBOUND))


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)


def _options(*options: tuple[int, bytes]) -> bytes:
    """Returns the options (code, value), with the one that ends them."""
    parts = (struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options)
    return b"".join(parts) + bytes(4)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def _packet_block(
    time_ms: float, headers: bytes, payload: int, *options: tuple[int, bytes]
) -> bytes:
    time_ns = round(time_ms * _NS_PER_MS)
    lengths = (len(headers), len(headers) + payload)
    body = struct.pack("<IIIII", 0, time_ns >> 32, time_ns % _WORD, *lengths)
    return _block(_ENHANCED_PACKET, body + _padded(headers) + _options(*options))


def _headers(
    ends: tuple[bytes, int, bytes, int],
    *,
    sequence: int,
    acknowledged: int,
    flags: int,
    time_stamps: tuple[int, int],
    blocks: list[tuple[int, int]],
    payload: int,
    identification: int,
    traffic_class: int,
) -> bytes:
    """Returns the IPv4 and TCP headers of a packet with `payload` bytes, all of them 0.

    `ends` are source address and port, destination address and port. Numbers are taken modulo what
    their field holds.
    """
    source, source_port, target, target_port = ends
    # Two bytes without operation (1) align the values of an option.
    tcp_options = struct.pack("!BBBBII", 1, 1, 8, 10, *time_stamps)
    if blocks:
        tcp_options += struct.pack("!BBBB", 1, 1, 5, 2 + 8 * len(blocks))
        for first, end in blocks:
            tcp_options += struct.pack("!II", first % _WORD, end % _WORD)
    tcp_bytes = 20 + len(tcp_options)
    tcp = struct.pack(
        "!HHIIBBHHH",
        source_port,
        target_port,
        sequence % _WORD,
        acknowledged % _WORD,
        tcp_bytes // 4 << 4,
        flags,
        0xFFFF,
        0,
        0,
    )
    pseudo_header = source + target + struct.pack("!HH", _TCP, tcp_bytes + payload)
    tcp += tcp_options
    tcp = _with_checksum(tcp, 16, pseudo_header + tcp)
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        traffic_class,
        20 + tcp_bytes + payload,
        identification % (1 << 16),
        _DONT_FRAGMENT,
        64,
        _TCP,
        0,
        source,
        target,
    )
    return _with_checksum(ip, 10, ip) + tcp


def _with_checksum(header: bytes, place: int, covered: bytes) -> bytes:
    """Returns the header with the Internet checksum (RFC 1071) of `covered` in its place."""
    total = sum(struct.unpack(f"!{len(covered) // 2}H", covered))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return header[:place] + struct.pack("!H", ~total & 0xFFFF) + header[place + 2 :]


# qlog: draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events, as qvis reads them.

# ACKs report so many ranges of packet numbers, the highest ones.
_MAX_RANGES: Final = 8
# Thresholds from here on are none: no window is so large.
_NO_THRESHOLD: Final = 1e9


@dataclass
class _Ranges:
    """A set of integers as ascending ranges [first, end)."""

    firsts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, first: int, end: int) -> list[int]:
        """Adds a range; returns the integers that are new."""
        if first >= end:
            return []
        # The ranges from `low` to `high`, exclusive, overlap or touch the new one.
        low, high = bisect_left(self.ends, first), bisect_right(self.firsts, end)
        new: list[int] = []
        at = first
        for place in range(low, high):
            new += range(at, min(self.firsts[place], end))
            at = max(at, self.ends[place])
        new += range(at, end)
        if low < high:
            first, end = min(first, self.firsts[low]), max(end, self.ends[high - 1])
        self.firsts[low:high] = [first]
        self.ends[low:high] = [end]
        return new

    def highest(self, count: int) -> list[list[int]]:
        """Returns the highest ranges as [first, last], ascending."""
        return [
            [first, end - 1]
            for first, end in zip(self.firsts[-count:], self.ends[-count:], strict=True)
        ]


@dataclass
class _Packets:
    """The packets of a sender, as QUIC counts them: each transmission has a number of its own."""

    #: The last transmission of each packet that is sent and not acknowledged.
    outstanding: dict[int, int] = field(default_factory=dict)
    #: Packets that were found lost and not sent again since, with the trigger.
    lost: dict[int, str] = field(default_factory=dict)
    acknowledged: _Ranges = field(default_factory=_Ranges)
    #: Transmissions that the receiver has.
    received: _Ranges = field(default_factory=_Ranges)
    next_new: int = 0

    def send(self, sequence: int, transmission: int) -> str | None:
        """Returns the trigger of a retransmission; None for a new packet."""
        is_new = sequence >= self.next_new
        self.next_new = max(self.next_new, sequence + 1)
        self.outstanding[sequence] = transmission
        trigger = self.lost.pop(sequence, None)
        if is_new:
            return None
        return _PROBE if trigger is None else _RETRANSMISSIONS[trigger]

    def acknowledge(self, echoed: int, transmission: int, ack: _Ack | None) -> list[list[int]]:
        """Returns the ranges of transmissions that the receiver has, by all ACKs up to this one.

        Without `ack`, an ACK acknowledges only the packet that it echoes.
        """
        self.received.add(transmission, transmission + 1)
        self._forget(echoed)
        for first, end in () if ack is None else ((0, ack.cumulative), *ack.blocks):
            for sequence in self.acknowledged.add(first, end):
                last = self._forget(sequence)
                if last is not None:
                    self.received.add(last, last + 1)
        return self.received.highest(_MAX_RANGES)

    def give_up(self, end: int) -> None:
        """Forgets all packets before `end` that are not acknowledged."""
        for sequence in self.acknowledged.add(0, end):
            self._forget(sequence)

    def _forget(self, sequence: int) -> int | None:
        self.lost.pop(sequence, None)
        return self.outstanding.pop(sequence, None)

    def lose(self, sequence: int, trigger: str) -> int | None:
        """Returns the transmission that is lost; None if it is not outstanding."""
        if sequence not in self.outstanding or sequence in self.lost:
            return None
        self.lost[sequence] = trigger
        return self.outstanding[sequence]


_REORDERED, _EXPIRED = "reordering_threshold", "pto_expired"
# The trigger of a retransmission of a packet that was not found lost.
_PROBE = "pto_probe"
#: The trigger of a retransmission by that of the loss.
_RETRANSMISSIONS: Final = {_REORDERED: "retransmit_reordered", _EXPIRED: "retransmit_timeout"}


def _qlog_events(capture: Capture) -> Iterator[dict[str, Any]]:
    packets = _Packets()
    payload = capture.payload_bytes
    metrics: dict[str, float] = {}
    latest_rtt_ms, min_rtt_ms = 0.0, float("inf")
    acks = marked = 0

    def event(name: str, data: dict[str, Any]) -> dict[str, Any]:
        return {"time": round(now_ms, 6), "name": name, "data": data}

    def header(number: int) -> dict[str, Any]:
        return {"packet_type": "1RTT", "packet_number": number}

    def stream(sequence: int) -> dict[str, Any]:
        return {
            "frame_type": "stream",
            "stream_id": 0,
            "offset": sequence * payload,
            "length": payload,
        }

    for each in _events(capture.seen):
        now_ms, sequence = each.time_ms, each.sequence
        if each.kind is _Kind.SENT:
            trigger = packets.send(sequence, each.transmission)
            yield event(
                "transport:packet_sent",
                {
                    "header": header(each.transmission),
                    "raw": {"length": capture.packet_bytes, "payload_length": payload},
                    "frames": [stream(sequence)],
                    **({} if trigger is None else {"trigger": trigger}),
                },
            )
        elif each.ack is not None:
            latest_rtt_ms = now_ms - each.ack.echoed_ms
            min_rtt_ms = min(min_rtt_ms, latest_rtt_ms)
            marked += each.ack.marked
            ranges = packets.acknowledge(
                sequence, each.transmission, None if capture.seen.acks_echo_alone else each.ack
            )
            frame = {"frame_type": "ack", "acked_ranges": ranges}
            yield event(
                "transport:packet_received",
                {
                    "header": header(acks),
                    "frames": [frame | ({"ce": marked} if capture.seen.is_ecn_capable else {})],
                },
            )
            acks += 1
        elif each.state is not None:
            packets.give_up(each.state.first)
            changed = _metrics(each.state, capture.packet_bytes)
            if acks:
                changed |= {"latest_rtt": round(latest_rtt_ms, 6), "min_rtt": round(min_rtt_ms, 6)}
            changed = {name: value for name, value in changed.items() if metrics.get(name) != value}
            metrics |= changed
            if changed:
                yield event("recovery:metrics_updated", changed)
        else:
            trigger = _EXPIRED if each.kind is _Kind.TIMEOUT else _REORDERED
            lost = packets.lose(sequence, trigger)
            if lost is not None:
                yield event(
                    "recovery:packet_lost",
                    {"header": header(lost), "frames": [stream(sequence)], "trigger": trigger},
                )


def _metrics(state: _State, packet_bytes: int) -> dict[str, float]:
    metrics: dict[str, float] = {
        "congestion_window": round(state.window_packets * packet_bytes),
        "bytes_in_flight": state.in_flight * packet_bytes,
    }
    if state.smoothed_rtt_ms > 0:
        metrics |= {
            "smoothed_rtt": round(state.smoothed_rtt_ms, 6),
            "rtt_variance": round(state.rtt_variation_ms, 6),
        }
    if state.ssthresh_packets < _NO_THRESHOLD:
        metrics["ssthresh"] = round(state.ssthresh_packets * packet_bytes)
    if state.intersend_ms > 0:
        bits_per_ms = packet_bytes * _BITS_PER_BYTE / state.intersend_ms
        metrics["pacing_rate"] = round(bits_per_ms * _MS_PER_SECOND)
    return metrics
