"""Tests rows in ns-3: the same schedule of senders, and comparable results."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remy_farm.files import FileError
from remy_farm.specification.senders import parse_sender
from remy_laboratory.studies.networks import study_network
from remy_laboratory.studies.ns3 import (
    NS3_VARIABLE,
    Ns3,
    parse_outcome,
    senders_text,
    transport_flags,
    with_intervals,
)
from remy_proto.v1 import evaluation_pb2
from remy_simulator import RuleTable, columns
from remy_simulator.messages import from_native, transport_results

ROOT = Path(__file__).resolve().parents[3]

NETWORK: dict[str, Any] = {
    "rate_mbps": 6,
    "rtt_ms": 60,
    "senders": 3,
    "traffic": {"exponential_time": {"mean_ms": 800}, "mean_off_ms": 400},
}
SECONDS = 20.0
#: A table that divides on all four signals.
TABLE = (
    RuleTable([0, 1, 2, 3], [([], (0.8, 5.0, 2.0))])
    .split(0, [(2, 1.2)])
    .split(0, [(0, 3.0), (1, 4.0), (3, 3.5)])
)


BY_BYTES: dict[str, Any] = {
    **NETWORK,
    "traffic": {"exponential_bytes": {"mean_bytes": 60_000}, "mean_off_ms": 400},
    "first_on_mean_ms": 200,
    "packet_bytes": 1260,
    "buffer": {"packets": 500},
}
ON_TCP = "remycc:table.json,transport=tcp"


def _specimen(
    run: int, sender: str = "remycc:table.json", network: Any = NETWORK
) -> evaluation_pb2.Specimen:
    return with_intervals(study_network([parse_sender(sender)], network).run(run), SECONDS)


def _simulate(run: int, *arguments: Any) -> evaluation_pb2.SpecimenOutcome:
    request = evaluation_pb2.EvaluationRequest(
        tables=[from_native(TABLE)],
        candidates=[evaluation_pb2.Candidate()],
        specimens=[_specimen(run, *arguments)],
        duration_ms=SECONDS * 1000,
        seed=1,
    )
    packed = columns.packed(request)
    (outcome,) = columns.specimen_outcomes(packed, columns.evaluate_columns(packed))
    return outcome


def _read_senders(text: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Parses the senders' schedules as the scenario does."""
    first, *lines = text.splitlines()
    assert first == f"senders {len(lines)}"
    schedules = []
    for line in lines:
        kind, count, *numbers = line.split()
        pairs = list(zip(map(float, numbers[::2]), map(float, numbers[1::2]), strict=True))
        assert len(pairs) == int(count)
        schedules.append((kind, pairs))
    return schedules


def _scenario_output(
    senders: list[tuple[str, list[tuple[float, float]]]],
) -> dict[str, Any]:
    """Returns the scenario's output for senders that are on but send nothing."""
    counts = ("sent", "lost", "received", "rtt_samples", "retransmitted", "timeouts")
    return {
        **{name: [0] * len(senders) for name in counts},
        "rtt_sum_ms": [0.0] * len(senders),
        "on_ms": [pairs for _, pairs in senders],
    }


@settings(max_examples=20, deadline=None)
@given(run=st.integers(0, 10**6))
def test_on_times_in_ns3_equal_those_of_the_simulator(run: int) -> None:
    native = _simulate(run)
    schedule = _read_senders(senders_text(_specimen(run), SECONDS))
    outcome = parse_outcome(_scenario_output(schedule), SECONDS)
    assert list(outcome.on_ms) == pytest.approx(list(native.on_ms))
    assert list(outcome.share_ms) == pytest.approx(list(native.share_ms))
    assert list(outcome.first_on_ms) == pytest.approx(list(native.first_on_ms))


def test_each_sender_and_run_has_its_own_on_times() -> None:
    begins = [
        tuple(group.traffic.intervals.begin_ms)
        for run in (0, 1)
        for group in _specimen(run).senders
    ]
    assert len(set(begins)) == 6
    assert _specimen(0) == _specimen(0)
    for group in _specimen(0).senders:
        assert group.count == 1
        periods = group.traffic.intervals
        assert sorted([*periods.begin_ms, *periods.end_ms])[::2] == list(periods.begin_ms)


def test_missing_ns3_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(NS3_VARIABLE, str(tmp_path))
    with pytest.raises(FileError, match="REMY_NS3 must name the directory site-packages/ns3"):
        Ns3(ROOT / "data" / "studies")


def test_flows_limited_by_bytes_have_the_requested_number_and_length() -> None:
    senders = _read_senders(senders_text(_specimen(0, ON_TCP, BY_BYTES), SECONDS))
    assert [kind for kind, _ in senders] == ["flows"] * 3
    flows = [flow for run in range(40) for flow in _flows_of(run)]
    off_ms, packets = (statistics.fmean(each) for each in zip(*flows, strict=True))
    assert off_ms == pytest.approx(400, rel=0.05)
    # Rounding up to whole packets adds half a packet on average.
    assert packets == pytest.approx(60_000 / 1260 + 0.5, rel=0.05)
    for _, pairs in senders:
        # There are enough flows for the whole time, as each takes at least one RTT.
        assert sum(off + NETWORK["rtt_ms"] for off, _ in pairs) >= SECONDS * 1000
        assert all(count >= 1 and count == int(count) for _, count in pairs)
    firsts = [group.first_on_ms for group in _specimen(0, ON_TCP, BY_BYTES).senders]
    assert [pairs[0][0] for _, pairs in senders] == firsts


def _flows_of(run: int) -> list[tuple[float, float]]:
    senders = _read_senders(senders_text(_specimen(run, ON_TCP, BY_BYTES), SECONDS))
    return [flow for _, pairs in senders for flow in pairs[1:]]


@pytest.mark.parametrize(
    ("sender", "flags"),
    [
        ("remycc:table.json", ["--transport=datagram", "--keep-state=0"]),
        (ON_TCP, ["--transport=tcp", "--keep-state=0"]),
        (f"{ON_TCP},keep_state=1", ["--transport=tcp", "--keep-state=1"]),
    ],
)
def test_transport_becomes_scenario_flags(sender: str, flags: list[str]) -> None:
    assert transport_flags(_specimen(0, sender)) == flags


@pytest.mark.parametrize(
    "transport",
    ["ns2", "tcp,transport_variant=linux", "tcp,delayed_ack_ms=40", "tcp,minimum_rto_ms=300"],
)
def test_transport_that_ns3_lacks_is_refused(transport: str) -> None:
    with pytest.raises(FileError, match="must use datagram, or tcp with no setting other than"):
        transport_flags(_specimen(0, f"remycc:table.json,transport={transport}"))


def test_flows_limited_by_bytes_need_tcp() -> None:
    with pytest.raises(
        FileError, match="exponential on periods, and on tcp also exponential bytes"
    ):
        senders_text(_specimen(0, "remycc:table.json", BY_BYTES), SECONDS)


def test_scenario_output_becomes_an_outcome_on_tcp() -> None:
    output = _scenario_output(
        [("time", [(0.0, 4000.0), (6000.0, 1e300)]), ("time", [(2000.0, 8000.0)])]
    )
    output |= {"sent": [9, 5], "received": [7, 5], "rtt_samples": [6, 5], "retransmitted": [1, 0]}
    output |= {"timeouts": [1, 0], "rtt_sum_ms": [60.0, 40.0], "lost": [1, 0]}
    outcome = parse_outcome(output, 10.0)
    assert list(outcome.packets_lost) == [1, 0]
    assert list(outcome.on_ms) == [8000.0, 6000.0]
    # Each sender is on alone for some time, and together with the other for 4 s.
    assert list(outcome.share_ms) == [2000 + 1000 + 1000 + 2000, 1000 + 2000 + 1000]
    first, second = transport_results(outcome.transport)
    assert (first.packets_in_order, second.packets_in_order) == (7, 5)
    assert (first.packets_retransmitted, second.packets_retransmitted) == (1, 0)
    assert (first.packets_marked, second.packets_marked) == (0, 0)
    assert (first.timeouts, second.timeouts) == (1, 0)
    assert (first.throughput_packets, second.throughput_packets) == (7, 5)
    assert (first.delay_samples, second.delay_samples) == (6, 5)


needs_ns3 = pytest.mark.skipif(NS3_VARIABLE not in os.environ, reason=f"{NS3_VARIABLE} is not set")


@pytest.fixture(scope="module")
def ns3() -> Iterator[Ns3]:
    with closing(Ns3(ROOT / "data" / "studies")) as compiled:
        yield compiled


@needs_ns3
@pytest.mark.parametrize("sender", ["remycc:table.json", ON_TCP, f"{ON_TCP},keep_state=1"])
def test_table_gives_the_same_results_in_ns3(ns3: Ns3, sender: str) -> None:
    native, in_ns3 = _simulate(0, sender), _run_ns3(ns3, sender, NETWORK)
    assert sum(native.packets_received) > 1000
    assert list(native.packets_received) == pytest.approx(list(in_ns3.packets_received), rel=0.01)
    for native_ms, ns3_ms, received in zip(
        native.delay_sum_ms, in_ns3.delay_sum_ms, native.packets_received, strict=True
    ):
        assert native_ms / received == pytest.approx(ns3_ms / received, abs=1)


def _run_ns3(
    ns3: Ns3, sender: str, network: Any, window: int = 0
) -> evaluation_pb2.SpecimenOutcome:
    message = from_native(TABLE).SerializeToString(deterministic=True)
    return ns3.outcome([message], _specimen(0, sender, network), SECONDS, window)


@needs_ns3
def test_flows_limited_by_bytes_have_the_same_throughput_in_ns3(ns3: Ns3) -> None:
    native, in_ns3 = (
        sum(outcome.packets_received) / sum(outcome.on_ms)
        for outcome in (_simulate(0, ON_TCP, BY_BYTES), _run_ns3(ns3, ON_TCP, BY_BYTES))
    )
    # Each simulator draws its own flows.
    assert in_ns3 == pytest.approx(native, rel=0.1)


@needs_ns3
def test_lost_packets_are_retransmitted_in_ns3(ns3: Ns3) -> None:
    shallow = {**BY_BYTES, "buffer": {"packets": 4}, "senders": 8}
    outcome = _run_ns3(ns3, ON_TCP, shallow, 60)
    lost, retransmitted = (
        sum(each) for each in (outcome.packets_lost, outcome.transport.packets_retransmitted)
    )
    assert 0 < lost <= retransmitted
    # All other packets are received, except those in flight at the end and spurious
    # retransmissions.
    missing = sum(outcome.packets_sent) - sum(outcome.packets_received) - lost
    assert 0 <= missing <= retransmitted - lost + 8 * 200


@needs_ns3
def test_small_initial_window_slows_flows_in_ns3(ns3: Ns3) -> None:
    narrow, wide = (
        sum(_run_ns3(ns3, ON_TCP, BY_BYTES, window).packets_received) for window in (1, 60)
    )
    assert narrow < wide
