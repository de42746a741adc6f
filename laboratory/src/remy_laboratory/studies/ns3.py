"""Runs rows of studies in ns-3, with the same senders and schedule as in this simulator.

The scenario is compiled against the wheel `ns3` in the directory that REMY_NS3 names. Both
simulators get the same times at which senders are on, so that random draws do not differ. Flows
limited by bytes end at different times in each simulator, so their lengths and pauses are drawn
separately.
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

#: Environment variable with the directory `ns3` in an environment's site-packages.
NS3_VARIABLE = "REMY_NS3"
_MAIN = "remycc.cc"
_MODULES = (
    *("internet", "bridge", "traffic-control", "point-to-point"),
    *("network", "stats", "core"),
)
_BITS_PER_BYTE = 8
_BITS_PER_MS_IN_MBPS = 1000.0
_MS_PER_SECOND = 1000.0
_LN_2 = 0.6931471805599453
# Keys of the random draws of on and off times, and of flows.
_INTERVALS = 0x696E7465
_FLOWS = 0x666C6F77
_SIGNALS = 4
#: Upper bound of a rule at the end of the domain, as values beyond the domain are clamped to it.
_UNBOUNDED = 1e300


def with_intervals(specimen: evaluation_pb2.Specimen, seconds: float) -> evaluation_pb2.Specimen:
    """Replaces exponential on and off times by drawn times, with each sender in its own group.

    Flows that are limited by bytes are not changed.
    """
    result = evaluation_pb2.Specimen()
    result.CopyFrom(specimen)
    del result.senders[:]
    for group in specimen.senders:
        for _ in range(group.count):
            sender = len(result.senders)
            new_group = result.senders.add()
            new_group.CopyFrom(group)
            new_group.count = 1
            traffic = group.traffic
            if not traffic.HasField("exponential_time"):
                continue
            new_group.traffic.Clear()
            means_ms = (traffic.mean_off_ms, traffic.exponential_time.mean_ms)
            now_ms, draw = 0.0, 0
            while now_ms < seconds * _MS_PER_SECOND:
                ends_ms = new_group.traffic.intervals.end_ms if draw % 2 else None
                now_ms += _exponential(means_ms[draw % 2], _INTERVALS, specimen.key, sender, draw)
                begins_ms = new_group.traffic.intervals.begin_ms
                (begins_ms if ends_ms is None else ends_ms).append(now_ms)
                draw += 1
    return result


def _exponential(mean: float, *path: int) -> float:
    return float(-mean * _LN_2 * log2(1.0 - uniform(SEED, *path)))


class Ns3:
    """The compiled ns-3 scenario."""

    def __init__(self, studies: Path) -> None:
        """Compiles the scenario. Raises FileError without ns-3 or a C++ compiler."""
        sources = sorted((studies / "ns3").glob("*.[ch]*"))
        prefix = Path(os.environ.get(NS3_VARIABLE, "."))
        if not (prefix / "include" / "ns3" / "core-module.h").exists():
            raise FileError(
                f"{NS3_VARIABLE} must name the directory site-packages/ns3 of the wheel ns3, "
                "which can be installed in any environment"
            )
        compiler = shutil.which("c++")
        if compiler is None:
            raise FileError("a C++ compiler (package g++) is needed to build the ns-3 scenario")
        # The names contain the version, e.g. libns3.44-core.so.
        libraries = {
            path.stem.partition("-")[2]: path for path in (prefix / "lib64").glob("libns3.*.so")
        }
        needed = [libraries[module] for module in _MODULES]
        self._folder = tempfile.TemporaryDirectory(prefix="remy-farm-")
        self._program = Path(self._folder.name) / "remycc"
        build = subprocess.run(
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
        if build.returncode != 0:
            self.close()
            name = studies / "ns3" / _MAIN
            raise FileError(f"{name} cannot be compiled: {build.stderr.strip()[-500:]}")
        #: Identifies the sources and the version of ns-3.
        self.digest = hashlib.sha256(
            b"".join(source.read_bytes() for source in sources) + needed[-1].name.encode()
        ).hexdigest()

    def close(self) -> None:
        """Deletes the compiled program."""
        self._folder.cleanup()

    def outcome(
        self,
        tables: Sequence[bytes],
        specimen: evaluation_pb2.Specimen,
        seconds: float,
        initial_window_packets: int = 0,
    ) -> evaluation_pb2.SpecimenOutcome:
        """Simulates senders that run one table.

        Over TCP, `initial_window_packets` packets may be sent before the first ACK; with 0, the
        table's rules determine the number. Raises FileError.
        """
        table = rule_table_pb2.RuleTable.FromString(tables[0])
        file = Path(self._folder.name) / "input"
        file.write_text(_rules(to_native(table)) + senders_text(specimen, seconds))
        rate = specimen.link_rate_packets_per_ms * packet_bytes(specimen.bottleneck)
        limit = specimen.buffer_packets if specimen.HasField("buffer_packets") else None
        run = subprocess.run(
            [
                self._program,
                f"--file={file}",
                *transport_flags(specimen),
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
        if run.returncode != 0:
            raise FileError(f"ns-3 exited with {run.returncode}: {run.stderr.strip()[-500:]}")
        return parse_outcome(json.loads(run.stdout), seconds)


def parse_outcome(output: Mapping[str, Any], seconds: float) -> evaluation_pb2.SpecimenOutcome:
    """Converts the scenario's output to an outcome."""
    on_ms, share_ms, first_on_ms = _times(output["on_ms"], seconds * _MS_PER_SECOND)
    zeros = [0] * len(on_ms)
    return evaluation_pb2.SpecimenOutcome(
        packets_received=output["received"],
        packets_sent=output["sent"],
        packets_lost=output["lost"],
        on_ms=on_ms,
        share_ms=share_ms,
        delay_sum_ms=output["rtt_sum_ms"],
        first_on_ms=first_on_ms,
        transport=evaluation_pb2.TransportColumns(
            packets_in_order=output["received"],
            packets_retransmitted=output["retransmitted"],
            packets_marked=zeros,
            timeouts=output["timeouts"],
            throughput_packets=output["received"],
            delay_samples=output["rtt_samples"],
            flows=zeros,
        ),
    )


def transport_flags(specimen: evaluation_pb2.Specimen) -> list[str]:
    """Returns the scenario's flags for the senders' transport. Raises FileError."""
    transports = {
        group.transport.SerializeToString(deterministic=True) for group in specimen.senders
    }
    transport = specimen.senders[0].transport
    settings = {each.name: each.value for each in transport.parameters}
    keeps_state = settings.pop("keep_state", 0) != 0
    is_tcp = transport.name == "tcp" and transport.variant in ("", "rfc")
    is_known = is_tcp or transport.name in ("", "datagram")
    if len(transports) > 1 or not is_known or settings:
        raise FileError(
            "in ns-3, all senders must use datagram, or tcp with no setting other than keep_state"
        )
    return [f"--transport={transport.name or 'datagram'}", f"--keep-state={int(keeps_state)}"]


def _rules(table: RuleTable) -> str:
    if table.rules != rule_table_pb2.RULES_ABSOLUTE or max(table.signals) >= _SIGNALS:
        raise FileError("ns-3 supports only absolute rules of the four original signals")
    if table.path_model is not None:
        raise FileError(
            "the table has a path model, which the senders in ns-3 do not have; give its rules "
            "alone (remy-farm convert --rules-alone)"
        )
    lines = [f"rules {table.rule_count}"]
    for rule in readable_rules(table):
        bounds = []
        for axis in range(_SIGNALS):
            lower, upper = rule.region.get(
                signal_name(axis, table.rules), (0.0, table.domain_upper)
            )
            bounds += [lower, upper if upper < table.domain_upper else _UNBOUNDED]
        action = (rule.window_multiple, rule.window_increment, rule.intersend_ms)
        lines.append(" ".join(repr(each) for each in (*bounds, *action)))
    return "\n".join(lines) + "\n"


def senders_text(specimen: evaluation_pb2.Specimen, seconds: float) -> str:
    """Returns the senders' on periods, or flows, in the scenario's format. Raises FileError."""
    lines = [f"senders {len(specimen.senders)}"]
    for sender, group in enumerate(specimen.senders):
        pairs: Sequence[tuple[float, float]]
        if group.traffic.HasField("intervals"):
            kind, pairs = "time", _periods(group)
        elif group.transport.name == "tcp" and group.traffic.HasField("exponential_bytes"):
            kind, pairs = "flows", _flows(specimen, sender, seconds)
        else:
            raise FileError(
                "ns-3 supports exponential on periods, and on tcp also exponential bytes"
            )
        numbers = [f"{first!r} {second!r}" for first, second in pairs]
        lines.append(" ".join([kind, str(len(pairs)), *numbers]))
    return "\n".join(lines) + "\n"


def _periods(group: evaluation_pb2.SenderGroup) -> list[tuple[float, float]]:
    intervals = group.traffic.intervals
    is_open = len(intervals.end_ms) < len(intervals.begin_ms)
    ends_ms = [*intervals.end_ms, *([_NEVER_MS] if is_open else [])]
    return list(zip(intervals.begin_ms, ends_ms, strict=True))


#: A time after the end of every study.
_NEVER_MS = 1e9


def _flows(
    specimen: evaluation_pb2.Specimen, sender: int, seconds: float
) -> list[tuple[float, int]]:
    """Returns (off time before it in ms, packets) of each flow that a sender may start in time."""
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
    """Returns each sender's time on, its equal-share time on, and its first start, all in ms.

    The equal-share time on weighs each instant with 1 / (senders that are on).
    """
    periods = [[(begin, min(end, end_ms)) for begin, end in each if begin < end_ms] for each in on]
    edges = sorted({edge for each in periods for period in each for edge in period})
    on_ms, share_ms = [0.0] * len(periods), [0.0] * len(periods)
    for low, high in itertools.pairwise(edges):
        active = [
            sender
            for sender, each in enumerate(periods)
            if any(begin <= low < end for begin, end in each)
        ]
        for sender in active:
            on_ms[sender] += high - low
            share_ms[sender] += (high - low) / len(active)
    return on_ms, share_ms, [each[0][0] if each else end_ms for each in periods]
