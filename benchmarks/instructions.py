"""What a packet costs."""

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

from benchmarks.figure import Figure, Row, Unavailable
from benchmarks.programs import (
    BUFFER_PACKETS,
    REMY_FARM,
    REMY_SIMULATE,
    STARTS_APART_MS,
    bulk_flow_flags,
    network_flags,
)
from benchmarks.tables import published

_SHORT_SECONDS = 100
_LONG_SECONDS = 1000
_RTT_MS = 150


@dataclass(frozen=True)
class _Setting:
    """RemyCCs on datagrams, on the dumbbell."""

    remycc: str
    senders: int
    link_mbps: float
    on_off_ms: float
    #: Instructions a packet of the reference implementation, and our goal.
    reference: int
    goal: int


_SETTINGS = (
    _Setting("RemyCC-2014-100x.dna", 2, 35.3, 1000, reference=4430, goal=150),
    _Setting("RemyCC-2013-delta1.dna", 8, 18, 10_000, reference=9060, goal=200),
    _Setting("RemyCC-2013-delta0.1.dna", 16, 15, 5000, reference=13_400, goal=250),
)

#: Flows on the transport body, on the general network.
_PROTOCOLS = ("newreno", "cubic")
_GOALS_BY_QUEUE = {"drop-tail": 400, "codel": 500, "sfq-codel": 700}
_FLOWS = 8
_FLOWS_LINK_MBPS = 15


#: What a packet on these may cost, in that of the first of them.
_MOST_OF_ONE_LINK = 1.6
_NETWORKS = ("one link", "a trace", "two links")
#: Opportunities of the trace in 4 ms, ms: in a mean of 0.8 ms, as on the other links.
_OPPORTUNITIES_MS = (0, 0, 1, 3, 3)
_TRACE_LASTS_MS = 100_000


def measure() -> list[Row]:
    """One row a setting."""
    if shutil.which("valgrind") is None:
        raise Unavailable("valgrind is not installed (package valgrind).")
    rows = [_remycc_row(setting, published(setting.remycc)) for setting in _SETTINGS]
    rows += [_protocol_row(protocol, queue) for queue in _GOALS_BY_QUEUE for protocol in _PROTOCOLS]
    return rows + _network_rows()


def _remycc_row(setting: _Setting, remycc: Path) -> Row:
    def command(seconds: int) -> list[str | Path]:
        flags = network_flags(
            remycc=remycc,
            senders=setting.senders,
            link_mbps=setting.link_mbps,
            rtt_ms=_RTT_MS,
            on_ms=setting.on_off_ms,
            off_ms=setting.on_off_ms,
            seconds=seconds,
        )
        return [REMY_SIMULATE, *flags, "--json"]

    # The figures of others hold for their RemyCC only.
    is_same = remycc.name == setting.remycc
    return {
        # Designs of ours are directories, all with a file of the same name.
        "sender": remycc.stem if is_same else remycc.parent.name,
        "queue": "infinite",
        "senders": setting.senders,
        "Mbit/s": float(setting.link_mbps),
        "on/off ms": int(setting.on_off_ms),
        **_difference(command),
        "goal": setting.goal if is_same else None,
        "reference": setting.reference if is_same else None,
    }


def _protocol_row(protocol: str, queue: str) -> Row:
    def command(seconds: int) -> list[str | Path]:
        flags = bulk_flow_flags(
            protocol, senders=_FLOWS, link_mbps=_FLOWS_LINK_MBPS, rtt_ms=_RTT_MS, seconds=seconds
        )
        return [REMY_FARM, "simulate", *flags, "--queue", queue, "--json"]

    return {
        "sender": protocol,
        "queue": queue,
        "senders": _FLOWS,
        "Mbit/s": float(_FLOWS_LINK_MBPS),
        "on/off ms": None,
        **_difference(command),
        "goal": _GOALS_BY_QUEUE[queue],
        "reference": None,
    }


def _network_rows() -> list[Row]:
    """What links of other kinds cost, and a second one on the way."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in _NETWORKS:
            path = _network(Path(folder), name)

            def command(seconds: int, path: Path = path) -> list[str | Path]:
                return [sys.executable, "-m", "benchmarks.network_run", path, str(seconds)]

            row = _difference(command)
            one_link = (rows[0] if rows else row)["instructions a packet"]
            assert isinstance(one_link, float)
            rows.append(
                {
                    "sender": "newreno",
                    "queue": f"drop-tail, {name}",
                    "senders": _FLOWS,
                    "Mbit/s": float(_FLOWS_LINK_MBPS),
                    "on/off ms": None,
                    **row,
                    "goal": round(_MOST_OF_ONE_LINK * one_link) if rows else None,
                    "reference": None,
                }
            )
    return rows


def _network(folder: Path, name: str) -> Path:
    """A network of links of equal mean rates for flows without end, written to a file."""
    link: dict[str, object] = {
        "rate_mbps": _FLOWS_LINK_MBPS,
        "delay_ms": _RTT_MS / 4,
        "buffer_packets": BUFFER_PACKETS,
    }
    links = [link] * (2 if name == "two links" else 1)
    if name == "a trace":
        times_ms = (
            begin_ms + each_ms
            for begin_ms in range(1, _TRACE_LASTS_MS, 4)
            for each_ms in _OPPORTUNITIES_MS
        )
        (folder / "link.trace").write_text("".join(f"{time_ms}\n" for time_ms in times_ms))
        del link["rate_mbps"]
        links = [{**link, "trace": {"path": "link.trace", "semantics": "ns2"}}]
    path = folder / f"{name.replace(' ', '-')}.json"
    senders = [
        {
            "sender": "newreno",
            "first_on_ms": STARTS_APART_MS * number,
            "route": {"return_delay_ms": _RTT_MS - len(links) * _RTT_MS / 4},
            "traffic": {"always": {}},
        }
        for number in range(_FLOWS)
    ]
    path.write_text(json.dumps({"links": links, "senders": senders}))
    return path


def _difference(command: Callable[[int], list[str | Path]]) -> Row:
    """What a long run of a command has beyond a short one."""
    short_packets, short_instructions = _run(command(_SHORT_SECONDS))
    long_packets, long_instructions = _run(command(_LONG_SECONDS))
    packets = long_packets - short_packets
    instructions = long_instructions - short_instructions
    return {"packets": packets, "instructions a packet": round(instructions / packets, 1)}


def _run(command: list[str | Path]) -> tuple[int, int]:
    """Packets received, and instructions executed."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind"
        printed = subprocess.run(
            ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={counts}", *command],
            # Else Python's start, too, is another one each time.
            env={**os.environ, "PYTHONHASHSEED": "0"},
            check=True,
            capture_output=True,
        ).stdout
        totals = re.search(r"^(?:summary|totals): (\d+)", counts.read_text(), re.MULTILINE)
    assert totals is not None, "callgrind wrote no total"
    tree = json.loads(printed)
    kinds = tree.get("kinds", [tree])
    return sum(kind["packets_received"] for kind in kinds), int(totals[1])


FIGURE = Figure(
    name="instructions",
    title="Instructions per delivered packet",
    method=(
        "Instructions that valgrind's callgrind counts in remy-simulate, or of protocols in "
        "remy-farm simulate, of a run of 1,000 simulated seconds minus one of 100, over the "
        "packets received, likewise: start and end cancel. Repeatable whatever else the machine "
        "does; it depends on the compiler. RTT 150 ms, seed 1. RemyCCs: exponential on and off "
        "times of the given mean. Protocols, on the tcp body: flows without end that start "
        f"{STARTS_APART_MS} ms apart, a buffer of {BUFFER_PACKETS} packets; likewise on one link, "
        "on one that follows a trace (in ns-2's semantics), and on two in a row of the same rate: "
        f"at most {_MOST_OF_ONE_LINK} times what the one link costs."
    ),
    measure=measure,
)
