"""Rows in another simulator: schedules as given times, and the same senders in ns-3."""

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
    FOLDER,
    Ns3,
    body_flags,
    outcome_of,
    senders_text,
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
#: Divided on every signal, so that all of them are looked at.
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
    run: int, words: str = "remycc:table.json", network: Any = NETWORK
) -> evaluation_pb2.Specimen:
    return with_intervals(study_network([parse_sender(words)], network).run(run), SECONDS)


def _ours(run: int, *what: Any) -> evaluation_pb2.SpecimenOutcome:
    request = evaluation_pb2.EvaluationRequest(
        tables=[from_native(TABLE)],
        candidates=[evaluation_pb2.Candidate()],
        specimens=[_specimen(run, *what)],
        duration_ms=SECONDS * 1000,
        seed=1,
    )
    packed = columns.packed(request)
    (outcome,) = columns.specimen_outcomes(packed, columns.evaluate_columns(packed))
    return outcome


def _read_senders(text: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """As the scenario reads them."""
    first, *lines = text.splitlines()
    assert first == f"senders {len(lines)}"
    found = []
    for line in lines:
        kind, count, *numbers = line.split()
        pairs = list(zip(map(float, numbers[::2]), map(float, numbers[1::2]), strict=True))
        assert len(pairs) == int(count)
        found.append((kind, pairs))
    return found


def _seen(senders: list[tuple[str, list[tuple[float, float]]]]) -> dict[str, Any]:
    """What the scenario prints of senders that are on and send nothing."""
    counts = ("sent", "lost", "received", "rtt_samples", "repeated", "timeouts")
    return {
        **{name: [0] * len(senders) for name in counts},
        "rtt_sum_ms": [0.0] * len(senders),
        "on_ms": [pairs for _, pairs in senders],
    }


@settings(max_examples=20, deadline=None)
@given(run=st.integers(0, 10**6))
def test_times_on_are_those_that_the_simulator_counts(run: int) -> None:
    ours = _ours(run)
    told = outcome_of(_seen(_read_senders(senders_text(_specimen(run), SECONDS))), SECONDS)
    assert list(told.on_ms) == pytest.approx(list(ours.on_ms))
    assert list(told.share_ms) == pytest.approx(list(ours.share_ms))
    assert list(told.first_on_ms) == pytest.approx(list(ours.first_on_ms))


def test_senders_are_on_at_times_of_their_own_in_every_run() -> None:
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


def test_without_ns3_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(FileError, match="REMY_NS3 does not name the folder site-packages/ns3"):
        Ns3(ROOT / "data" / "studies")


def test_flows_by_bytes_are_as_many_and_as_long_as_asked_for() -> None:
    senders = _read_senders(senders_text(_specimen(0, ON_TCP, BY_BYTES), SECONDS))
    assert [kind for kind, _ in senders] == ["flows"] * 3
    flows = [flow for run in range(40) for flow in _flows_of(run)]
    off_ms, packets = (statistics.fmean(each) for each in zip(*flows, strict=True))
    assert off_ms == pytest.approx(400, rel=0.05)
    # Rounded up to whole packets, half of one more on average.
    assert packets == pytest.approx(60_000 / 1260 + 0.5, rel=0.05)
    for _, pairs in senders:
        # None is missing, as each takes an RTT at least.
        assert sum(off + NETWORK["rtt_ms"] for off, _ in pairs) >= SECONDS * 1000
        assert all(count >= 1 and count == int(count) for _, count in pairs)
    firsts = [group.first_on_ms for group in _specimen(0, ON_TCP, BY_BYTES).senders]
    assert [pairs[0][0] for _, pairs in senders] == firsts


def _flows_of(run: int) -> list[tuple[float, float]]:
    senders = _read_senders(senders_text(_specimen(run, ON_TCP, BY_BYTES), SECONDS))
    return [flow for _, pairs in senders for flow in pairs[1:]]


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("remycc:table.json", ["--body=datagram", "--keep-state=0"]),
        (ON_TCP, ["--body=tcp", "--keep-state=0"]),
        (f"{ON_TCP},keep_state=1", ["--body=tcp", "--keep-state=1"]),
    ],
)
def test_what_carries_senders_is_told(words: str, flags: list[str]) -> None:
    assert body_flags(_specimen(0, words)) == flags


@pytest.mark.parametrize(
    "body",
    ["ns2", "tcp,transport_variant=linux", "tcp,delayed_ack_ms=40", "tcp,minimum_rto_ms=300"],
)
def test_a_body_that_ns3_does_not_know_is_refused(body: str) -> None:
    with pytest.raises(FileError, match="on datagram, or on tcp without settings but keep_state"):
        body_flags(_specimen(0, f"remycc:table.json,transport={body}"))


def test_flows_by_bytes_are_on_tcp_alone() -> None:
    with pytest.raises(FileError, match="on for exponential times, on tcp also by bytes"):
        senders_text(_specimen(0, "remycc:table.json", BY_BYTES), SECONDS)


def test_what_the_scenario_saw_counts_as_on_our_tcp() -> None:
    seen = _seen([("time", [(0.0, 4000.0), (6000.0, 1e300)]), ("time", [(2000.0, 8000.0)])])
    seen |= {"sent": [9, 5], "received": [7, 5], "rtt_samples": [6, 5], "repeated": [1, 0]}
    seen |= {"timeouts": [1, 0], "rtt_sum_ms": [60.0, 40.0], "lost": [1, 0]}
    outcome = outcome_of(seen, 10.0)
    assert list(outcome.packets_lost) == [1, 0]
    assert list(outcome.on_ms) == [8000.0, 6000.0]
    # Alone for 2 s and 2 s, together for 4 s.
    assert list(outcome.share_ms) == [2000 + 1000 + 1000 + 2000, 1000 + 2000 + 1000]
    first, second = transport_results(outcome.transport)
    assert (first.packets_in_order, second.packets_in_order) == (7, 5)
    assert (first.packets_repeated, second.packets_repeated) == (1, 0)
    assert (first.packets_marked, second.packets_marked) == (0, 0)
    assert (first.timeouts, second.timeouts) == (1, 0)
    assert (first.throughput_packets, second.throughput_packets) == (7, 5)
    assert (first.delay_samples, second.delay_samples) == (6, 5)


in_ns3 = pytest.mark.skipif(FOLDER not in os.environ, reason=f"{FOLDER} names no wheel of ns-3")


@pytest.fixture(scope="module")
def ns3() -> Iterator[Ns3]:
    with closing(Ns3(ROOT / "data" / "studies")) as compiled:
        yield compiled


@in_ns3
@pytest.mark.parametrize("words", ["remycc:table.json", ON_TCP, f"{ON_TCP},keep_state=1"])
def test_a_table_does_the_same_in_ns3(ns3: Ns3, words: str) -> None:
    ours, theirs = _ours(0, words), _theirs(ns3, words, NETWORK)
    assert sum(ours.packets_received) > 1000
    assert list(ours.packets_received) == pytest.approx(list(theirs.packets_received), rel=0.01)
    for our_ms, their_ms, received in zip(
        ours.delay_sum_ms, theirs.delay_sum_ms, ours.packets_received, strict=True
    ):
        assert our_ms / received == pytest.approx(their_ms / received, abs=1)


def _theirs(ns3: Ns3, words: str, network: Any, window: int = 0) -> evaluation_pb2.SpecimenOutcome:
    message = from_native(TABLE).SerializeToString(deterministic=True)
    return ns3.outcome([message], _specimen(0, words, network), SECONDS, window)


@in_ns3
def test_flows_by_bytes_get_as_much_in_ns3(ns3: Ns3) -> None:
    ours, theirs = (
        sum(outcome.packets_received) / sum(outcome.on_ms)
        for outcome in (_ours(0, ON_TCP, BY_BYTES), _theirs(ns3, ON_TCP, BY_BYTES))
    )
    # Other draws of the same flows.
    assert theirs == pytest.approx(ours, rel=0.1)


@in_ns3
def test_what_is_lost_is_repaired_in_ns3(ns3: Ns3) -> None:
    shallow = {**BY_BYTES, "buffer": {"packets": 4}, "senders": 8}
    theirs = _theirs(ns3, ON_TCP, shallow, 60)
    lost, repeated = (
        sum(each) for each in (theirs.packets_lost, theirs.transport.packets_repeated)
    )
    assert 0 < lost <= repeated
    # All else came in order, but what is still under way at the end or was needlessly repeated.
    missing = sum(theirs.packets_sent) - sum(theirs.packets_received) - lost
    assert 0 <= missing <= repeated - lost + 8 * 200


@in_ns3
def test_a_window_before_the_first_ack_slows_the_first_flight_in_ns3(ns3: Ns3) -> None:
    narrow, wide = (
        sum(_theirs(ns3, ON_TCP, BY_BYTES, window).packets_received) for window in (1, 60)
    )
    assert narrow < wide
