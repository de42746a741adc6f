"""Rows of studies in ns-3: the same senders on the same schedule, in a simulator of others.

The scenario is compiled against the wheel `ns3`, whose folder REMY_NS3 names; ours has the schedule
of when senders are on as given times, so that both simulate the same and differ by nothing drawn.
Flows by bytes end when they will, so that their lengths and pauses are draws of each simulator's.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from remy_farm.files import FileError
from remy_farm.remycc import readable_rules, signal_name
from remy_laboratory.studies.networks import SEED
from remy_proto.v1 import evaluation_pb2, rule_table_pb2
from remy_simulator import RuleTable, log2, uniform
from remy_simulator.messages import packet_bytes, to_native

#: The folder `ns3` among an environment's packages.
FOLDER = "REMY_NS3"
_MAIN = "remycc.cc"
_MODULES = (
    *("internet", "bridge", "traffic-control", "point-to-point"),
    *("network", "stats", "core"),
)
_BITS_PER_BYTE = 8
_BITS_PER_MS_IN_MBPS = 1000.0
_MS_PER_SECOND = 1000.0
_LN_2 = 0.6931471805599453
# Name the draws of when senders are on and off, among those of a run.
_INTERVALS = 0x696E7465
_FLOWS = 0x666C6F77
_SIGNALS = 4
#: Memory beyond a table's domain is clamped to it.
_NO_END = 1e300


def with_intervals(specimen: evaluation_pb2.Specimen, seconds: float) -> evaluation_pb2.Specimen:
    """The specimen with the draws of its senders' exponential times on and off as given times, and
    each sender in a group of its own. Flows by bytes stay as they are."""
    found = evaluation_pb2.Specimen()
    found.CopyFrom(specimen)
    del found.senders[:]
    for group in specimen.senders:
        for _ in range(group.count):
            sender = len(found.senders)
            own = found.senders.add()
            own.CopyFrom(group)
            own.count = 1
            traffic = group.traffic
            if not traffic.HasField("exponential_time"):
                continue
            own.traffic.Clear()
            means_ms = (traffic.mean_off_ms, traffic.exponential_time.mean_ms)
            now_ms, draw = 0.0, 0
            while now_ms < seconds * _MS_PER_SECOND:
                ends_ms = own.traffic.intervals.end_ms if draw % 2 else None
                now_ms += _exponential(means_ms[draw % 2], _INTERVALS, specimen.key, sender, draw)
                (own.traffic.intervals.begin_ms if ends_ms is None else ends_ms).append(now_ms)
                draw += 1
    return found


def _exponential(mean: float, *path: int) -> float:
    return float(-mean * _LN_2 * log2(1.0 - uniform(SEED, *path)))


class Ns3:
    """The scenario, compiled once."""

    def __init__(self, studies: Path) -> None:
        """Of the folder of studies that has it. Raises FileError without ns-3 or a compiler."""
        sources = sorted((studies / "ns3").glob("*.[ch]*"))
        prefix = Path(os.environ.get(FOLDER, "."))
        if not (prefix / "include" / "ns3" / "core-module.h").exists():
            raise FileError(
                f"{FOLDER} does not name the folder site-packages/ns3 of the wheel ns3, which may "
                "be installed in any environment"
            )
        compiler = shutil.which("c++")
        if compiler is None:
            raise FileError("there is no C++ compiler (package g++) to build what runs in ns-3")
        # Their names tell the version, as libns3.44-core.so.
        libraries = {
            path.stem.partition("-")[2]: path for path in (prefix / "lib64").glob("libns3.*.so")
        }
        needed = [libraries[module] for module in _MODULES]
        self._folder = tempfile.TemporaryDirectory(prefix="remy-farm-")
        self._program = Path(self._folder.name) / "remycc"
        built = subprocess.run(
            [
                compiler,
                *("-std=c++20", "-O2", "-DNDEBUG", "-w", f"-I{prefix / 'include'}"),
                *(studies / "ns3" / _MAIN, "-o", self._program),
                *needed,
                f"-Wl,-rpath,{needed[0].parent}",
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if built.returncode != 0:
            self.close()
            name = studies / "ns3" / _MAIN
            raise FileError(f"{name} cannot be compiled: {built.stderr.strip()[-500:]}")
        #: Changes where the same request may come to something else.
        self.digest = hashlib.sha256(
            b"".join(source.read_bytes() for source in sources) + needed[-1].name.encode()
        ).hexdigest()

    def close(self) -> None:
        """Removes what was compiled."""
        self._folder.cleanup()

    def outcome(
        self,
        tables: Sequence[bytes],
        specimen: evaluation_pb2.Specimen,
        seconds: float,
        initial_window_packets: int = 0,
    ) -> evaluation_pb2.SpecimenOutcome:
        """What senders of one table come to; over TCP with so many packets that may leave before
        the first ACK, unless that is 0. Raises FileError."""
        table = rule_table_pb2.RuleTable.FromString(tables[0])
        file = Path(self._folder.name) / "input"
        file.write_text(_rules(to_native(table)) + senders_text(specimen, seconds))
        rate = specimen.link_rate_packets_per_ms * packet_bytes(specimen.bottleneck)
        limit = specimen.buffer_packets if specimen.HasField("buffer_packets") else None
        ran = subprocess.run(
            [
                self._program,
                f"--file={file}",
                *body_flags(specimen),
                f"--initial-window={initial_window_packets}",
                f"--link-mbps={rate * _BITS_PER_BYTE / _BITS_PER_MS_IN_MBPS!r}",
                f"--rtt-ms={specimen.rtt_ms!r}",
                *([] if limit is None else [f"--buffer-packets={limit}"]),
                f"--packet-bytes={packet_bytes(specimen.bottleneck):.0f}",
                f"--seconds={seconds!r}",
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if ran.returncode != 0:
            raise FileError(f"ns-3 ended with {ran.returncode}: {ran.stderr.strip()[-500:]}")
        return outcome_of(json.loads(ran.stdout), seconds)


def outcome_of(seen: Mapping[str, Any], seconds: float) -> evaluation_pb2.SpecimenOutcome:
    """What the scenario has seen of each sender."""
    on_ms, share_ms, first_on_ms = _times(seen["on_ms"], seconds * _MS_PER_SECOND)
    nothing = [0] * len(on_ms)
    return evaluation_pb2.SpecimenOutcome(
        packets_received=seen["received"],
        packets_sent=seen["sent"],
        packets_lost=seen["lost"],
        on_ms=on_ms,
        share_ms=share_ms,
        delay_sum_ms=seen["rtt_sum_ms"],
        first_on_ms=first_on_ms,
        transport=evaluation_pb2.TransportColumns(
            packets_in_order=seen["received"],
            packets_repeated=seen["repeated"],
            packets_marked=nothing,
            timeouts=seen["timeouts"],
            throughput_packets=seen["received"],
            delay_samples=seen["rtt_samples"],
            flows=nothing,
        ),
    )


def body_flags(specimen: evaluation_pb2.Specimen) -> list[str]:
    """What carries the senders, as the scenario takes it. Raises FileError."""
    bodies = {group.body.SerializeToString(deterministic=True) for group in specimen.senders}
    body = specimen.senders[0].body
    settings = {each.name: each.value for each in body.parameters}
    keeps_state = settings.pop("keep_state", 0) != 0
    is_known = body.name in ("", "datagram") or (body.name == "tcp" and body.variant in ("", "rfc"))
    if len(bodies) > 1 or not is_known or settings:
        raise FileError(
            "ns-3's senders are all on datagram, or on tcp without settings but keep_state"
        )
    return [f"--body={body.name or 'datagram'}", f"--keep-state={int(keeps_state)}"]


def _rules(table: RuleTable) -> str:
    if table.rules != rule_table_pb2.RULES_ABSOLUTE or max(table.signals) >= _SIGNALS:
        raise FileError("ns-3's senders know absolute rules of the usual signals alone")
    lines = [f"rules {table.rule_count}"]
    for rule in readable_rules(table):
        ends = []
        for axis in range(_SIGNALS):
            lower, upper = rule.region.get(
                signal_name(axis, table.rules), (0.0, table.domain_upper)
            )
            ends += [lower, upper if upper < table.domain_upper else _NO_END]
        action = (rule.window_multiple, rule.window_increment, rule.intersend_ms)
        lines.append(" ".join(repr(each) for each in (*ends, *action)))
    return "\n".join(lines) + "\n"


def senders_text(specimen: evaluation_pb2.Specimen, seconds: float) -> str:
    """When senders are on, as the scenario reads it. Raises FileError."""
    lines = [f"senders {len(specimen.senders)}"]
    for sender, group in enumerate(specimen.senders):
        pairs: Sequence[tuple[float, float]]
        if group.traffic.HasField("intervals"):
            kind, pairs = "time", _periods(group)
        elif group.body.name == "tcp" and group.traffic.HasField("exponential_bytes"):
            kind, pairs = "flows", _flows(specimen, sender, seconds)
        else:
            raise FileError("ns-3's senders are on for exponential times, on tcp also by bytes")
        words = [f"{first!r} {second!r}" for first, second in pairs]
        lines.append(" ".join([kind, str(len(pairs)), *words]))
    return "\n".join(lines) + "\n"


def _periods(group: evaluation_pb2.SenderGroup) -> list[tuple[float, float]]:
    intervals = group.traffic.intervals
    is_open = len(intervals.end_ms) < len(intervals.begin_ms)
    ends_ms = [*intervals.end_ms, *([_NEVER_MS] if is_open else [])]
    return list(zip(intervals.begin_ms, ends_ms, strict=True))


#: Behind the end of any study.
_NEVER_MS = 1e9


def _flows(
    specimen: evaluation_pb2.Specimen, sender: int, seconds: float
) -> list[tuple[float, int]]:
    """Time off before each flow and its packets: as many as there can be, as each takes an RTT."""
    group = specimen.senders[sender]
    traffic = group.traffic
    flows: list[tuple[float, int]] = []
    now_ms = 0.0
    while now_ms < seconds * _MS_PER_SECOND:
        path = (_FLOWS, specimen.key, sender, 2 * len(flows))
        off_ms = _exponential(traffic.mean_off_ms, *path)
        if not flows and group.HasField("first_on_ms"):
            off_ms = group.first_on_ms
        mean_bytes = traffic.exponential_bytes.mean_bytes
        flow_bytes = _exponential(mean_bytes, *path[:-1], path[-1] + 1)
        flows.append((off_ms, max(1, math.ceil(flow_bytes / packet_bytes(specimen.bottleneck)))))
        now_ms += off_ms + specimen.rtt_ms
    return flows


def _times(
    on: Sequence[Sequence[tuple[float, float]]], end_ms: float
) -> tuple[list[float], list[float], list[float]]:
    """Of each sender: time on, the same over the senders then on, and when it was first on."""
    periods = [[(begin, min(end, end_ms)) for begin, end in each if begin < end_ms] for each in on]
    edges = sorted({edge for each in periods for period in each for edge in period})
    on_ms, share_ms = [0.0] * len(periods), [0.0] * len(periods)
    for low, high in itertools.pairwise(edges):
        here = [
            sender
            for sender, each in enumerate(periods)
            if any(begin <= low < end for begin, end in each)
        ]
        for sender in here:
            on_ms[sender] += high - low
            share_ms[sender] += (high - low) / len(here)
    return on_ms, share_ms, [each[0][0] if each else end_ms for each in periods]
