"""What can be known of a table as congestion control of Linux before it is loaded: what this kernel
has, by its BTF, and what the table would do with real clocks."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from remy_farm.evaluation.measures import Evaluate, try_table
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
_MOST_BTF_BYTES: Final = 1 << 28
_RTT_RATIO: Final = 2
_US_PER_MS: Final = 1000
#: What a sender's clock tells: less than this apart, RTTs are the same.
LEAST_TOLD_US: Final = 2.0
#: Below this, what is told is mostly the noise of a usual machine.
USUAL_NOISE_US: Final = 50.0
# Where it is not known what RTTs a table is for.
_LONG_RTT_MS: Final = 1000.0
_JITTERS_MS: Final = (0.0, 0.1, 0.5)
_MOST_WORSE_BY_JITTER: Final = 0.3
_MOST_WINDOW: Final = 1e6
_FEW: Final = 5


@dataclass(frozen=True)
class CheckResult:
    """One thing that was looked at: what was found, as a sentence and as values, and whether the
    table is refused for it ("refused"), likely to disappoint ("doubtful"), or neither ("fine")."""

    check: str
    verdict: str
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict)


# BTF (Documentation/bpf/btf.rst): how many 32-bit words follow a type's three, fixed and for each
# of its `vlen` elements, by kind.
_HEADER: Final = struct.Struct("<HBBIIIII")
_MAGIC: Final = 0xEB9F
_FIXED_WORDS: Final = {1: 1, 3: 3, 14: 1, 17: 1}
_WORDS_EACH: Final = {4: 3, 5: 3, 6: 2, 13: 2, 15: 3, 19: 3}
_STRUCT, _ENUM, _PTR, _PROTO = 4, 6, 2, 13


class _Btf:
    """The types of a kernel that are asked for by name."""

    def __init__(self, data: bytes) -> None:
        magic, _, _, start, types, types_bytes, strings, _ = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise FileError(f"{BTF} is not BTF of a little-endian kernel")
        self._words = memoryview(data[start + types : start + types + types_bytes]).cast("I")
        self._strings = data[start + strings :]
        self._offsets = [0, *self._all_offsets()]

    def _all_offsets(self) -> Iterator[int]:
        place = 0
        while place < len(self._words):
            yield place
            info = self._words[place + 1]
            kind, count = info >> 24 & 0x1F, info & 0xFFFF
            place += 3 + _FIXED_WORDS.get(kind, 0) + _WORDS_EACH.get(kind, 0) * count

    def _name(self, offset: int) -> str:
        return self._strings[offset : self._strings.index(b"\0", offset)].decode()

    def _kind(self, place: int) -> int:
        return self._words[place + 1] >> 24 & 0x1F

    def structs(self, names: frozenset[str]) -> dict[str, dict[str, int]]:
        """The members of these structs, with the numbers of their types."""
        found = {}
        for place in self._offsets[1:]:
            if self._kind(place) == _STRUCT and (name := self._name(self._words[place])) in names:
                count = self._words[place + 1] & 0xFFFF
                rows = range(place + 3, place + 3 + 3 * count, 3)
                found[name] = {self._name(self._words[row]): self._words[row + 1] for row in rows}
        return found

    def has_enumerator(self, wanted: str) -> bool:
        """Whether any enumeration has a value of this name."""
        offset = self._strings.find(f"\0{wanted}\0".encode()) + 1
        return any(
            self._words[row] == offset
            for place in self._offsets[1:]
            if self._kind(place) == _ENUM
            for row in range(place + 3, place + 3 + 2 * (self._words[place + 1] & 0xFFFF), 2)
        )

    def parameters(self, pointer: int) -> int:
        """How many parameters the function has that a pointer points to."""
        place = self._offsets[pointer]
        if self._kind(place) == _PTR:
            place = self._offsets[self._words[place + 2]]
        return self._words[place + 1] & 0xFFFF if self._kind(place) == _PROTO else 0


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
    """Which of linux.KERNEL_FEATURES a kernel has, by its BTF. Raises FileError if it has none."""
    try:
        btf = _Btf(read_file(path, limit=_MOST_BTF_BYTES))
    except (struct.error, IndexError, ValueError, TypeError) as error:
        raise FileError(f"{path} is not BTF of a little-endian kernel") from error
    structs = btf.structs(frozenset({"tcp_congestion_ops", "bpf_struct_ops_link", *_FIELDS}))
    operations = structs.get("tcp_congestion_ops", {})
    return {
        # Before Linux 6.10 it had two parameters.
        "cong_control_with_ack": btf.parameters(operations.get("cong_control", 0)) == 4,
        "struct_ops_links": "bpf_struct_ops_link" in structs,
        "bpf_loop": btf.has_enumerator("BPF_FUNC_loop"),
        "tcp_send_times": all(
            fields <= structs.get(name, {}).keys() for name, fields in _FIELDS.items()
        ),
    }


def check_kernel(path: Path = BTF) -> CheckResult:
    """Whether this kernel can load what is exported."""
    try:
        features = kernel_features(path)
    except FileError as error:
        sentence = f"This kernel cannot be looked at: {error}."
        return CheckResult("kernel", "doubtful", sentence, {"features": None})
    lacking = [name for name, is_there in features.items() if not is_there]
    if lacking:
        sentence = f"This kernel lacks {', '.join(lacking)}; Linux 6.10 has them all."
        return CheckResult("kernel", "refused", sentence, {"features": features})
    return CheckResult("kernel", "fine", "This kernel has what is needed.", {"features": features})


def check_table(
    table: RuleTable, spec: spec_pb2.DesignSpec | None, *, deadband_us: int
) -> list[CheckResult]:
    """What follows from the numbers of a table, and of the networks that it is for."""
    try:
        integers = IntegerTable.of(table)
    except UnsuitableTable as error:
        return [CheckResult("fixed point", "refused", f"It does not fit into 64 bits: {error}.")]
    rules, nodes = len(integers.actions), len(integers.nodes)
    findings = [
        CheckResult(
            "signals",
            "fine",
            "Every signal that it looks up can be measured from an ACK and its packet's times.",
            {"axes": list(table.signals), "scale_free": integers.is_scale_free},
        ),
        CheckResult(
            "fixed point",
            "fine",
            f"Its {rules} rules and {nodes} inner nodes fit; a look-up takes {integers.depth} "
            "steps at most.",
            {"rules": rules, "inner_nodes": nodes, "depth": integers.depth},
        ),
        _check_windows(table),
    ]
    findings.append(_check_told_rtts(table, spec, deadband_us))
    if spec is None:
        unknown = "It is not known what it was designed for; name the specification with --spec."
        return [*findings, CheckResult("design", "doubtful", unknown)]
    return [*findings, _check_paces(table, spec)]


def _check_windows(table: RuleTable) -> CheckResult:
    """Where each rule leads if it is applied for ever; of scale-free ones in percent."""
    absolute_only = start_rule(table)
    settled: dict[int, float] = {}
    endless: list[int] = []
    starved: list[int] = []
    for rule in range(table.rule_count):
        action = table.action(rule)
        if rule == absolute_only:
            continue
        if action.window_multiple >= 1:
            (endless if action.window_increment > 0 else starved).append(rule)
            continue
        settled[rule] = action.window_increment / (1 - action.window_multiple)
        if settled[rule] <= 0:
            starved.append(rule)
    values = {"settled_windows": settled, "growing": endless, "shrinking_to_one": starved}
    if len(starved) == table.rule_count:
        return CheckResult(
            "windows", "refused", "Every rule leads to a window of no packets.", values
        )
    largest = max(settled.values(), default=0.0)
    unit = "%" if table.is_scale_free else "packets"
    sentence = f"Applied for ever, rules settle at up to {largest:.4g} {unit}"
    sentence += f"; {len(endless)} grow without end" if endless else ""
    sentence += f"; {len(starved)} shrink to the one packet that is always sent" if starved else ""
    return CheckResult("windows", "fine", sentence + ".", values)


def _check_told_rtts(
    table: RuleTable, spec: spec_pb2.DesignSpec | None, deadband_us: int
) -> CheckResult:
    """The smallest difference of RTTs that a rule tells from none."""
    rtt_ms = _LONG_RTT_MS if spec is None else quantile(outline(spec).network.rtt_ms, 0.5)
    above = sorted(
        value
        for thresholds, _ in table.nodes()
        for axis, value in thresholds
        if axis == _RTT_RATIO and value > 1
    )
    if not above:
        return CheckResult("smallest RTT", "fine", "No rule tells RTTs above the smallest apart.")
    told_us = (above[0] - 1) * rtt_ms * _US_PER_MS
    values = {"told_us": told_us, "rtt_ms": rtt_ms, "deadband_us": deadband_us}
    tells = f"Its rules tell an RTT of {rtt_ms:g} ms from one that is {told_us:.3g} us longer"
    if max(told_us, deadband_us) < LEAST_TOLD_US:
        return CheckResult(
            "smallest RTT",
            "refused",
            f"{tells}, which no real clock does: it was designed with exact clocks. Design with "
            "noise, or give a deadband (--deadband-us), or --force.",
            values,
        )
    if max(told_us, deadband_us) < USUAL_NOISE_US:
        return CheckResult(
            "smallest RTT", "doubtful", f"{tells}, which is less than usual noise.", values
        )
    rescue = f"; the deadband of {deadband_us} us hides it" if deadband_us > told_us else ""
    return CheckResult("smallest RTT", "fine", f"{tells}{rescue}.", values)


def _check_paces(table: RuleTable, spec: spec_pb2.DesignSpec) -> CheckResult:
    """Rules that send less than a segment in a smallest RTT of the slowest network."""
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
            "paces", "fine", "Every rule sends at least a segment in a round trip.", values
        )
    named = ", ".join(map(str, slow[:_FEW])) + (", ..." if len(slow) > _FEW else "")
    return CheckResult(
        "paces",
        "doubtful",
        f"Rules {named} send less than a segment in {shortest_ms:g} ms; Linux paces such flows by "
        "its timers.",
        values,
    )


def check_scores(
    table: RuleTable, spec: spec_pb2.DesignSpec, *, seed: int, specimens: int, evaluate: Evaluate
) -> CheckResult:
    """The score on the design's networks with clocks that are exact, and with jitter."""
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
        trial = try_table(noisy, table, seed=seed, specimens=specimens, evaluate=evaluate)
        found = trial.summary().score
        scores[f"{jitter_ms:g}"] = None if found is None else found.mean
    listed = ", ".join(
        f"{'-' if score is None else format(score, '.3f')} with {jitter} ms"
        for jitter, score in scores.items()
    )
    exact, little = scores["0"], scores["0.1"]
    is_worse = exact is None or little is None or exact - little > _MOST_WORSE_BY_JITTER
    return CheckResult(
        "jitter",
        "doubtful" if is_worse else "fine",
        f"It scores {listed} of jitter" + (": it leans on exact clocks." if is_worse else "."),
        {"scores_by_jitter_ms": scores, "specimens": specimens},
    )
