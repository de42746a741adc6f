"""Tests captures of a sender: a strict reader of pcapng, and the events of qlog."""

from __future__ import annotations

import json
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import remy_farm as rf
from remy_farm.analysis.capture import HEADER_BYTES
from remy_simulator import registry
from remy_simulator.registry import Registry

_LINK = {"rate_mbps": 12.0, "rtt_ms": 100.0, "buffer": {"packets": 30}}
_SECONDS = 10.0
_US_PER_MS = 1000.0


def _run(sender: Any, seconds: float = _SECONDS, **keys: Any) -> rf.Run:
    network = rf.Network(senders=[sender, "newreno"], **{**_LINK, **keys})
    return rf.simulate(network, seconds=seconds, capture_sender=0, record_every_ms=1.0)


def _events(run: rf.Run, folder: Path) -> list[dict[str, Any]]:
    run.save_qlog(folder / "run.qlog")
    log = json.loads((folder / "run.qlog").read_text(encoding="utf-8"))
    assert (log["qlog_version"], log["qlog_format"]) == ("0.3", "JSON")
    assert list(log)[:2] == ["qlog_version", "qlog_format"]
    (trace,) = log["traces"]
    assert trace["vantage_point"]["type"] == "client"
    assert trace["common_fields"] == {"time_format": "relative", "reference_time": 0}
    times = [event["time"] for event in trace["events"]]
    assert times == sorted(times)
    return list(trace["events"])


# A reader of pcapng that refuses all that the format does not allow.


@dataclass(frozen=True)
class _Packet:
    time_ns: int
    is_outbound: bool
    is_marked_retransmission: bool
    bytes_on_wire: int
    payload: int
    sequence: int
    acknowledged: int
    flags: int
    traffic_class: int
    sent_us: int
    echoed_us: int
    blocks: list[tuple[int, int]]


def _options(data: bytes) -> dict[int, bytes]:
    options: dict[int, bytes] = {}
    while True:
        code, length = struct.unpack_from("<HH", data)
        if code == 0:
            assert (length, data[4:]) == (0, b"")
            return options
        options[code] = data[4 : 4 + length]
        end = 4 + length + -length % 4
        assert data[4 + length : end] == bytes(end - 4 - length)
        data = data[end:]


def _blocks(data: bytes) -> list[tuple[int, bytes]]:
    blocks = []
    while data:
        kind, length = struct.unpack_from("<II", data)
        assert length % 4 == 0
        assert data[length - 4 : length] == struct.pack("<I", length)
        blocks.append((kind, data[8 : length - 4]))
        data = data[length:]
    return blocks


def _internet_sum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _read(path: Path) -> list[_Packet]:
    (section, header), (interface, description), *rest = _blocks(path.read_bytes())
    assert (section, interface) == (0x0A0D0D0A, 1)
    assert struct.unpack_from("<IHHq", header) == (0x1A2B3C4D, 1, 0, -1)
    assert _options(header[16:])[4] == b"remy-farm"
    linktype, reserved, snap_bytes = struct.unpack_from("<HHI", description)
    assert (linktype, reserved) == (101, 0)
    assert _options(description[8:])[9] == b"\x09"
    return [_packet(kind, body, snap_bytes) for kind, body in rest]


def _packet(kind: int, body: bytes, snap_bytes: int) -> _Packet:
    assert kind == 6
    interface, high, low, captured, original = struct.unpack_from("<IIIII", body)
    assert interface == 0
    assert captured <= min(original, snap_bytes)
    data, options = body[20 : 20 + captured], _options(body[20 + captured + -captured % 4 :])
    ip, tcp = data[:20], data[20:]
    assert ip[0] == 0x45
    assert _internet_sum(ip) == 0xFFFF
    assert int.from_bytes(ip[2:4], "big") == original
    header_bytes = (tcp[12] >> 4) * 4
    assert header_bytes == len(tcp)
    # The data are zeros, which do not change the sum.
    pseudo_header = ip[12:20] + struct.pack("!HH", 6, original - 20)
    assert _internet_sum(pseudo_header + tcp) == 0xFFFF
    assert tcp[20:24] == bytes((1, 1, 8, 10))
    blocks = []
    if header_bytes > 32:
        count = (tcp[35] - 2) // 8
        assert tcp[32:36] == bytes((1, 1, 5, 2 + 8 * count))
        numbers = struct.unpack(f"!{2 * count}I", tcp[36:])
        blocks = list(zip(numbers[::2], numbers[1::2], strict=True))
    sequence, acknowledged = struct.unpack_from("!II", tcp, 4)
    sent_us, echoed_us = struct.unpack_from("!II", tcp, 24)
    direction = int.from_bytes(options[2], "little")
    assert direction in (1, 2)
    return _Packet(
        time_ns=high << 32 | low,
        is_outbound=direction == 2,
        is_marked_retransmission=options.get(1) == b"retransmission",
        bytes_on_wire=original,
        payload=original - 20 - header_bytes,
        sequence=sequence,
        acknowledged=acknowledged,
        flags=tcp[13],
        traffic_class=ip[1],
        sent_us=sent_us,
        echoed_us=echoed_us,
        blocks=blocks,
    )


def _captured(run: rf.Run, folder: Path) -> list[_Packet]:
    run.save_pcapng(folder / "run.pcapng")
    return _read(folder / "run.pcapng")


@pytest.mark.parametrize("sender", ["newreno", "cubic", "bbr", "remycc"])
def test_pcapng_has_the_packets_retransmissions_and_rtts_of_the_run(
    sender: str, tmp_path: Path
) -> None:
    table = rf.load_table("generalist")
    given = {"table": table, "transport": "tcp"} if sender == "remycc" else sender
    run = _run(given)
    packets = _captured(run, tmp_path)
    sent = [each for each in packets if each.is_outbound]
    acks = [each for each in packets if not each.is_outbound]
    measures = run.to_dict()["senders"][0]
    payload = 1500 - HEADER_BYTES
    assert {(each.bytes_on_wire, each.payload) for each in sent} == {(1500, payload)}
    assert {each.payload for each in acks} == {0}
    assert [each.time_ns for each in packets] == sorted(each.time_ns for each in packets)
    marked = sum(each.is_marked_retransmission for each in sent)
    assert marked == measures["packets_retransmitted"]
    # A reader without the marks counts the same: sequence numbers that were sent before.
    counts = Counter(each.sequence for each in sent)
    assert sum(counts.values()) - len(counts) == marked
    received, lost = measures["packets_received"], measures["packets_lost"]
    assert received == len(acks)
    assert measures["loss"] == pytest.approx(lost / len(sent))
    # The RTT by time stamps is that of the transmission which an ACK echoes.
    sent_ns = {each.sent_us: each.time_ns for each in sent}
    rtts_ms = [(each.time_ns - sent_ns[each.echoed_us]) / 1e6 for each in acks]
    assert sum(rtts_ms) / len(rtts_ms) == pytest.approx(measures["delay_ms"], abs=1e-5)
    ascending = sorted(rtts_ms)
    for percent in (50, 95, 99):
        exact = ascending[(percent * len(ascending) - 1) // 100]
        assert measures[f"rtt_p{percent}_ms"] == pytest.approx(exact, rel=0.002)
    recorded = {
        row["time_ms"]: row["rtt_ms"] for row in run.over_time().to_dicts() if row["sender"] == 0
    }
    last_ns = acks[-1].time_ns
    after = min(time for time in recorded if time * 1e6 >= last_ns) if recorded else None
    assert after is None or recorded[after] == pytest.approx(rtts_ms[-1], abs=1e-5)


def test_acks_hold_what_the_receiver_has(tmp_path: Path) -> None:
    packets = _captured(_run("newreno"), tmp_path)
    payload = 1500 - HEADER_BYTES
    cumulative, sacked = 1, 0
    for each in packets:
        if each.is_outbound:
            continue
        assert each.acknowledged >= cumulative
        assert (each.acknowledged - 1) % payload == 0
        cumulative = each.acknowledged
        assert all(cumulative < first < end for first, end in each.blocks)
        assert len(each.blocks) <= 3
        sacked += bool(each.blocks)
    assert sacked > 0


def test_sequence_numbers_wrap_around(tmp_path: Path) -> None:
    """At 1 Gbit/s a sender passes 4 GiB within 40 s; jumbo packets are as many fewer."""
    network = rf.Network(
        rate_mbps=1000.0, rtt_ms=1.0, packet_bytes=60_000, senders=["newreno"], buffer={"bdp": 2}
    )
    run = rf.simulate(network, seconds=40.0, capture_sender=0)
    sent = [each for each in _captured(run, tmp_path) if each.is_outbound]
    payload = 60_000 - HEADER_BYTES
    assert len(sent) * payload > 1 << 32
    new = [each.sequence for each in sent if not each.is_marked_retransmission]
    assert new == [(1 + number * payload) % (1 << 32) for number in range(len(new))]


def test_marks_are_seen_as_ecn(tmp_path: Path) -> None:
    run = _run("dctcp", queue="threshold-marking,threshold_packets=5")
    packets = _captured(run, tmp_path)
    assert {each.traffic_class for each in packets if each.is_outbound} == {2}
    echoes = sum(bool(each.flags & 0x40) for each in packets if not each.is_outbound)
    assert echoes == run.to_dict()["senders"][0]["marks"] > 0


def _protocols() -> list[str]:
    return [
        f"{name},variant={variant.name}"
        for name, entry in registry.entries(Registry.PROTOCOL).items()
        for variant in entry.variants
        if registry.NEEDS_XCP_ROUTER not in entry.traits and name != "omniscient"
    ]


@pytest.mark.parametrize("sender", [*_protocols(), "remycc"])
def test_qlog_has_the_packets_of_the_run(sender: str, tmp_path: Path) -> None:
    given = rf.load_table("generalist") if sender == "remycc" else sender
    run = _run(
        given,
        seconds=5.0,
        traffic={"exponential_bytes": {"mean_bytes": 200_000}, "mean_off_ms": 100.0},
    )
    measures = run.to_dict()["senders"][0]
    packets = _captured(run, tmp_path)
    events = _events(run, tmp_path)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        by_name.setdefault(event["name"], []).append(event["data"])
    sent = by_name["transport:packet_sent"]
    # Transmissions are counted.
    numbers = [each["header"]["packet_number"] for each in sent]
    assert numbers == list(range(len(sent)))
    assert len(sent) == sum(each.is_outbound for each in packets)
    acks = by_name["transport:packet_received"]
    assert len(acks) == len(packets) - len(sent)
    retransmitted = [each for each in sent if "trigger" in each]
    assert len(retransmitted) == measures["packets_retransmitted"]
    lost = [each["header"]["packet_number"] for each in by_name.get("recovery:packet_lost", [])]
    assert len(lost) == len(set(lost))
    # Each retransmission follows a loss, unless it is a probe.
    probes = sum(each["trigger"] == "pto_probe" for each in retransmitted)
    assert len(retransmitted) - probes <= len(lost)
    acknowledged: set[int] = set()
    for each in acks:
        (frame,) = each["frames"]
        for first, last in frame["acked_ranges"]:
            assert 0 <= first <= last < len(sent)
            acknowledged |= set(range(first, last + 1))
    assert len(acknowledged) <= measures["packets_received"]
    assert len(acknowledged) >= 0.9 * measures["packets_received"]
    updates = by_name["recovery:metrics_updated"]
    known = {name for each in updates for name in each}
    assert known >= {"congestion_window", "bytes_in_flight", "latest_rtt", "min_rtt"}
    assert all(value >= 0 for each in updates for value in each.values())


def test_a_capture_changes_no_result() -> None:
    network = rf.Network(senders=["cubic=2", "bbr"], **_LINK)
    plain = rf.simulate(network, seconds=5.0).to_dict()
    captured = rf.simulate(network, seconds=5.0, capture_sender=2).to_dict()
    for tree in (plain, captured):
        del tree["cpu_seconds"]
    assert captured == plain


def test_what_cannot_be_captured_is_refused(tmp_path: Path) -> None:
    network = rf.Network(senders=["cubic"], packet_bytes=70_000, **_LINK)
    with pytest.raises(ValueError, match="senders 0 to 0"):
        rf.simulate(network, seconds=1.0, capture_sender=1)
    with pytest.raises(ValueError, match="capture_sender=0"):
        rf.simulate(network, seconds=1.0).save_qlog(tmp_path / "run.qlog")
    with pytest.raises(ValueError, match="70000 bytes"):
        rf.simulate(network, seconds=1.0, capture_sender=0).save_pcapng(tmp_path / "run.pcapng")
    assert not list(tmp_path.iterdir())
