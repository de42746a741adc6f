"""Counts the instructions that the simulator executes per delivered packet."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row, Unavailable
from benchmarks.programs import (
    BUFFER_PACKETS,
    REMY_SIMULATE,
    STARTS_APART_MS,
    network_flags,
)
from benchmarks.tables import published
from remy_farm.specification.network_files import read_topology
from remy_proto.v1 import evaluation_pb2

_SHORT_SECONDS = 100
_LONG_SECONDS = 1000
_RTT_MS = 150


@dataclass(frozen=True)
class _Setting:
    """A dumbbell whose senders run a RemyCC on datagrams."""

    remycc: str
    senders: int
    link_mbps: float
    on_off_ms: float
    #: Instructions per packet: the reference implementation's, and our goal.
    reference: int
    goal: int


_SETTINGS = (
    _Setting("RemyCC-2014-100x.dna", 2, 35.3, 1000, reference=4430, goal=150),
    _Setting("RemyCC-2013-delta1.dna", 8, 18, 10_000, reference=9060, goal=200),
    _Setting("RemyCC-2013-delta0.1.dna", 16, 15, 5000, reference=13_400, goal=250),
)

#: Protocols whose flows run over TCP on the general network.
_PROTOCOLS = ("newreno", "cubic")
_GOALS_BY_QUEUE = {"drop-tail": 400, "codel": 500, "sfq-codel": 700}
_FLOWS = 8
_FLOWS_LINK_MBPS = 15


#: The maximum cost of a packet over a trace or over two links, relative to one constant-rate link.
_MAX_RATIO_TO_ONE_LINK = 1.6
#: Delivery opportunities within each 4 ms of the trace: one per 0.8 ms, as on the other links.
_OPPORTUNITIES_MS = (0, 0, 1, 3, 3)
_TRACE_DURATION_MS = 100_000


def measure() -> list[Row]:
    """Returns one row per setting."""
    if shutil.which("valgrind") is None:
        raise Unavailable("valgrind is not installed (package valgrind).")
    rows = [_remycc_row(setting, published(setting.remycc)) for setting in _SETTINGS]
    return rows + _network_rows()


def _remycc_row(setting: _Setting, remycc: Path) -> Row:
    def command(seconds: int) -> list[str | Path]:
        flags = network_flags(
            remycc=remycc,
            senders=setting.senders,
            rate_mbps=setting.link_mbps,
            rtt_ms=_RTT_MS,
            on_ms=setting.on_off_ms,
            off_ms=setting.on_off_ms,
            seconds=seconds,
        )
        return [REMY_SIMULATE, *flags, "--json"]

    # The goal and the reference's count are known for this RemyCC only.
    is_same = remycc.name == setting.remycc
    return {
        # A design of ours is named by its directory: the file is always remycc.json.
        "sender": remycc.stem if is_same else remycc.parent.name,
        "queue": "infinite",
        "senders": setting.senders,
        "Mbit/s": float(setting.link_mbps),
        "on/off ms": int(setting.on_off_ms),
        **_difference(command),
        "goal": setting.goal if is_same else None,
        "reference": setting.reference if is_same else None,
    }


def _network_rows() -> list[Row]:
    """Returns a row per protocol and queue, then one for a trace and one for two links."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for queue, goal in _GOALS_BY_QUEUE.items():
            for protocol in _PROTOCOLS:
                path = _network(Path(folder), protocol, [_link(queue=queue)])
                rows.append(_network_row(path, protocol, queue, goal))
        protocol = _PROTOCOLS[0]
        one_link = rows[0]["instructions a packet"]
        assert isinstance(one_link, float)
        for name, links in (
            ("a trace", [_traced_link(Path(folder))]),
            ("two links", [_link()] * 2),
        ):
            path = _network(Path(folder), protocol, links)
            goal = round(_MAX_RATIO_TO_ONE_LINK * one_link)
            rows.append(_network_row(path, protocol, f"drop-tail, {name}", goal))
    return rows


def _network_row(network: Path, protocol: str, queue: str, goal: int) -> Row:
    topology = read_topology(network)

    def command(seconds: int) -> list[str | Path]:
        request = evaluation_pb2.EvaluationRequest(
            candidates=[evaluation_pb2.Candidate()],
            specimens=[topology.specimen],
            duration_ms=1000.0 * seconds,
            seed=1,
            traces=topology.traces,
        )
        path = network.with_name("request")
        path.write_bytes(request.SerializeToString(deterministic=True))
        return [sys.executable, "-m", "benchmarks.network_run", path]

    return {
        "sender": protocol,
        "queue": queue,
        "senders": _FLOWS,
        "Mbit/s": float(_FLOWS_LINK_MBPS),
        "on/off ms": None,
        **_difference(command),
        "goal": goal,
        "reference": None,
    }


def _link(**others: object) -> dict[str, object]:
    return {
        "rate_mbps": _FLOWS_LINK_MBPS,
        "delay_ms": _RTT_MS / 4,
        "buffer": {"packets": BUFFER_PACKETS},
        **others,
    }


def _traced_link(folder: Path) -> dict[str, object]:
    """Returns a link that follows a trace of the same mean rate; writes the trace into `folder`."""
    times_ms = (
        begin_ms + each_ms
        for begin_ms in range(1, _TRACE_DURATION_MS, 4)
        for each_ms in _OPPORTUNITIES_MS
    )
    (folder / "link.trace").write_text("".join(f"{time_ms}\n" for time_ms in times_ms))
    link = _link(trace={"path": "link.trace", "semantics": "ns2"})
    del link["rate_mbps"]
    return link


def _network(folder: Path, protocol: str, links: list[dict[str, object]]) -> Path:
    """Writes a network file: endless flows that cross all links and start one after the other."""
    senders = [
        {
            "protocol": protocol,
            "first_on_ms": STARTS_APART_MS * number,
            "route": {"return_delay_ms": _RTT_MS - len(links) * _RTT_MS / 4},
            "traffic": {"always": {}},
        }
        for number in range(_FLOWS)
    ]
    path = folder / "network.json"
    path.write_text(json.dumps({"links": links, "senders": senders}))
    return path


def _difference(command: Callable[[int], list[str | Path]]) -> Row:
    """Returns the packets and instructions of a long run minus those of a short one."""
    short_packets, short_instructions = _run(command(_SHORT_SECONDS))
    long_packets, long_instructions = _run(command(_LONG_SECONDS))
    packets = long_packets - short_packets
    instructions = long_instructions - short_instructions
    return {"packets": packets, "instructions a packet": round(instructions / packets, 1)}


def _run(command: list[str | Path]) -> tuple[int, int]:
    """Runs a command under callgrind; returns packets received and instructions executed."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind"
        printed = subprocess.run(
            ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={counts}", *command],
            # A random hash seed would vary the instructions of Python's start.
            env={**os.environ, "PYTHONHASHSEED": "0"},
            check=True,
            capture_output=True,
        ).stdout
        totals = re.search(r"^(?:summary|totals): (\d+)", counts.read_text(), re.MULTILINE)
    assert totals is not None, "callgrind wrote no total"
    outcome = json.loads(printed)
    kinds = outcome.get("kinds", [outcome])
    return sum(kind["packets_received"] for kind in kinds), int(totals[1])


BENCHMARK = Benchmark(
    name="instructions",
    title="Instructions per delivered packet",
    method=(
        "valgrind's callgrind counts the instructions of a run of 1,000 simulated seconds and of "
        "one of 100 s; their difference is divided by the difference in packets received, so that "
        "start and end cancel. RemyCCs run in remy-simulate, protocols in benchmarks.network_run. "
        "The count is repeatable under any load of the machine and depends on the compiler. RTT "
        "150 ms, seed 1. RemyCCs have exponential on and off times of the given mean. Protocols "
        f"run over tcp: endless flows start {STARTS_APART_MS} ms apart, and the buffer holds "
        f"{BUFFER_PACKETS} packets. The last two rows have a link that follows a trace (in ns-2's "
        "semantics) and two links of the same rate in a row; they may cost "
        f"{_MAX_RATIO_TO_ONE_LINK} times as much as one constant-rate link."
    ),
    measure=measure,
)
