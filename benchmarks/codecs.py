"""Compares the simulator's own Protocol Buffers codec with the generated one."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.benchmark import Benchmark, Row
from benchmarks.programs import REMY_FARM, REMY_SIMULATE, network_flags
from benchmarks.tables import ABSOLUTE
from remy_proto.dna.v1 import dna_pb2
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import axis_of, native_action

_TABLE = ABSOLUTE / "general-purpose-delta1" / "remycc.dna"
_PROGRAM_RUNS = 5
_ROUNDS = 9
_CALLS_PER_ROUND = 30


def measure() -> list[Row]:
    """Returns one row per comparison."""
    encoded = _TABLE.read_bytes()
    table, _ = RuleTable.from_dna(encoded)
    message = table.to_message()
    assert _from_generated(message) == table
    flags = network_flags(
        remycc=_TABLE, senders=1, rate_mbps=1, rtt_ms=100, on_ms=1, off_ms=1, seconds=0.001
    )
    return [
        _row(
            "start, read the .dna, simulate 1 ms",
            *("remy-simulate", _seconds_per_process([REMY_SIMULATE, *flags])),
            *("remy-farm simulate", _seconds_per_process([REMY_FARM, "simulate", *flags])),
        ),
        _row(
            f"table of {table.rule_count} rules from its message",
            *("native", _seconds_per_call(lambda: RuleTable.from_message(message))),
            *("generated code, then objects", _seconds_per_call(lambda: _from_generated(message))),
        ),
        _row(
            f"table of {table.rule_count} rules from its .dna file",
            *("native, all checks", _seconds_per_call(lambda: RuleTable.from_dna(encoded))),
            *("generated code, bare parse", _seconds_per_call(lambda: _parse(encoded))),
        ),
    ]


def _row(what: str, ours: str, seconds: float, other: str, others_seconds: float) -> Row:
    return {
        "what": what,
        "ours": ours,
        "ms": 1000 * seconds,
        "instead": other,
        "ms instead": 1000 * others_seconds,
        "ratio": others_seconds / seconds,
    }


def _seconds_per_process(command: Sequence[str | Path]) -> float:
    """Runs a program repeatedly and returns the median user CPU seconds of all its threads."""
    spent = []
    for _ in range(_PROGRAM_RUNS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        spent.append(usage.ru_utime)
    return statistics.median(spent)


def _seconds_per_call(call: Callable[[], object]) -> float:
    """Returns the CPU seconds of one call, as the median over rounds."""
    spent = []
    for _ in range(_ROUNDS):
        began = time.thread_time()
        for _ in range(_CALLS_PER_ROUND):
            call()
        spent.append((time.thread_time() - began) / _CALLS_PER_ROUND)
    return statistics.median(spent)


def _parse(encoded: bytes) -> dna_pb2.WhiskerTree:
    return dna_pb2.WhiskerTree.FromString(encoded)


def _from_generated(encoded: bytes) -> RuleTable:
    """Builds a table from the generated message classes, without the simulator's own reader."""
    message = rule_table_pb2.RuleTable.FromString(encoded)
    nodes = [
        (
            [(axis_of(each.signal), each.value) for each in node.split.thresholds],
            native_action(node.action),
        )
        for node in message.nodes
    ]
    signals = [axis_of(signal) for signal in message.signals]
    return RuleTable(signals, nodes, message.domain_upper)


BENCHMARK = Benchmark(
    name="codecs",
    title="The simulator's own codec of Protocol Buffers, and the generated one",
    method=(
        "User CPU time of whole processes (getrusage), the median of 5 runs each; CPU time of "
        "the calling thread, the median of 9 rounds of 30 calls, for the general-purpose RemyCC "
        "for delta 1 (tests/data/remyccs-absolute). The ratio is the generated code's time over "
        "the simulator's. The bare parse of a .dna file neither checks the file nor builds a "
        "table; the native reader does both."
    ),
    measure=measure,
)
