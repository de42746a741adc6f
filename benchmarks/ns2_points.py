"""Compares RemyCCs on the transport `ns2` with the learnability study's results in ns-2."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.benchmark import Benchmark, Row, Unavailable
from benchmarks.tables import REFERENCE
from remy_farm.remycc import read_remycc
from remy_proto.v1 import evaluation_pb2
from remy_simulator import columns

_GOLDENS = REFERENCE / "ns2-goldens.json"
#: The sizes of packets and ACKs in the study.
PACKET_BYTES = 1250
_ACK_BYTES = 40
#: The link of Figure 4, 10 ** 1.5 Mbit/s as the study's scripts print it. The file of ns-2's
#: results rounds it, but thresholds of the table for 10 to 280 ms depend on its eleventh digit.
_FIGURE_4_MBPS = 31.6227766017
_SECONDS = 100.0
#: Above this rate of Figure 2, Mbit/s, a simulation takes so long that fewer runs are made.
FASTEST_MBPS = 100.0
_RUNS = 256
_RUNS_ABOVE_FASTEST = 16
#: A function that returns a point's number of runs. Its arguments are whether a buffer overflows,
#: the number of senders, and the link's rate in Mbit/s.
Runs = Callable[[bool, int, float], int]
_MAX_RTT_DIFFERENCE_MS = 2.0
_MAX_RTT_DIFFERENCE_SHARE = 0.02


@dataclass(frozen=True)
class Point:
    """A point of Figures 2 to 4 where a RemyCC ran, in ns-2 and in our simulator."""

    curve: str
    #: The x coordinate: Mbit/s in Figure 2, senders in Figure 3, ms in Figure 4.
    x: float
    #: Whether packets are lost because a buffer overflows.
    overflows: bool
    #: Our throughput over ns-2's.
    ratio: float
    rtt_ms: float
    ns2_rtt_ms: float

    @property
    def is_rtt_equal(self) -> bool:
        """Whether the mean RTTs differ by at most 2 ms or 2 %, whichever is larger."""
        allowed_ms = max(_MAX_RTT_DIFFERENCE_MS, _MAX_RTT_DIFFERENCE_SHARE * self.ns2_rtt_ms)
        return abs(self.rtt_ms - self.ns2_rtt_ms) <= allowed_ms


def learnability_goldens(section: str) -> Any:
    """Returns a section of the file of ns-2's results. Raises Unavailable."""
    if not _GOLDENS.exists():
        raise Unavailable(f"REMY_REFERENCE_DIR names no directory that has {_GOLDENS.name}.")
    return json.loads(_GOLDENS.read_text(encoding="utf-8"))[section]


def run_tables(
    tables: Sequence[str], specimens: Sequence[evaluation_pb2.Specimen]
) -> tuple[np.ndarray, np.ndarray]:
    """Simulates published tables on specimens.

    `tables` are file names in the reference directory, or what such a name has between
    `learnability-` and `.dna`. Returns throughput in Mbit/s and mean RTT in ms, with a row per
    specimen and a column per sender.
    """
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
        # A sender that received nothing has no mean: 0 / 0 gives NaN.
        delay_ms = np.frombuffer(senders.delay_sum_ms) / samples
    shape = (len(specimens), -1)
    return mbps.reshape(shape), delay_ms.reshape(shape)


def on_and_off(on_ms: float, off_ms: float) -> evaluation_pb2.Traffic:
    """Returns traffic with exponentially distributed on and off times of the given means."""
    traffic = evaluation_pb2.Traffic(mean_off_ms=off_ms)
    traffic.exponential_time.mean_ms = on_ms
    return traffic


def ns2_points(
    runs: Runs, fastest_mbps: float = float("inf"), transport: str = "ns2"
) -> list[Point]:
    """Simulates all points of Figures 2 to 4 where a RemyCC ran. Raises Unavailable."""
    return [
        _point(curve, golden, runs, transport)
        for curve in learnability_goldens("learnability_curves")
        if curve["protocol"]["name"] == "remycc"
        for golden in curve["points"]
        if curve["figure"] != "Fig 2" or golden["x"] <= fastest_mbps
    ]


def _point(curve: dict[str, Any], golden: dict[str, Any], runs: Runs, transport: str) -> Point:
    network, x = curve["network"], golden["x"]
    mbps, rtt_ms = network.get("link_mbps", x), network.get("base_rtt_ms", x)
    if curve["figure"] == "Fig 4":
        mbps = _FIGURE_4_MBPS
    # The buffer is 5 BDP; in Figure 2 the BDP is that of 148 ms.
    five_bdp = {"Fig 2": 5 * mbps * 148 / 10, "Fig 4": 5 * mbps * rtt_ms / 10}.get(curve["figure"])
    limit = network["buffer_packets"] if five_bdp is None else int(five_bdp)
    # A drop-tail queue of ns-2 with limit n drops the packet that would be its n-th.
    buffer = None if limit is None else limit - 1
    is_small_bdp = curve["figure"] == "Fig 4" and x <= 10
    has_ns2_losses = buffer is not None and not golden.get("lossless_in_ns2", True)
    overflows = is_small_bdp or has_ns2_losses
    specimens = []
    for run in range(runs(overflows, network.get("senders", x), mbps)):
        specimen = evaluation_pb2.Specimen(
            key=run, link_rate_packets_per_ms=mbps / 10, rtt_ms=rtt_ms, buffer_packets=buffer
        )
        specimen.bottleneck.packet_bytes = PACKET_BYTES
        specimen.bottleneck.ack_bytes = _ACK_BYTES
        specimen.senders.add(
            count=network.get("senders", x),
            traffic=on_and_off(1000, 1000),
            transport={"name": transport},
        )
        specimens.append(specimen)
    throughputs, delays_ms = run_tables([curve["protocol"]["table"]], specimens)
    ns2_mbps, ns2_rtt_ms = golden["ns2"]
    name = curve["id"].removeprefix("learnability-")
    ratio = throughputs.mean() / ns2_mbps
    return Point(name, x, overflows, ratio, float(np.nanmean(delays_ms)), ns2_rtt_ms)


def measure() -> list[Row]:
    """Returns one row per curve, then one for all of them."""
    points = ns2_points(
        lambda _overflows, _senders, mbps: _RUNS if mbps <= FASTEST_MBPS else _RUNS_ABOVE_FASTEST
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
        "RTT": sum(point.is_rtt_equal for point in points),
        "worst at": worst.x,
        "ratio there": worst.ratio,
    }


BENCHMARK = Benchmark(
    name="ns2-points",
    title="RemyCCs on the transport ns2, and the learnability study's results in ns-2",
    method=(
        "ns2-goldens.json has ns-2's results at the points of Figures 2 to 4 where a published "
        "RemyCC ran. A point is one network of a figure. Our mean "
        f"throughput over senders and {_RUNS} runs of {_SECONDS:.0f} s ({_RUNS_ABOVE_FASTEST} runs "
        f"above {FASTEST_MBPS:.0f} Mbit/s) is divided by ns-2's, a mean of 10 runs. The columns "
        "count the points within 3, 10 and 20 %, and those whose mean RTT is within 2 ms or 2 %, "
        "and name the point that is farthest off. Some of ns-2's points differ by several per cent "
        "between one set of 10 runs and another."
    ),
    measure=measure,
)
