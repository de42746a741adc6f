"""Published tables of the learnability study on its networks (`REMY_REFERENCE_DIR`)."""

from __future__ import annotations

import functools
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from remy_farm.v1 import evaluation_pb2
from remy_services.remycc import read_remycc
from remy_simulator import columns

REFERENCE = os.environ.get("REMY_REFERENCE_DIR")
pytestmark = pytest.mark.skipif(
    REFERENCE is None, reason="REMY_REFERENCE_DIR does not say where the published tables are"
)

#: Of the study's packets.
_BYTES = 1250
_SECONDS = 100.0


def _table(name: str) -> Any:
    """`name` as the index of tables has it, or without the study's."""
    file = name if name.endswith(".dna") else f"learnability-{name}.dna"
    return read_remycc(Path(str(REFERENCE)) / "remyccs" / file).to_message()


def _goldens(section: str) -> Any:
    return json.loads((Path(str(REFERENCE)) / "ns2-goldens.json").read_text())[section]


def _run(
    tables: list[str], specimens: list[evaluation_pb2.Specimen]
) -> tuple[np.ndarray, np.ndarray]:
    """Mbit/s and mean delays in ms: a row for each specimen, a column for each sender."""
    request = evaluation_pb2.EvaluationRequest(
        tables=[_table(name) for name in tables],
        candidates=[evaluation_pb2.Candidate()],
        specimens=specimens,
        duration_ms=_SECONDS * 1000,
        seed=1,
    )
    senders = columns.evaluate_columns(request, threads=2).senders
    received = np.array(senders.packets_received, dtype=float)
    counted, samples = received, received
    if senders.HasField("transport"):
        counted = np.array(senders.transport.throughput_packets, dtype=float)
        samples = np.array(senders.transport.delay_samples, dtype=float)
    mbps = counted * _BYTES * 8 / 1000 / np.frombuffer(senders.on_ms)
    with np.errstate(invalid="ignore"):
        # Who heard nothing has none.
        delay_ms = np.frombuffer(senders.delay_sum_ms) / samples
    shape = (len(specimens), -1)
    return mbps.reshape(shape), delay_ms.reshape(shape)


def _on_and_off(on_ms: float, off_ms: float) -> evaluation_pb2.Traffic:
    traffic = evaluation_pb2.Traffic(mean_off_ms=off_ms)
    traffic.exponential_time.mean_ms = on_ms
    return traffic


#: What the goldens call a case: its tables, on and off times, and buffer.
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
    """10 Mbit/s and 100 ms: throughputs and queueing delays of two senders, means over runs."""
    tables, on_ms, off_ms, buffer = _CASES[case]
    specimens = []
    for run in range(runs):
        specimen = evaluation_pb2.Specimen(
            key=run, link_rate_packets_per_ms=1, rtt_ms=100, buffer_packets=buffer
        )
        for sender in range(2):
            specimen.senders.add(
                count=1, table=sender % len(tables), traffic=_on_and_off(on_ms, off_ms)
            )
        specimens.append(specimen)
    mbps, delay_ms = _run(tables, specimens)
    return mbps.mean(axis=0), (delay_ms - 101).mean(axis=0)


@pytest.mark.parametrize("case", _CASES)
def test_two_senders_get_what_was_measured_with_datagrams(case: str) -> None:
    mbps, queueing_ms = _two_senders(case, runs=200)
    for row in _goldens("learnability_fig7_fig9")["rows"]:
        if row["case"] == case:
            sender = row["sender"]
            assert mbps[sender] == pytest.approx(row["throughput_mbps_mean"], rel=0.03)
            assert queueing_ms[sender] == pytest.approx(row["queueing_delay_ms_mean"], abs=1)


def test_who_does_not_know_of_tcp_queues_half_as_much_alone() -> None:
    # The study has 55 % less (its section 4.5).
    _, naive_ms = _two_senders("fig7 naive off 5000", runs=50)
    _, aware_ms = _two_senders("fig7 aware off 5000", runs=50)
    assert 1 - naive_ms.mean() / aware_ms.mean() == pytest.approx(0.55, abs=0.05)


def _parking_lot(table: str | None, queue: str) -> np.ndarray:
    """Mbit/s of the flow that crosses both links, of pairs of rates from 10 to 100 Mbit/s.

    75 ms at each link and 5 bandwidth-delay products of buffer; one more flow over each link.
    Without a table all run CUBIC as in Linux 2.6.22.
    """
    rates = [10 ** (1 + place / 7) for place in range(8)]
    specimens = []
    for key, (first, second) in enumerate(itertools.product(rates, rates)):
        specimen = evaluation_pb2.Specimen(key=key, link_rate_packets_per_ms=1, rtt_ms=300)
        specimen.bottleneck.packet_bytes = _BYTES
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
                traffic=_on_and_off(1000, 1000),
                route={"links": links, "return_delay_ms": 75.0 * len(links)},
            )
            if table is None:
                group.protocol.MergeFrom(
                    evaluation_pb2.Choice(name="cubic", variant="linux-2.6.22")
                )
                group.body.MergeFrom(evaluation_pb2.Choice(name="tcp", variant="ns-2-linux"))
            else:
                group.body.name = "ns2"
        specimens.append(specimen)
    throughputs, _ = _run([] if table is None else [table], specimens)
    return throughputs[:, 0]


def test_a_simplified_model_of_two_bottlenecks_still_beats_cubic() -> None:
    # The study's Figure 6: 17 % less than with the true model, 2.75 times CUBIC over sfqCoDel. Here
    # it is 25 % less, over the networks' geometric mean (docs/networks.md).
    simplified = np.log(_parking_lot("fig2-linkrate-10x", "drop-tail"))
    true_model = np.log(_parking_lot("fig6-two-bottlenecks", "drop-tail"))
    cubic = np.log(_parking_lot(None, "sfq-codel"))
    assert np.exp((simplified - cubic).mean()) == pytest.approx(2.75, rel=0.1)
    assert np.exp((simplified - true_model).mean()) == pytest.approx(0.75, abs=0.06)


@dataclass(frozen=True)
class _Point:
    curve: str
    x: float
    overflows: bool
    ratio: float
    """Of our throughput in the body `ns2` to ns-2's."""


#: The greatest rate of Figure 2 that takes no minutes, Mbit/s.
_FASTEST_MBPS = 100.0


@functools.cache
def _points() -> list[_Point]:
    """Those of Figures 2 to 4 where a table ran, in the body that repairs as the study's did."""
    return [
        _point(curve, given)
        for curve in _goldens("learnability_curves")
        if curve["protocol"]["name"] == "remycc"
        for given in curve["points"]
        if curve["figure"] != "Fig 2" or given["x"] <= _FASTEST_MBPS
    ]


def _point(curve: dict[str, Any], given: dict[str, Any]) -> _Point:
    network, x = curve["network"], given["x"]
    mbps, rtt_ms = network.get("link_mbps", x), network.get("base_rtt_ms", x)
    # Behind 5 bandwidth-delay products; of Figure 2 those of 148 ms.
    longest = {"Fig 2": 5 * mbps * 148 / 10, "Fig 4": 5 * mbps * rtt_ms / 10}.get(curve["figure"])
    buffer = network["buffer_packets"] if longest is None else int(longest)
    queues = curve["figure"] == "Fig 4" and x <= 10
    overflows = queues or (buffer is not None and not given.get("lossless_in_ns2", True))
    specimens = []
    # What repairs come to depends on few timeouts.
    for run in range(16 if overflows or x <= 1 else 4):
        specimen = evaluation_pb2.Specimen(
            key=run, link_rate_packets_per_ms=mbps / 10, rtt_ms=rtt_ms, buffer_packets=buffer
        )
        specimen.bottleneck.packet_bytes, specimen.bottleneck.ack_bytes = _BYTES, 50
        specimen.senders.add(
            count=network.get("senders", x), traffic=_on_and_off(1000, 1000), body={"name": "ns2"}
        )
        specimens.append(specimen)
    throughputs, _ = _run([curve["protocol"]["table"]], specimens)
    name = curve["id"].removeprefix("learnability-")
    return _Point(name, x, overflows, throughputs.mean() / given["ns2"][0])


#: Where ours is not within a tenth, and how much it is: tables far from the RTT that they were
#: designed for. Buffers of 3 to 30 packets overflow there, and fewer repetitions are lost than in
#: ns-2.
_BEYOND = {
    ("fig4-rtt-150", 2): 1.54,
    ("fig4-rtt-150", 10): 1.17,
    ("fig4-rtt-10to280", 2): 1.34,
    ("fig4-rtt-10to280", 10): 1.12,
}


def test_tables_in_the_ns2_body_have_the_throughput_of_ns2() -> None:
    beyond = {
        (point.curve, point.x): point.ratio for point in _points() if abs(point.ratio - 1) > 0.1
    }
    assert beyond == pytest.approx(_BEYOND, rel=0.05)


def test_so_many_points_are_met_as_are_claimed() -> None:
    errors = np.array([abs(point.ratio - 1) for point in _points()])
    assert len(errors) > 100
    assert (errors <= 0.1).mean() >= 0.95
    assert (errors <= 0.2).mean() >= 0.98
    full = np.array([abs(point.ratio - 1) for point in _points() if point.overflows])
    assert len(full) >= 10
    assert (full <= 0.1).mean() >= 0.7
