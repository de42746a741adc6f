"""Compares the fixed-point arithmetic with the simulator's floating-point arithmetic.

Both replay the same sequences of ACKs, and look-ups at every threshold.
"""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from remy_farm.files import FileError
from remy_farm.remycc import start_rule
from remy_laboratory.kernel.fixed_point import (
    RATIO_BITS,
    SOURCES,
    TIME_BITS,
    UNREACHED,
    IntegerTable,
)
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable, power, uniforms
from remy_simulator.messages import BASIC_AXES

#: Formats of a record that kernel/replay.c reads for each ACK, and of its answer.
_RECORD: Final = struct.Struct("=5Q")
_ANSWER: Final = struct.Struct("=3Q")
_START: Final = (0, 0, 0, 0, 0)
_LOOK_UP: Final = 2**64 - 1
_US_PER_MS: Final = 1000
_UNITS_PER_MS: Final = _US_PER_MS << TIME_BITS
_MAX_WINDOW: Final = 1e6
# State in which kernel/replay.h applies the rules of look-ups: window, RTT and rec_ewma.
_LOOK_UP_WINDOW: Final = 500_000
_LOOK_UP_RTT_US: Final = 100_000
_LOOK_UP_REC_US: Final = 1
_FIRST_US: Final = 1_000_000_000
_AGE: Final = 1
_RTT_RATIO: Final = 2
# Above every threshold.
_HIGHEST: Final = (1 << 40) - 1
_MAX_PACKETS_PER_ACK: Final = 16
_ACKS_PER_CONNECTION: Final = 400
# ACKs that steer a sender's memory to a point.
_STEERING_ACKS: Final = 12
_MAX_EARLIER_ACKS: Final = 200
_DRAWS_PER_ACK: Final = 8
# Random variation of packet intervals, relative and absolute.
_INTERVAL_VARIATION: Final = 0.05
_INTERVAL_VARIATION_US: Final = 20
# RTTs that are closer than this to a threshold of rtt_ratio, in minimum RTTs, are ties.
_RTT_TIE: Final = 1e-6
# A relative change of an interval that changes a ratio of EWMAs by more than its last bits.
_MIN_INTERVAL_CHANGE: Final = 1e-5

#: Bounds of the comparison. A signal that is closer to a threshold than TIE_SHARE of its value is a
#: tie, for which either rule is correct. MAX_TIES_SHARE bounds the share of ACKs with ties, and
#: MAX_WINDOW_PACKETS the difference of two windows. Windows of scale-free rules may differ for a
#: share of MAX_WINDOWS_SHARE of the ACKs. MAX_INTERVAL_SHARE bounds relative differences of pacing
#: intervals.
TIE_SHARE: Final = 1e-6
MAX_TIES_SHARE: Final = 1e-4
MAX_WINDOW_PACKETS: Final = 1
MAX_WINDOWS_SHARE: Final = 1e-3
MAX_INTERVAL_SHARE: Final = 2e-6

Record = tuple[int, int, int, int, int]
#: A function that computes the answers to encoded records in integer arithmetic.
Replay = Callable[[bytes], bytes]


class ReplayError(FileError):
    """The fixed-point arithmetic cannot be run on this machine; the text is one sentence."""


@dataclass(frozen=True)
class Differences:
    """Differences between two arithmetics that replayed the same records."""

    records: int
    #: The share of records in which windows may differ.
    max_windows_share: float
    rules_different: int
    ties: int
    windows_different: int
    largest_window_difference: int
    largest_interval_share: float
    rules_not_looked_up: tuple[int, ...]
    rules_not_used_by_acks: tuple[int, ...]

    @property
    def is_same(self) -> bool:
        """Whether rules differ only in ties, and everything else is within the stated bounds."""
        return (
            self.rules_different == 0
            and self.ties <= self.records * MAX_TIES_SHARE
            and self.largest_window_difference <= MAX_WINDOW_PACKETS
            and self.windows_different <= self.records * self.max_windows_share
            and self.largest_interval_share <= MAX_INTERVAL_SHARE
        )


def compare(table: IntegerTable, replay: Replay, *, vectors: int, seed: int) -> Differences:
    """Compares `replay` with the simulator on `vectors` records, which `seed` determines."""
    records = list(islice(_records(table, seed), vectors))
    answers = list(_ANSWER.iter_unpack(replay(b"".join(_RECORD.pack(*each) for each in records))))
    if len(answers) != len(records):
        raise ReplayError(f"{len(records)} records were replayed, but {len(answers)} answers came")
    native = _without_start_memory(table.table)
    absolute_only = start_rule(native)
    acks = [record for record in records if record[0] != _LOOK_UP]
    sent_ms, received_ms, rtt_ms = (
        [record[field] / _US_PER_MS for record in acks] for field in (1, 2, 3)
    )
    packets = [record[0] for record in acks]
    replayed = native.replay(
        sent_ms=sent_ms, received_ms=received_ms, rtt_ms=rtt_ms, packets=packets
    )
    expected_by_ack = zip(
        replayed.rules,
        replayed.windows_packets,
        replayed.intersends_ms,
        replayed.memories,
        strict=True,
    )
    different_rules = ties = different_windows = largest_window = 0
    largest_interval = 0.0
    looked_up, used = set(), set()
    has_diverged = False
    for record, (rule, window, interval) in zip(records, answers, strict=True):
        if record[0] == _LOOK_UP:
            expected = native.find(_signals(table, record))
            looked_up.add(expected)
            # A start rule is applied only before anything is measured, so its action is not
            # compared.
            if rule == expected == absolute_only:
                continue
            expected_window, expected_ms = _apply_rule(table, expected)
        else:
            expected, expected_window, expected_ms, memory = next(expected_by_ack)
            used.add(expected)
            # After a tie the two states differ until the next start record.
            has_diverged = (has_diverged and record != _START) or _is_tie(
                native, memory, rule, expected
            )
            if has_diverged:
                ties += rule != expected
                continue
        different_rules += rule != expected
        different_windows += window != expected_window
        largest_window = max(largest_window, abs(window - expected_window))
        expected_interval = expected_ms * _UNITS_PER_MS
        # Rounding to whole units may differ by half a unit.
        difference = max(abs(interval - expected_interval) - 0.5, 0.0)
        largest_interval = max(largest_interval, difference / max(expected_interval, 1.0))
    all_rules = range(native.rule_count)
    return Differences(
        len(records),
        MAX_WINDOWS_SHARE if table.is_scale_free else 0.0,
        different_rules,
        ties,
        different_windows,
        largest_window,
        largest_interval,
        tuple(rule for rule in all_rules if rule not in looked_up),
        tuple(rule for rule in all_rules if rule not in used),
    )


def _without_start_memory(table: RuleTable) -> RuleTable:
    """Returns the table without memory of the last on period.

    In a kernel a connection starts without measurements, and keeps them across idle times.
    """
    if not table.is_scale_free:
        return table
    return RuleTable(
        table.signals, table.nodes(), table.domain_upper, rule_table_pb2.RULES_SCALE_FREE
    )


def _is_tie(table: RuleTable, memory: Sequence[float], rule: int, expected: int) -> bool:
    """Returns whether two different rules are both correct within the signals' resolution."""
    if rule == expected:
        return False
    lower, upper = table.region(rule)
    return all(
        low <= value * (1 + TIE_SHARE) and value * (1 - TIE_SHARE) < high
        for value, low, high in zip(memory, lower[:BASIC_AXES], upper[:BASIC_AXES], strict=True)
    )


def _apply_rule(table: IntegerTable, rule: int) -> tuple[int, float]:
    """Returns the window and the interval in ms that a rule sets in the state of look-ups."""
    multiple, increment, intersend = table.table.action(rule)
    if table.is_scale_free:
        increment *= _LOOK_UP_RTT_US / (100 * _LOOK_UP_REC_US)
        intersend *= _LOOK_UP_REC_US / _US_PER_MS
    window = _LOOK_UP_WINDOW * multiple + increment
    return int(min(max(window, 0.0), _MAX_WINDOW)), intersend


def _signals(table: IntegerTable, record: Record) -> tuple[float, ...]:
    def value(axis: int) -> float:
        is_ratio = table.is_scale_free or axis == _RTT_RATIO
        return record[axis + 1] / (1 << RATIO_BITS if is_ratio else _UNITS_PER_MS)

    return tuple(map(value, range(BASIC_AXES)))


def _records(table: IntegerTable, seed: int) -> Iterator[Record]:
    """Yields look-ups, then ACKs that lead to each of `_memory_points`, then random ACKs forever.

    The look-ups are at, just below and just above every threshold, and inside every rule.
    """
    yield from _look_ups(table)
    number = 0
    for point in _memory_points(table):
        number += 1
        yield from _connection_to(
            table, point, uniforms(seed, number * _ACKS_PER_CONNECTION, _ACKS_PER_CONNECTION, 1)
        )
    while True:
        number += 1
        yield from _random_connection(
            table,
            uniforms(
                seed,
                number * _ACKS_PER_CONNECTION * _DRAWS_PER_ACK,
                _ACKS_PER_CONNECTION * _DRAWS_PER_ACK,
                2,
            ),
        )


@dataclass(frozen=True)
class _MemoryPoint:
    """A point in memory space, in fixed-point units.

    It lies on a threshold of `axis`, or inside a rule's region if `axis` is None.
    """

    axis: int | None
    values: tuple[int, ...]


def _memory_points(table: IntegerTable) -> Iterator[_MemoryPoint]:
    """Yields a point on every threshold, centred in its node's other axes, and the centre and lower
    corner of every rule."""

    def subtree_points(
        number: int, lower: tuple[int, ...], upper: tuple[int, ...]
    ) -> Iterator[_MemoryPoint]:
        if number < 0:
            yield _MemoryPoint(None, _middle(lower, upper))
            yield _MemoryPoint(None, lower)
            return
        node = table.nodes[number]
        split_axes = [axis for axis, value in enumerate(node.thresholds) if value != UNREACHED]
        middle = _middle(lower, upper)
        for axis in split_axes:
            on_threshold = (*middle[:axis], node.thresholds[axis], *middle[axis + 1 :])
            yield _MemoryPoint(axis, on_threshold)
        for orthant, child in enumerate(node.children):
            if orthant & ~sum(1 << axis for axis in split_axes):
                continue
            low, high = list(lower), list(upper)
            for axis in split_axes:
                (low if orthant >> axis & 1 else high)[axis] = node.thresholds[axis]
            yield from subtree_points(child, tuple(low), tuple(high))

    yield from subtree_points(0, (0,) * 4, (_HIGHEST,) * 4)


def _middle(lower: tuple[int, ...], upper: tuple[int, ...]) -> tuple[int, ...]:
    # For an unbounded region, returns a point near the lower bound.
    return tuple(
        low + low // 4 + 1 if high == _HIGHEST else (low + high) // 2
        for low, high in zip(lower, upper, strict=True)
    )


def _look_ups(table: IntegerTable) -> Iterator[Record]:
    # In this state, the window and interval of every rule differ clearly: an RTT has many packets.
    yield _START
    yield (1, _FIRST_US, _FIRST_US, _LOOK_UP_RTT_US, 0)
    after_us = _FIRST_US + (1 if table.uses_age else 8) * _LOOK_UP_REC_US
    yield (1, after_us, after_us, _LOOK_UP_RTT_US, 0)
    for point in _memory_points(table):
        for step in (0,) if point.axis is None else (-1, 0, 1):
            values = list(point.values)
            if point.axis is not None:
                values[point.axis] = max(values[point.axis] + step, 0)
            yield (_LOOK_UP, values[0], values[1], values[2], values[3])


class _SteeredSender:
    """A sender's memory in floating point, which generates ACKs that move it to a given point."""

    def __init__(self, table: IntegerTable) -> None:
        self._is_scale_free = table.is_scale_free
        self._uses_age = table.uses_age
        self._age = 0
        self._rtt_thresholds = sorted(
            {node.thresholds[_RTT_RATIO] / (1 << RATIO_BITS) for node in table.nodes}
        )
        self._send = self._rec = self._slow = 0.0
        self._sent_us = self._received_us = _FIRST_US
        self._min_rtt_us = 0

    def ack(self, packets: int, sent_us: float, received_us: float, rtt_us: float) -> Record:
        """Returns an ACK of `packets` packets, with intervals per packet rounded to whole us."""
        sent, received = (max(round(interval), 0) * packets for interval in (sent_us, received_us))
        rtt = max(round(rtt_us), 1)
        while any(
            abs(rtt - threshold * self._min_rtt_us) < self._min_rtt_us * _RTT_TIE
            for threshold in self._rtt_thresholds
        ):
            rtt += 1
        if self._min_rtt_us:
            self._age += packets
            share = packets / self._age if self._uses_age else 0.0
            self._send += (sent / packets - self._send) * max(share, 1 / 8)
            self._rec += (received / packets - self._rec) * max(share, 1 / 8)
            self._slow += (received / packets - self._slow) * max(share, 1 / 256)
        self._min_rtt_us = min(self._min_rtt_us or rtt, rtt)
        self._sent_us += sent
        self._received_us += received
        return (packets, self._sent_us, self._received_us, rtt, 0)

    def towards(self, point: _MemoryPoint, packets: int, offset_us: float) -> Record:
        """Returns an ACK that moves the memory to a point, as closely as whole us allow."""
        scale = 1 << (RATIO_BITS if self._is_scale_free else TIME_BITS)
        goal = [value / scale for value in point.values]
        ratio = point.values[_RTT_RATIO] / (1 << RATIO_BITS)
        max_us = 1_000_000.0
        if self._is_scale_free:
            target = goal[3]
            slope = target / 8 - 1 / 256
            received = (
                (255 / 256 * self._slow - target * 7 / 8 * self._rec) / slope
                if abs(slope) > 1e-9 and point.axis == 3
                else self._rec
            )
            received = min(max(received, 0.0), max_us)
            sent = 8 * goal[0] * (7 * self._rec + received) / 8 - 7 * self._send
        else:
            received = 8 * goal[1] - 7 * self._rec
            if point.axis == 3:
                received = 256 * goal[3] - 255 * self._slow
            sent = 8 * goal[0] - 7 * self._send
        received, sent = (min(max(interval, 0.0), max_us) for interval in (received, sent))
        rtt = min(ratio * self._min_rtt_us, max_us)
        if point.axis == _RTT_RATIO:
            rtt += offset_us
        elif point.axis == 0:
            sent += offset_us * (1 + sent * _MIN_INTERVAL_CHANGE)
        else:
            received += offset_us * (1 + received * _MIN_INTERVAL_CHANGE)
        return self.ack(packets, sent, received, max(rtt, self._min_rtt_us))


def _connection_to(
    table: IntegerTable, point: _MemoryPoint, draws: list[float]
) -> Iterator[Record]:
    sender = _SteeredSender(table)
    yield _START
    min_rtt_us = 1000 * power(300.0, draws[0])
    interval_us = 20 * power(2000.0, draws[1])
    yield sender.ack(1, interval_us, interval_us, min_rtt_us)
    # Earlier ACKs make slow_rec_ewma meaningful. Their intervals vary, because constant intervals
    # would hit the age thresholds of scale-free tables exactly, which are ties.
    earlier_acks = int(draws[2] * _MAX_EARLIER_ACKS)
    if table.uses_age:
        age = point.values[_AGE] >> RATIO_BITS
        earlier_acks = min(max(age - _STEERING_ACKS, 0), _ACKS_PER_CONNECTION - _STEERING_ACKS)
    for step in range(earlier_acks):
        varied_us = (
            interval_us + (_INTERVAL_VARIATION_US + _INTERVAL_VARIATION * interval_us) * draws[step]
        )
        yield sender.ack(1, varied_us, varied_us, min_rtt_us)
    for step in range(_STEERING_ACKS):
        # The offset exceeds the resolution of both arithmetics, so that no ACK is a tie.
        offset_us = -1.5 if step % 2 else 1.5
        yield sender.towards(point, 1 + int(draws[3 + step] * _MAX_PACKETS_PER_ACK), offset_us)


def _random_connection(table: IntegerTable, draws: list[float]) -> Iterator[Record]:
    sender = _SteeredSender(table)
    yield _START
    interval_us = 5 * power(20_000.0, draws[0])
    rtt_us = 500 * power(600.0, draws[1])
    noise = 0.01 + draws[2] * draws[2]
    queue_us = 0.0
    for step in range(1, _ACKS_PER_CONNECTION):
        first = step * _DRAWS_PER_ACK
        spread, pace, many, walk, phase = draws[first : first + 5]
        packets = 1 + int(power(float(_MAX_PACKETS_PER_ACK), many)) if phase < 0.3 else 1
        packets = min(packets, _MAX_PACKETS_PER_ACK)
        queue_us = max(queue_us + (walk - 0.49) * interval_us * 4, 0.0)
        yield sender.ack(
            packets,
            interval_us + (5 + noise * interval_us) * 2 * pace,
            interval_us + (5 + noise * interval_us) * 2 * spread,
            rtt_us + queue_us,
        )


def compiled_replay(header: str, folder: Path) -> Replay:
    """Compiles an exported header with the plain C replay program and returns its replay function.

    Raises ReplayError if there is no C compiler.
    """
    (folder / "remy_table.h").write_text(header, encoding="utf-8")
    program = folder / "replay"
    command = [*c_compiler(), "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wno-long-long"]
    command += ["-Werror", f"-DREMY_HEADER=<{folder / 'remy_table.h'}>"]
    build = subprocess.run(
        [*command, str(SOURCES / "replay.c"), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    if build.returncode:
        raise ReplayError(f"the exported header does not compile: {build.stderr.strip()}")

    def replay(records: bytes) -> bytes:
        result = subprocess.run([str(program)], input=records, capture_output=True, check=False)
        if result.returncode:
            raise ReplayError(f"the compiled header exited with status {result.returncode}")
        return result.stdout

    return replay


def c_compiler() -> list[str]:
    """Returns the C compiler and its flags: $CC, or cc, gcc or clang. Raises ReplayError."""
    if command := shlex.split(os.environ.get("CC", "")):
        return command
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [path]
    raise ReplayError("no C compiler is installed; install gcc or clang, or set CC")


def compare_compiled(
    table: IntegerTable, header: str, *, vectors: int = 100_000, seed: int = 1
) -> Differences:
    """Compares a plain C build of the header with the simulator. Raises ReplayError."""
    with TemporaryDirectory(prefix="remy-farm-") as folder:
        return compare(table, compiled_replay(header, Path(folder)), vectors=vectors, seed=seed)
