"""Compares the CPU time per delivered packet with ns-3's."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.benchmark import Benchmark, Row, Unavailable
from benchmarks.programs import (
    BUFFER_PACKETS,
    PACKET_BYTES,
    REMY_FARM,
    ROOT,
    STARTS_APART_MS,
    bulk_flow_flags,
    run_json,
)

_PAIRS = 5
_SENDERS = 8
_LINK_MBPS = 15
_RTT_MS = 150
_SECONDS = 100
#: The simulated time of the runs that compare throughput and RTT. It is long, so that losses at the
#: start matter little.
_LONG_SECONDS = 300
_TRANSMISSION_MS = PACKET_BYTES * 8 / (_LINK_MBPS * 1000)

#: Our name of a protocol, and ns-3's class.
_PROTOCOLS = (("newreno", "TcpNewReno"), ("cubic,variant=linux", "TcpCubic"))
#: Whether each end of a flow has an access link besides the shared link.
_TOPOLOGIES = {"one link": False, "dumbbell": True}

#: The environment variable that names the wheel's directory. Debian's ns-3.37 cannot be used: GCC
#: 12 does not compile its headers as C++20.
_FOLDER = "REMY_NS3"
_MODULES = (
    *("applications", "internet", "bridge", "traffic-control", "point-to-point"),
    *("network", "stats", "core"),
)


class _Run(NamedTuple):
    #: Packets that receivers delivered in order.
    packets: int
    cpu_seconds: float

    @property
    def seconds_per_million(self) -> float:
        return self.cpu_seconds / self.packets * 1e6


def measure() -> list[Row]:
    """Returns one row per protocol and topology of ns-3."""
    with tempfile.TemporaryDirectory() as folder:
        program = _build(Path(folder))
        return [
            _costs(program, ours, theirs, topology) | agreement
            for ours, theirs in _PROTOCOLS
            for agreement in [_agreement(program, ours, theirs)]
            for topology in _TOPOLOGIES
        ]


def _build(folder: Path) -> Path:
    """Compiles the scenario against the installed ns-3 wheel and returns the program's path."""
    compiler = shutil.which("c++")
    if compiler is None:
        raise Unavailable("A C++ compiler is not installed (package g++).")
    prefix = Path(os.environ.get(_FOLDER, "."))
    if not (prefix / "include" / "ns3" / "core-module.h").exists():
        raise Unavailable(
            f"{_FOLDER} does not name the directory site-packages/ns3 of the wheel ns3, which may "
            "be installed in any environment."
        )
    # A library's name has the version in it, for example libns3.44-core.so.
    libraries = {
        path.stem.partition("-")[2]: path for path in (prefix / "lib64").glob("libns3.*.so")
    }
    program = folder / "dumbbell"
    needed = [libraries[module] for module in _MODULES]
    subprocess.run(
        [
            compiler,
            *("-std=c++20", "-O3", "-DNDEBUG", "-w", f"-I{prefix / 'include'}"),
            *(ROOT / "benchmarks" / "ns3_dumbbell.cc", "-o", program),
            *needed,
            f"-Wl,-rpath,{needed[0].parent}",
        ],
        check=True,
    )
    return program


def _costs(program: Path, ours: str, theirs: str, topology: str) -> Row:
    pairs = []
    for _ in range(_PAIRS):
        outcome = _ours(ours, _SECONDS)
        own = _Run(_packets_in_order(outcome), outcome["cpu_seconds"])
        ns3 = _Run(**_ns3(program, theirs, _SECONDS, topology))
        pairs.append((own, ns3))
    ratios = sorted(ns3.seconds_per_million / own.seconds_per_million for own, ns3 in pairs)
    own, ns3 = pairs[0]
    return {
        "protocol": ours,
        "ns-3's network": topology,
        "packets": own.packets,
        "ns-3's": ns3.packets,
        "CPU s per million": statistics.median(run.seconds_per_million for run, _ in pairs),
        "ns-3's CPU s": statistics.median(run.seconds_per_million for _, run in pairs),
        "ratio": statistics.median(ratios),
        "from": ratios[0],
        "to": ratios[-1],
    }


def _agreement(program: Path, ours: str, theirs: str) -> Row:
    own = _ours(ours, _LONG_SECONDS)
    # Access links without delay never queue, so that one link gives the same result as a dumbbell.
    ns3 = _ns3(program, theirs, _LONG_SECONDS, "one link", "--waiting=1")
    return {
        "Mbit/s": _mbps(_packets_in_order(own)),
        "ns-3's Mbit/s": _mbps(ns3["packets"]),
        "RTT ms": own["kinds"][0]["delay_ms"],
        "ns-3's RTT ms": _RTT_MS + _TRANSMISSION_MS + ns3["waiting_ms"],
    }


def _mbps(packets: int) -> float:
    return packets * PACKET_BYTES * 8 / _LONG_SECONDS / 1e6


def _packets_in_order(outcome: dict[str, Any]) -> int:
    packets = outcome["kinds"][0]["packets_in_order"]
    assert isinstance(packets, int)
    return packets


def _ours(protocol: str, seconds: int) -> dict[str, Any]:
    return run_json(
        REMY_FARM,
        "simulate",
        *bulk_flow_flags(
            protocol, senders=_SENDERS, rate_mbps=_LINK_MBPS, rtt_ms=_RTT_MS, seconds=seconds
        ),
    )


def _ns3(program: Path, protocol: str, seconds: int, topology: str, *more: str) -> dict[str, Any]:
    printed = subprocess.run(
        [
            program,
            f"--protocol={protocol}",
            f"--senders={_SENDERS}",
            f"--link-mbps={_LINK_MBPS}",
            f"--rtt-ms={_RTT_MS}",
            f"--buffer-packets={BUFFER_PACKETS}",
            f"--starts-apart-ms={STARTS_APART_MS}",
            f"--seconds={seconds}",
            f"--access-links={int(_TOPOLOGIES[topology])}",
            *more,
        ],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    outcome = json.loads(printed)
    assert isinstance(outcome, dict)
    return outcome


BENCHMARK = Benchmark(
    name="ns3",
    title="CPU time per delivered packet, compared with ns-3",
    method=(
        f"{_SENDERS} bulk flows that start {STARTS_APART_MS} ms apart, {_LINK_MBPS} Mbit/s, "
        f"{_RTT_MS} ms, a drop-tail queue of {BUFFER_PACKETS} packets, packets of "
        f"{PACKET_BYTES} bytes, an ACK for each, {_SECONDS} s; our simulator and ns-3 run "
        f"alternately, {_PAIRS} times each. CPU time covers the simulation alone, without the "
        "start and set-up of either; packets are those that a receiver delivered in order; the "
        "ratio is the median of the pairs. ns-3's program is compiled with optimization against "
        "the installed libraries. 'One link' has all flows between two nodes, which is the least "
        "work for ns-3; 'dumbbell' adds a link for each end of a flow. Throughput and mean RTT "
        f"come from one more untimed run each of {_LONG_SECONDS} s; ns-3's RTT is the mean "
        "queueing time plus the link's delay and transmission time."
    ),
    measure=measure,
)
