"""Checks a table as Linux congestion control before it is loaded: the features of this kernel, by
its BTF, and the table's behaviour with real clocks."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from remy_farm.evaluation.measures import Evaluate, evaluate_table
from remy_farm.files import FileError, read_file
from remy_farm.remycc import start_rule
from remy_farm.specification.distributions import extent, quantile
from remy_farm.specification.links import kilobits_per_packet
from remy_farm.specification.models import models, outline
from remy_laboratory.kernel.fixed_point import IntegerTable, UnsuitableTable
from remy_proto.completion import complete
from remy_proto.v1 import spec_pb2
from remy_simulator import RuleTable

BTF: Final = Path("/sys/kernel/btf/vmlinux")
_MAX_BTF_BYTES: Final = 1 << 28
_RTT_RATIO: Final = 2
_US_PER_MS: Final = 1000
#: RTTs that differ by less than this are equal for a sender's clock, us.
MIN_DISTINGUISHABLE_US: Final = 2.0
#: RTT differences below this are mostly noise on a typical machine, us.
TYPICAL_NOISE_US: Final = 50.0
# Assumed RTT if the networks of the design are unknown.
_LONG_RTT_MS: Final = 1000.0
_JITTERS_MS: Final = (0.0, 0.1, 0.5)
_MAX_SCORE_LOSS_BY_JITTER: Final = 0.3
_MAX_LISTED: Final = 5


@dataclass(frozen=True)
class CheckResult:
    """The result of one check, as a sentence and as values.

    `verdict` is "refused" if the table must not be loaded, "doubtful" if it is likely to perform
    badly, and "fine" otherwise.
    """

    check: str
    verdict: str
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict)


# A type in BTF (Documentation/bpf/btf.rst) begins with three 32-bit words. Depending on its kind, a
# fixed number of words follows, and then a number of words for each of its `vlen` elements.
_HEADER: Final = struct.Struct("<HBBIIIII")
_MAGIC: Final = 0xEB9F
_FIXED_WORDS: Final = {1: 1, 3: 3, 14: 1, 17: 1}
_WORDS_PER_ELEMENT: Final = {4: 3, 5: 3, 6: 2, 13: 2, 15: 3, 19: 3}
_STRUCT, _ENUM, _PTR, _PROTO = 4, 6, 2, 13


class _Btf:
    """The types of a kernel, found by name."""

    def __init__(self, data: bytes) -> None:
        magic, _, _, start, types, types_bytes, strings, _ = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise FileError(f"{BTF} is not the BTF of a little-endian kernel")
        self._words = memoryview(data[start + types : start + types + types_bytes]).cast("I")
        self._strings = data[start + strings :]
        self._offsets = [0, *self._all_offsets()]

    def _all_offsets(self) -> Iterator[int]:
        offset = 0
        while offset < len(self._words):
            yield offset
            info = self._words[offset + 1]
            kind, count = info >> 24 & 0x1F, info & 0xFFFF
            offset += 3 + _FIXED_WORDS.get(kind, 0) + _WORDS_PER_ELEMENT.get(kind, 0) * count

    def _name(self, offset: int) -> str:
        return self._strings[offset : self._strings.index(b"\0", offset)].decode()

    def _kind(self, offset: int) -> int:
        return self._words[offset + 1] >> 24 & 0x1F

    def structs(self, names: frozenset[str]) -> dict[str, dict[str, int]]:
        """Returns the members of these structs, with their type numbers."""
        members = {}
        for offset in self._offsets[1:]:
            if self._kind(offset) == _STRUCT and (name := self._name(self._words[offset])) in names:
                count = self._words[offset + 1] & 0xFFFF
                rows = range(offset + 3, offset + 3 + 3 * count, 3)
                members[name] = {self._name(self._words[row]): self._words[row + 1] for row in rows}
        return members

    def has_enumerator(self, name: str) -> bool:
        """Returns whether any enumeration has a value of this name."""
        name_offset = self._strings.find(f"\0{name}\0".encode()) + 1
        return any(
            self._words[row] == name_offset
            for offset in self._offsets[1:]
            if self._kind(offset) == _ENUM
            for row in range(offset + 3, offset + 3 + 2 * (self._words[offset + 1] & 0xFFFF), 2)
        )

    def parameters(self, pointer: int) -> int:
        """Returns the number of parameters of the function that a pointer type points to."""
        offset = self._offsets[pointer]
        if self._kind(offset) == _PTR:
            offset = self._offsets[self._words[offset + 2]]
        return self._words[offset + 1] & 0xFFFF if self._kind(offset) == _PROTO else 0


_FIELDS: Final = {
    "tcp_sock": {
        "tcp_mstamp",
        "first_tx_mstamp",
        "mss_cache",
        "snd_cwnd",
        "srtt_us",
        "rttvar_us",
        "app_limited",
    },
    "rate_sample": {"acked_sacked", "is_app_limited", "is_retrans"},
    "inet_connection_sock": {"icsk_ca_priv"},
}


def kernel_features(path: Path = BTF) -> dict[str, bool]:
    """Returns which of linux.KERNEL_FEATURES a kernel has. Raises FileError if it has no BTF."""
    try:
        btf = _Btf(read_file(path, limit=_MAX_BTF_BYTES))
    except (struct.error, IndexError, ValueError, TypeError) as error:
        raise FileError(f"{path} is not the BTF of a little-endian kernel") from error
    structs = btf.structs(frozenset({"tcp_congestion_ops", "bpf_struct_ops_link", *_FIELDS}))
    operations = structs.get("tcp_congestion_ops", {})
    return {
        # Before Linux 6.10, cong_control has two parameters.
        "cong_control_with_ack": btf.parameters(operations.get("cong_control", 0)) == 4,
        "struct_ops_links": "bpf_struct_ops_link" in structs,
        "bpf_loop": btf.has_enumerator("BPF_FUNC_loop"),
        "tcp_send_times": all(
            fields <= structs.get(name, {}).keys() for name, fields in _FIELDS.items()
        ),
    }


def check_kernel(path: Path = BTF) -> CheckResult:
    """Checks whether this kernel can load exported algorithms."""
    try:
        features = kernel_features(path)
    except FileError as error:
        sentence = f"This kernel's features cannot be read: {error}."
        return CheckResult("kernel", "doubtful", sentence, {"features": None})
    missing = [name for name, is_present in features.items() if not is_present]
    if missing:
        sentence = f"This kernel lacks {', '.join(missing)}; Linux 6.10 has all of them."
        return CheckResult("kernel", "refused", sentence, {"features": features})
    sentence = "This kernel has all required features."
    return CheckResult("kernel", "fine", sentence, {"features": features})


def check_table(
    table: RuleTable, spec: spec_pb2.DesignSpec | None, *, deadband_us: int
) -> list[CheckResult]:
    """Checks the numbers of a table, and of the networks that it was designed for."""
    try:
        integers = IntegerTable.from_rule_table(table)
    except UnsuitableTable as error:
        return [
            CheckResult("fixed-point range", "refused", f"It does not fit into 64 bits: {error}.")
        ]
    rules, nodes = len(integers.actions), len(integers.nodes)
    findings = [
        CheckResult(
            "signals",
            "fine",
            "Every signal that the table uses can be measured from ACKs.",
            {"axes": list(table.signals), "scale_free": integers.is_scale_free},
        ),
        CheckResult(
            "fixed-point range",
            "fine",
            f"Its {rules} rules and {nodes} inner nodes fit; a look-up takes at most "
            f"{integers.depth} steps.",
            {"rules": rules, "inner_nodes": nodes, "depth": integers.depth},
        ),
        _check_windows(table),
    ]
    findings.append(_check_rtt_resolution(table, spec, deadband_us))
    if spec is None:
        sentence = "Its specification is unknown; name it with --spec."
        return [*findings, CheckResult("design", "doubtful", sentence)]
    return [*findings, _check_paces(table, spec)]


def _check_windows(table: RuleTable) -> CheckResult:
    """Checks the window at which each rule settles, in packets; in percent for scale-free rules."""
    absolute_only = start_rule(table)
    settled: dict[int, float] = {}
    growing: list[int] = []
    shrinking: list[int] = []
    for rule in range(table.rule_count):
        action = table.action(rule)
        if rule == absolute_only:
            continue
        if action.window_multiple >= 1:
            (growing if action.window_increment > 0 else shrinking).append(rule)
            continue
        settled[rule] = action.window_increment / (1 - action.window_multiple)
        if settled[rule] <= 0:
            shrinking.append(rule)
    values = {"settled_windows": settled, "growing": growing, "shrinking_to_one": shrinking}
    if len(shrinking) == table.rule_count:
        return CheckResult(
            "windows", "refused", "Every rule shrinks the window to zero packets.", values
        )
    largest = max(settled.values(), default=0.0)
    unit = "%" if table.is_scale_free else "packets"
    sentence = f"If applied repeatedly, rules settle at up to {largest:.4g} {unit}"
    sentence += f"; {len(growing)} grow without limit" if growing else ""
    sentence += f"; {len(shrinking)} shrink to the minimum of one packet" if shrinking else ""
    return CheckResult("windows", "fine", sentence + ".", values)


def _check_rtt_resolution(
    table: RuleTable, spec: spec_pb2.DesignSpec | None, deadband_us: int
) -> CheckResult:
    """Checks the smallest RTT increase that a rule distinguishes from the minimum RTT."""
    rtt_ms = _LONG_RTT_MS if spec is None else quantile(outline(spec).network.rtt_ms, 0.5)
    above = sorted(
        value
        for thresholds, _ in table.nodes()
        for axis, value in thresholds
        if axis == _RTT_RATIO and value > 1
    )
    if not above:
        return CheckResult(
            "RTT resolution", "fine", "No rule distinguishes RTTs above the minimum."
        )
    difference_us = (above[0] - 1) * rtt_ms * _US_PER_MS
    values = {"smallest_increase_us": difference_us, "rtt_ms": rtt_ms, "deadband_us": deadband_us}
    finding = f"Its rules distinguish an RTT of {rtt_ms:g} ms from {difference_us:.3g} us more"
    if max(difference_us, deadband_us) < MIN_DISTINGUISHABLE_US:
        return CheckResult(
            "RTT resolution",
            "refused",
            f"{finding}, which no real clock does: it was designed with exact clocks. Design with "
            "noise, set a deadband (--deadband-us), or use --force.",
            values,
        )
    if max(difference_us, deadband_us) < TYPICAL_NOISE_US:
        return CheckResult(
            "RTT resolution", "doubtful", f"{finding}, which is less than typical noise.", values
        )
    is_hidden = deadband_us > difference_us
    note = f"; the deadband of {deadband_us} us hides the difference" if is_hidden else ""
    return CheckResult("RTT resolution", "fine", f"{finding}{note}.", values)


def _check_paces(table: RuleTable, spec: spec_pb2.DesignSpec) -> CheckResult:
    """Finds rules that send less than a segment per minimum RTT on the slowest network."""
    network = outline(spec).network
    shortest_ms = extent(network.rtt_ms)[0]
    slowest_ms = kilobits_per_packet(network) / extent(network.rate_mbps)[0]
    absolute_only = start_rule(table)
    slow = []
    for rule in range(table.rule_count):
        pace_ms = table.action(rule).intersend_ms
        if table.is_scale_free and rule != absolute_only:
            pace_ms *= slowest_ms
        if pace_ms > shortest_ms:
            slow.append(rule)
    values = {"rules": slow, "rtt_ms": shortest_ms}
    if not slow:
        return CheckResult(
            "paces", "fine", "Every rule sends at least one segment per round trip.", values
        )
    named = ", ".join(map(str, slow[:_MAX_LISTED])) + (", ..." if len(slow) > _MAX_LISTED else "")
    return CheckResult(
        "paces",
        "doubtful",
        f"Rules {named} send less than one segment per {shortest_ms:g} ms, which Linux paces with "
        "timers.",
        values,
    )


def check_scores(
    table: RuleTable, spec: spec_pb2.DesignSpec, *, seed: int, specimens: int, evaluate: Evaluate
) -> CheckResult:
    """Compares the score on the design's networks with exact clocks and with jitter."""
    scores: dict[str, float | None] = {}
    for jitter_ms in _JITTERS_MS:
        noisy = spec_pb2.DesignSpec()
        noisy.CopyFrom(spec)
        for model in models(noisy):
            model.network.ClearField("measurement")
            if jitter_ms:
                jitter = model.network.measurement.jitter
                jitter.exponential_mean_ms.exact = jitter_ms
        complete(noisy)
        trial = evaluate_table(noisy, table, seed=seed, specimens=specimens, evaluate=evaluate)
        score = trial.summary().score
        scores[f"{jitter_ms:g}"] = None if score is None else score.mean
    listed = ", ".join(
        f"{'-' if score is None else format(score, '.3f')} with {jitter} ms"
        for jitter, score in scores.items()
    )
    exact, little = scores["0"], scores["0.1"]
    is_worse = exact is None or little is None or exact - little > _MAX_SCORE_LOSS_BY_JITTER
    return CheckResult(
        "jitter",
        "doubtful" if is_worse else "fine",
        f"It scores {listed} of jitter" + (": it depends on exact clocks." if is_worse else "."),
        {"scores_by_jitter_ms": scores, "specimens": specimens},
    )
