"""How close published RemyCCs on the body `ns2` come to ns-2's points of the learnability study."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.figure import Figure, Row, Unavailable
from benchmarks.tables import REFERENCE
from remy_farm.remycc import read_remycc
from remy_proto.v1 import evaluation_pb2
from remy_simulator import columns

_GOLDENS = REFERENCE / "ns2-goldens.json"
#: Of the study's packets and ACKs.
PACKET_BYTES = 1250
_ACK_BYTES = 50
_SECONDS = 100.0
#: A rate of Figure 2 above which a run takes long, Mbit/s.
FASTEST_MBPS = 100.0
_RUNS = 256
_RUNS_OF_FAST = 16
#: How many runs a point has, by whether a buffer overflows, senders, and the link's rate in Mbit/s.
Runs = Callable[[bool, int, float], int]
_MOST_RTT_MS = 2.0
_MOST_RTT_SHARE = 0.02


@dataclass(frozen=True)
class Point:
    """A point of Figures 2 to 4 where a table ran, and what ours comes to."""

    curve: str
    x: float
    """Mbit/s, senders or ms."""
    overflows: bool
    ratio: float
    """Of our throughput to ns-2's."""
    rtt_ms: float
    ns2_rtt_ms: float

    @property
    def has_the_rtt(self) -> bool:
        """Whether RTTs are within 2 ms or 2 %, whichever is larger."""
        most_ms = max(_MOST_RTT_MS, _MOST_RTT_SHARE * self.ns2_rtt_ms)
        return abs(self.rtt_ms - self.ns2_rtt_ms) <= most_ms


def learnability_goldens(section: str) -> Any:
    """A part of what is known of ns-2's runs. Raises Unavailable."""
    if not _GOLDENS.exists():
        raise Unavailable(
            f"REMY_REFERENCE_DIR names no folder with ns-2's figures ({_GOLDENS.name})."
        )
    return json.loads(_GOLDENS.read_text(encoding="utf-8"))[section]


def run_tables(
    tables: Sequence[str], specimens: Sequence[evaluation_pb2.Specimen]
) -> tuple[np.ndarray, np.ndarray]:
    """Mbit/s and mean delays in ms of published tables, named as their index has them or without
    the study's name: a row for each specimen, a column for each sender."""
    files = [name if name.endswith(".dna") else f"learnability-{name}.dna" for name in tables]
    request = evaluation_pb2.EvaluationRequest(
        tables=[read_remycc(REFERENCE / "remyccs" / file).to_message() for file in files],
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
    mbps = counted * PACKET_BYTES * 8 / 1000 / np.frombuffer(senders.on_ms)
    with np.errstate(invalid="ignore"):
        # Who heard nothing has none.
        delay_ms = np.frombuffer(senders.delay_sum_ms) / samples
    shape = (len(specimens), -1)
    return mbps.reshape(shape), delay_ms.reshape(shape)


def on_and_off(on_ms: float, off_ms: float) -> evaluation_pb2.Traffic:
    """Times that are exponentially distributed, by their means."""
    traffic = evaluation_pb2.Traffic(mean_off_ms=off_ms)
    traffic.exponential_time.mean_ms = on_ms
    return traffic


def ns2_points(runs: Runs, fastest_mbps: float = float("inf"), body: str = "ns2") -> list[Point]:
    """All of Figures 2 to 4 where a table ran, here on a body. Raises Unavailable."""
    return [
        _point(curve, given, runs, body)
        for curve in learnability_goldens("learnability_curves")
        if curve["protocol"]["name"] == "remycc"
        for given in curve["points"]
        if curve["figure"] != "Fig 2" or given["x"] <= fastest_mbps
    ]


def _point(curve: dict[str, Any], given: dict[str, Any], runs: Runs, body: str) -> Point:
    network, x = curve["network"], given["x"]
    mbps, rtt_ms = network.get("link_mbps", x), network.get("base_rtt_ms", x)
    # Behind 5 bandwidth-delay products; of Figure 2 those of 148 ms.
    longest = {"Fig 2": 5 * mbps * 148 / 10, "Fig 4": 5 * mbps * rtt_ms / 10}.get(curve["figure"])
    limit = network["buffer_packets"] if longest is None else int(longest)
    # A drop-tail queue of ns-2 whose limit is n drops what would be its n-th packet.
    buffer = None if limit is None else limit - 1
    queues = curve["figure"] == "Fig 4" and x <= 10
    overflows = queues or (buffer is not None and not given.get("lossless_in_ns2", True))
    specimens = []
    for run in range(runs(overflows, network.get("senders", x), mbps)):
        specimen = evaluation_pb2.Specimen(
            key=run, link_rate_packets_per_ms=mbps / 10, rtt_ms=rtt_ms, buffer_packets=buffer
        )
        specimen.bottleneck.packet_bytes = PACKET_BYTES
        specimen.bottleneck.ack_bytes = _ACK_BYTES
        specimen.senders.add(
            count=network.get("senders", x), traffic=on_and_off(1000, 1000), body={"name": body}
        )
        specimens.append(specimen)
    throughputs, delays_ms = run_tables([curve["protocol"]["table"]], specimens)
    ns2_mbps, ns2_rtt_ms = given["ns2"]
    name = curve["id"].removeprefix("learnability-")
    ratio = throughputs.mean() / ns2_mbps
    return Point(name, x, overflows, ratio, float(np.nanmean(delays_ms)), ns2_rtt_ms)


def measure() -> list[Row]:
    """One row a curve, then one for all of them."""
    points = ns2_points(
        lambda _overflows, _senders, mbps: _RUNS if mbps <= FASTEST_MBPS else _RUNS_OF_FAST
    )
    curves = dict.fromkeys(point.curve for point in points)
    rows = [_row(name, [each for each in points if each.curve == name]) for name in curves]
    return [*rows, _row("all", points)]


def _row(name: str, points: Sequence[Point]) -> Row:
    errors = np.array([abs(point.ratio - 1) for point in points])
    worst = points[int(errors.argmax())]
    return {
        "curve": name,
        "points": len(points),
        "3 %": int((errors <= 0.03).sum()),
        "10 %": int((errors <= 0.1).sum()),
        "20 %": int((errors <= 0.2).sum()),
        "RTT": sum(point.has_the_rtt for point in points),
        "worst at": worst.x,
        "ratio there": worst.ratio,
    }


FIGURE = Figure(
    name="ns2-points",
    title="RemyCCs on the body ns2 beside ns-2's points of the learnability study",
    method=(
        "Each point of its Figures 2 to 4 with a published RemyCC that ns2-goldens.json gives: "
        f"mean throughput over {_RUNS} runs of {_SECONDS:.0f} s ({_RUNS_OF_FAST} above "
        f"{FASTEST_MBPS:.0f} Mbit/s) and senders, over ns-2's, which is a mean of 10 runs: how "
        "many points are within 3, 10 and 20 %, how many have its mean RTT within 2 ms or 2 %, and "
        "the farthest one. Some points move by several per cent between 10 runs and others."
    ),
    measure=measure,
)
