"""Published tables of the learnability study perform as in the study (`REMY_REFERENCE_DIR`)."""

from __future__ import annotations

import functools
import itertools
import os

import numpy as np
import pytest

from benchmarks.ns2_points import (
    FASTEST_MBPS,
    PACKET_BYTES,
    Point,
    learnability_goldens,
    ns2_points,
    on_and_off,
    run_tables,
)
from remy_proto.v1 import evaluation_pb2

pytestmark = pytest.mark.skipif(
    "REMY_REFERENCE_DIR" not in os.environ,
    reason="REMY_REFERENCE_DIR, which has the published tables, is not set",
)


#: Tables, mean on and off times in ms, and buffer in packets, by the name of a case in the goldens.
_CASES: dict[str, tuple[list[str], float, float, int | None]] = {
    "fig7 naive off 5000": (["fig7-tcp-naive"], 5000, 5000, 200),
    "fig7 naive off 10": (["fig7-tcp-naive"], 5000, 10, 200),
    "fig7 aware off 5000": (["fig7-tcp-aware"], 5000, 5000, 200),
    "fig7 aware off 10": (["fig7-tcp-aware"], 5000, 10, 200),
    "fig9 coopt0.1 homog": (["fig9-coopt-delta0.1"], 1000, 1000, None),
    "fig9 coopt10 homog": (["fig9-coopt-delta10"], 1000, 1000, None),
    "fig9 naive10 homog": (["fig9-naive-delta10"], 1000, 1000, None),
    "fig9 coopt mixed": (["fig9-coopt-delta0.1", "fig9-coopt-delta10"], 1000, 1000, None),
}


def _two_senders(case: str, *, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulates a case on 10 Mbit/s and 100 ms.

    Returns the mean throughput in Mbit/s and queueing delay in ms of each of the two senders.
    """
    tables, on_ms, off_ms, buffer = _CASES[case]
    specimens = []
    for run in range(runs):
        specimen = evaluation_pb2.Specimen(
            key=run, link_rate_packets_per_ms=1, rtt_ms=100, buffer_packets=buffer
        )
        for sender in range(2):
            specimen.senders.add(
                count=1, table=sender % len(tables), traffic=on_and_off(on_ms, off_ms)
            )
        specimens.append(specimen)
    mbps, delay_ms = run_tables(tables, specimens)
    return mbps.mean(axis=0), (delay_ms - 101).mean(axis=0)


@pytest.mark.parametrize("case", _CASES)
def test_two_senders_perform_as_in_the_study(case: str) -> None:
    mbps, queueing_ms = _two_senders(case, runs=200)
    for row in learnability_goldens("learnability_fig7_fig9")["rows"]:
        if row["case"] == case:
            sender = row["sender"]
            assert mbps[sender] == pytest.approx(row["throughput_mbps_mean"], rel=0.03)
            assert queueing_ms[sender] == pytest.approx(row["queueing_delay_ms_mean"], abs=1)


def test_naive_table_has_half_the_queueing_delay_of_the_tcp_aware_one() -> None:
    # Section 4.5 of the study reports 55 % less.
    _, naive_ms = _two_senders("fig7 naive off 5000", runs=50)
    _, aware_ms = _two_senders("fig7 aware off 5000", runs=50)
    assert 1 - naive_ms.mean() / aware_ms.mean() == pytest.approx(0.55, abs=0.05)


def _parking_lot(table: str | None, queue: str) -> np.ndarray:
    """Returns the Mbit/s of the flow that crosses both links, for pairs of rates.

    The rates are from 10 to 100 Mbit/s. Each link has 75 ms, a buffer of 5 BDP, and one more flow.
    Without a table all flows run CUBIC of Linux 2.6.22.
    """
    rates = [10 ** (1 + index / 7) for index in range(8)]
    specimens = []
    for key, (first, second) in enumerate(itertools.product(rates, rates)):
        specimen = evaluation_pb2.Specimen(key=key, link_rate_packets_per_ms=1, rtt_ms=300)
        specimen.bottleneck.packet_bytes = PACKET_BYTES
        for mbps in (first, second):
            specimen.links.add(
                rate_packets_per_ms=mbps / 10,
                delay_ms=75,
                buffer_packets=round(5 * mbps / 10 * 150),
                queue={"name": queue},
            )
        for links in ([0, 1], [0], [1]):
            group = specimen.senders.add(
                count=1,
                traffic=on_and_off(1000, 1000),
                route={"links": links, "return_delay_ms": 75.0 * len(links)},
            )
            if table is None:
                group.protocol.MergeFrom(
                    evaluation_pb2.Choice(name="cubic", variant="linux-2.6.22")
                )
                group.transport.MergeFrom(evaluation_pb2.Choice(name="tcp", variant="ns-2-linux"))
            else:
                group.transport.name = "ns2"
        specimens.append(specimen)
    throughputs, _ = run_tables([] if table is None else [table], specimens)
    return throughputs[:, 0]


def test_table_for_one_bottleneck_beats_cubic_on_two() -> None:
    # The study's Figure 6 has 17 % less than a table for two bottlenecks, and 2.75 times CUBIC over
    # sfqCoDel. Here it is 25 % less, in the geometric mean over the networks
    # (docs/results/among-others.md).
    simplified = np.log(_parking_lot("fig2-linkrate-10x", "drop-tail"))
    true_model = np.log(_parking_lot("fig6-two-bottlenecks", "drop-tail"))
    cubic = np.log(_parking_lot(None, "sfq-codel"))
    assert np.exp((simplified - cubic).mean()) == pytest.approx(2.75, rel=0.1)
    assert np.exp((simplified - true_model).mean()) == pytest.approx(0.75, abs=0.06)


@functools.cache
def _points() -> list[Point]:
    # A quarter of the benchmark's runs. Throughput after losses depends on few timeouts, so that
    # points with overflowing buffers need more runs.
    def runs(overflows: bool, senders: int, mbps: float) -> int:
        if overflows or mbps <= 1:
            return 64
        return 16 if senders == 1 else 4

    return ns2_points(runs, fastest_mbps=FASTEST_MBPS)


#: Our throughput over ns-2's at points where the ratio is not within 10 %. Their buffers overflow,
#: and in-order throughput depends on few timeouts (docs/reference/protocols.md).
_OUTLIERS = {
    ("fig3-5bdp-senders-1to2", 11): 0.86,
    ("fig4-rtt-150", 10): 0.84,
}


def test_throughput_over_transport_ns2_is_that_of_ns2_except_for_outliers() -> None:
    outliers = {
        (point.curve, point.x): point.ratio for point in _points() if abs(point.ratio - 1) > 0.1
    }
    assert outliers == pytest.approx(_OUTLIERS, rel=0.05)


def test_documented_shares_of_points_agree_with_ns2() -> None:
    errors = np.array([abs(point.ratio - 1) for point in _points()])
    assert len(errors) > 100
    # With more runs it is 84 % (`python -m benchmarks --only ns2-points`).
    assert (errors <= 0.03).mean() >= 0.8
    assert np.mean([point.is_rtt_equal for point in _points()]) >= 0.97
    assert (errors <= 0.1).mean() >= 0.96
    assert (errors <= 0.2).all()
    overflowing = np.array([abs(point.ratio - 1) for point in _points() if point.overflows])
    assert len(overflowing) >= 10
    assert (overflowing <= 0.1).mean() >= 0.7
