"""The fixed-point arithmetic against the simulator's own: the same ACKs, one after another, and
look-ups at every threshold, replayed by both."""

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
from remy_simulator.messages import USUAL_AXES

#: What kernel/replay.c reads for each ACK, and what it answers.
_RECORD: Final = struct.Struct("=5Q")
_ANSWER: Final = struct.Struct("=3Q")
_START: Final = (0, 0, 0, 0, 0)
_LOOK_UP: Final = 2**64 - 1
_US_PER_MS: Final = 1000
_UNITS_PER_MS: Final = _US_PER_MS << TIME_BITS
_LARGEST_WINDOW: Final = 1e6
# What kernel/replay.h applies rules to, and the RTT and rec_ewma that they then find.
_LOOK_UP_WINDOW: Final = 500_000
_LOOK_UP_RTT_US: Final = 100_000
_LOOK_UP_REC_US: Final = 1
_FIRST_US: Final = 1_000_000_000
_AGE: Final = 1
_RTT_RATIO: Final = 2
# Beyond every threshold.
_HIGHEST: Final = (1 << 40) - 1
_MOST_PACKETS_AN_ACK: Final = 16
_CHAIN: Final = 400
# ACKs in which a sender's memory is led to a threshold.
_APPROACH: Final = 12
_OLDEST: Final = 200
_RANDOM: Final = 8
_UNEVEN: Final = 0.05
_UNEVEN_US: Final = 20
# A whole us, in smallest RTTs up to this, is told from a tie at a threshold of rtt_ratio.
_RTT_TIE: Final = 1e-6
# Of an interval: what changes a ratio of EWMAs by more than its last bits.
_TELLABLE_SHARE: Final = 1e-5

#: Stated bounds: signals closer to a threshold than this share of themselves are ties, where either
#: rule is right, and in what share of the ACKs that may be so; windows in packets and in what share
#: of the ACKs those of scale-free rules may differ at all; intervals relative to the simulator's.
TIE_SHARE: Final = 1e-6
MOST_TIES_SHARE: Final = 1e-4
MOST_WINDOW_PACKETS: Final = 1
MOST_WINDOWS_SHARE: Final = 1e-3
MOST_INTERVAL_SHARE: Final = 2e-6

Record = tuple[int, int, int, int, int]
#: Answers to encoded records, by whatever computes in integers.
Replay = Callable[[bytes], bytes]


class ReplayError(FileError):
    """The fixed-point arithmetic cannot be run here; one sentence."""


@dataclass(frozen=True)
class Differences:
    """What two arithmetics did differently with the same records."""

    records: int
    #: In what share of them windows may differ.
    most_windows_share: float
    rules_different: int
    ties: int
    windows_different: int
    largest_window_difference: int
    largest_interval_share: float
    rules_not_looked_up: tuple[int, ...]
    rules_not_used_by_acks: tuple[int, ...]

    @property
    def is_same(self) -> bool:
        """Whether no rule differs but in ties, and the rest is within the stated bounds."""
        return (
            self.rules_different == 0
            and self.ties <= self.records * MOST_TIES_SHARE
            and self.largest_window_difference <= MOST_WINDOW_PACKETS
            and self.windows_different <= self.records * self.most_windows_share
            and self.largest_interval_share <= MOST_INTERVAL_SHARE
        )


def compare(table: IntegerTable, replay: Replay, *, vectors: int, seed: int) -> Differences:
    """Has `replay` compute what the simulator does, on `vectors` records that `seed` names."""
    records = list(islice(_records(table, seed), vectors))
    answers = list(_ANSWER.iter_unpack(replay(b"".join(_RECORD.pack(*each) for each in records))))
    if len(answers) != len(records):
        raise ReplayError(f"{len(records)} ACKs were replayed and {len(answers)} answers came")
    native = _forgetful(table.table)
    only_absolute = start_rule(native)
    acks = [record for record in records if record[0] != _LOOK_UP]
    sent_ms, received_ms, rtt_ms = (
        [record[place] / _US_PER_MS for record in acks] for place in (1, 2, 3)
    )
    packets = [record[0] for record in acks]
    acted = native.replay(sent_ms=sent_ms, received_ms=received_ms, rtt_ms=rtt_ms, packets=packets)
    by_acks = zip(
        acted.rules, acted.windows_packets, acted.intersends_ms, acted.memories, strict=True
    )
    rules = ties = windows = furthest_window = 0
    furthest_interval = 0.0
    looked_up, used = set(), set()
    is_astray = False
    for record, (rule, window, interval) in zip(records, answers, strict=True):
        if record[0] == _LOOK_UP:
            right = native.find(_signals(table, record))
            looked_up.add(right)
            # Where nothing is measured it is applied by its own action, as ACKs do.
            if rule == right == only_absolute:
                continue
            right_window, right_ms = _applied(table, right)
        else:
            right, right_window, right_ms, memory = next(by_acks)
            used.add(right)
            # What follows a tie is as it is until sending begins anew.
            is_astray = (is_astray and record != _START) or _is_tie(native, memory, rule, right)
            if is_astray:
                ties += rule != right
                continue
        rules += rule != right
        windows += window != right_window
        furthest_window = max(furthest_window, abs(window - right_window))
        right_interval = right_ms * _UNITS_PER_MS
        # Half a unit is what writing it down costs.
        apart = max(abs(interval - right_interval) - 0.5, 0.0)
        furthest_interval = max(furthest_interval, apart / max(right_interval, 1.0))
    everything = range(native.rule_count)
    return Differences(
        len(records),
        MOST_WINDOWS_SHARE if table.is_scale_free else 0.0,
        rules,
        ties,
        windows,
        furthest_window,
        furthest_interval,
        tuple(rule for rule in everything if rule not in looked_up),
        tuple(rule for rule in everything if rule not in used),
    )


def _forgetful(table: RuleTable) -> RuleTable:
    """The table without memory of the last on period: connections begin with nothing in a kernel,
    and go on after idle times with what they had."""
    if not table.is_scale_free:
        return table
    return RuleTable(
        table.signals, table.nodes(), table.domain_upper, rule_table_pb2.RULES_SCALE_FREE
    )


def _is_tie(table: RuleTable, memory: Sequence[float], found: int, right: int) -> bool:
    """Whether both rules are right within the resolution of the signals."""
    if found == right:
        return False
    lower, upper = table.region(found)
    return all(
        low <= value * (1 + TIE_SHARE) and value * (1 - TIE_SHARE) < high
        for value, low, high in zip(memory, lower[:USUAL_AXES], upper[:USUAL_AXES], strict=True)
    )


def _applied(table: IntegerTable, rule: int) -> tuple[int, float]:
    """The window and the interval in ms that a rule sets where look-ups are replayed."""
    multiple, increment, intersend = table.table.action(rule)
    if table.is_scale_free:
        increment *= _LOOK_UP_RTT_US / (100 * _LOOK_UP_REC_US)
        intersend *= _LOOK_UP_REC_US / _US_PER_MS
    window = _LOOK_UP_WINDOW * multiple + increment
    return int(min(max(window, 0.0), _LARGEST_WINDOW)), intersend


def _signals(table: IntegerTable, record: Record) -> tuple[float, ...]:
    def value(axis: int) -> float:
        is_ratio = table.is_scale_free or axis == _RTT_RATIO
        return record[axis + 1] / (1 << RATIO_BITS if is_ratio else _UNITS_PER_MS)

    return tuple(map(value, range(USUAL_AXES)))


def _records(table: IntegerTable, seed: int) -> Iterator[Record]:
    """Look-ups at, just below and just above every threshold, and of every rule; ACKs that lead to
    each of these places; then ACKs of random networks, without end."""
    yield from _look_ups(table)
    number = 0
    for place in _places(table):
        number += 1
        yield from _approach(table, place, uniforms(seed, number * _CHAIN, _CHAIN, 1))
    while True:
        number += 1
        yield from _random_chain(
            table, uniforms(seed, number * _CHAIN * _RANDOM, _CHAIN * _RANDOM, 2)
        )


@dataclass(frozen=True)
class _Place:
    """A place in memory space, in units: on a threshold of one axis, or inside of a rule's region
    with no axis."""

    axis: int | None
    values: tuple[int, ...]


def _places(table: IntegerTable) -> Iterator[_Place]:
    """On every threshold, in the middle of its node's other axes; in the middle and at the lower
    corner of every rule."""

    def below(number: int, lower: tuple[int, ...], upper: tuple[int, ...]) -> Iterator[_Place]:
        if number < 0:
            yield _Place(None, _middle(lower, upper))
            yield _Place(None, lower)
            return
        node = table.nodes[number]
        divided = [axis for axis, value in enumerate(node.thresholds) if value != UNREACHED]
        middle = _middle(lower, upper)
        for axis in divided:
            on_threshold = (*middle[:axis], node.thresholds[axis], *middle[axis + 1 :])
            yield _Place(axis, on_threshold)
        for orthant, child in enumerate(node.children):
            if orthant & ~sum(1 << axis for axis in divided):
                continue
            low, high = list(lower), list(upper)
            for axis in divided:
                (low if orthant >> axis & 1 else high)[axis] = node.thresholds[axis]
            yield from below(child, tuple(low), tuple(high))

    yield from below(0, (0,) * 4, (_HIGHEST,) * 4)


def _middle(lower: tuple[int, ...], upper: tuple[int, ...]) -> tuple[int, ...]:
    # Of regions without an end, not far from their beginning.
    return tuple(
        low + low // 4 + 1 if high == _HIGHEST else (low + high) // 2
        for low, high in zip(lower, upper, strict=True)
    )


def _look_ups(table: IntegerTable) -> Iterator[Record]:
    # They apply rules to what is measured, which is easily told apart: many packets in an RTT.
    yield _START
    yield (1, _FIRST_US, _FIRST_US, _LOOK_UP_RTT_US, 0)
    after_us = _FIRST_US + (1 if table.looks_at_age else 8) * _LOOK_UP_REC_US
    yield (1, after_us, after_us, _LOOK_UP_RTT_US, 0)
    for place in _places(table):
        for step in (0,) if place.axis is None else (-1, 0, 1):
            values = list(place.values)
            if place.axis is not None:
                values[place.axis] = max(values[place.axis] + step, 0)
            yield (_LOOK_UP, values[0], values[1], values[2], values[3])


class _Steered:
    """A sender's memory in floating point, and the ACKs that bring it close to a place."""

    def __init__(self, table: IntegerTable) -> None:
        self._is_scale_free = table.is_scale_free
        self._looks_at_age = table.looks_at_age
        self._age = 0
        self._rtt_thresholds = sorted(
            {node.thresholds[_RTT_RATIO] / (1 << RATIO_BITS) for node in table.nodes}
        )
        self._send = self._rec = self._slow = 0.0
        self._sent_us = self._received_us = _FIRST_US
        self._least_us = 0

    def ack(self, packets: int, sent_us: float, received_us: float, rtt_us: float) -> Record:
        """An ACK after such whole intervals a packet."""
        sent, received = (max(round(each), 0) * packets for each in (sent_us, received_us))
        rtt = max(round(rtt_us), 1)
        while any(
            abs(rtt - threshold * self._least_us) < self._least_us * _RTT_TIE
            for threshold in self._rtt_thresholds
        ):
            rtt += 1
        if self._least_us:
            self._age += packets
            share = packets / self._age if self._looks_at_age else 0.0
            self._send += (sent / packets - self._send) * max(share, 1 / 8)
            self._rec += (received / packets - self._rec) * max(share, 1 / 8)
            self._slow += (received / packets - self._slow) * max(share, 1 / 256)
        self._least_us = min(self._least_us or rtt, rtt)
        self._sent_us += sent
        self._received_us += received
        return (packets, self._sent_us, self._received_us, rtt, 0)

    def towards(self, place: _Place, packets: int, off_us: float) -> Record:
        """An ACK that leaves the signal at its threshold, but for what whole us allow."""
        scale = 1 << (RATIO_BITS if self._is_scale_free else TIME_BITS)
        goal = [value / scale for value in place.values]
        ratio = place.values[_RTT_RATIO] / (1 << RATIO_BITS)
        longest = 1_000_000.0
        if self._is_scale_free:
            wanted = goal[3]
            slope = wanted / 8 - 1 / 256
            received = (
                (255 / 256 * self._slow - wanted * 7 / 8 * self._rec) / slope
                if abs(slope) > 1e-9 and place.axis == 3
                else self._rec
            )
            received = min(max(received, 0.0), longest)
            sent = 8 * goal[0] * (7 * self._rec + received) / 8 - 7 * self._send
        else:
            received = 8 * goal[1] - 7 * self._rec
            if place.axis == 3:
                received = 256 * goal[3] - 255 * self._slow
            sent = 8 * goal[0] - 7 * self._send
        received, sent = (min(max(each, 0.0), longest) for each in (received, sent))
        rtt = min(ratio * self._least_us, longest)
        if place.axis == _RTT_RATIO:
            rtt += off_us
        elif place.axis == 0:
            sent += off_us * (1 + sent * _TELLABLE_SHARE)
        else:
            received += off_us * (1 + received * _TELLABLE_SHARE)
        return self.ack(packets, sent, received, max(rtt, self._least_us))


def _approach(table: IntegerTable, place: _Place, draws: list[float]) -> Iterator[Record]:
    steered = _Steered(table)
    yield _START
    least_us = 1000 * power(300.0, draws[0])
    interval_us = 20 * power(2000.0, draws[1])
    yield steered.ack(1, interval_us, interval_us, least_us)
    # Old enough that slow_rec_ewma says something. A pace that is perfectly even comes by the ages
    # that tables of scale-free rules begin with, which are ties.
    oldest = int(draws[2] * _OLDEST)
    if table.looks_at_age:
        oldest = min(max((place.values[_AGE] >> RATIO_BITS) - _APPROACH, 0), _CHAIN - _APPROACH)
    for step in range(oldest):
        uneven_us = interval_us + (_UNEVEN_US + _UNEVEN * interval_us) * draws[step]
        yield steered.ack(1, uneven_us, uneven_us, least_us)
    for step in range(_APPROACH):
        # Beyond the resolution of either arithmetic: a tie at a threshold has no right answer.
        off_us = -1.5 if step % 2 else 1.5
        yield steered.towards(place, 1 + int(draws[3 + step] * _MOST_PACKETS_AN_ACK), off_us)


def _random_chain(table: IntegerTable, draws: list[float]) -> Iterator[Record]:
    steered = _Steered(table)
    yield _START
    interval_us = 5 * power(20_000.0, draws[0])
    rtt_us = 500 * power(600.0, draws[1])
    noise = 0.01 + draws[2] * draws[2]
    queue_us = 0.0
    for step in range(1, _CHAIN):
        spread, pace, many, walk, phase = draws[step * _RANDOM : step * _RANDOM + 5]
        packets = 1 + int(power(float(_MOST_PACKETS_AN_ACK), many)) if phase < 0.3 else 1
        packets = min(packets, _MOST_PACKETS_AN_ACK)
        queue_us = max(queue_us + (walk - 0.49) * interval_us * 4, 0.0)
        yield steered.ack(
            packets,
            interval_us + (5 + noise * interval_us) * 2 * pace,
            interval_us + (5 + noise * interval_us) * 2 * spread,
            rtt_us + queue_us,
        )


def compiled_replay(header: str, folder: Path) -> Replay:
    """A replay by a plain C build of an exported header. Raises ReplayError where there is no C
    compiler."""
    (folder / "remy_table.h").write_text(header, encoding="utf-8")
    program = folder / "replay"
    words = [*c_compiler(), "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wno-long-long"]
    words += ["-Werror", f"-DREMY_HEADER=<{folder / 'remy_table.h'}>"]
    build = subprocess.run(
        [*words, str(SOURCES / "replay.c"), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    if build.returncode:
        raise ReplayError(f"the exported header does not compile: {build.stderr.strip()}")

    def replay(records: bytes) -> bytes:
        done = subprocess.run([str(program)], input=records, capture_output=True, check=False)
        if done.returncode:
            raise ReplayError(f"the compiled header ended with status {done.returncode}")
        return done.stdout

    return replay


def c_compiler() -> list[str]:
    """The C compiler and its flags: $CC, or the first of the usual names. Raises ReplayError."""
    if words := shlex.split(os.environ.get("CC", "")):
        return words
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [found]
    raise ReplayError("there is no C compiler; install gcc or clang, or name one in CC")


def compare_compiled(
    table: IntegerTable, header: str, *, vectors: int = 100_000, seed: int = 1
) -> Differences:
    """A plain C build of the header against the simulator. Raises ReplayError."""
    with TemporaryDirectory(prefix="remy-farm-") as folder:
        return compare(table, compiled_replay(header, Path(folder)), vectors=vectors, seed=seed)
