"""Reads and writes RemyCC files (.json, and .dna of the reference tool), and lists their rules."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from google.protobuf import json_format

from remy_farm.files import FileError, read_file, write_file
from remy_farm.shipped import shipped_table
from remy_farm.specification.distributions import extent
from remy_farm.specification.links import KILOBITS_PER_PACKET
from remy_farm.specification.models import buffer_capacity_packets, mean_off_ms, outline
from remy_farm.specification.reading import integer
from remy_farm.specification.schema import short_name
from remy_proto.dna.v1 import dna_pb2
from remy_proto.v1 import rule_table_pb2, spec_pb2
from remy_simulator import InvalidTable, RuleTable, signals
from remy_simulator.messages import axis_of, from_native, signal_of, to_native

__all__ = [
    "MAXIMUM_BYTES",
    "InvalidJson",
    "ReadableRule",
    "RemyCC",
    "RemyCCError",
    "check_remycc_name",
    "clock_precision_sentence",
    "file_suffixes",
    "from_json",
    "path_model_sentence",
    "read_remycc",
    "readable_rules",
    "reference_config",
    "share_beyond_clocks",
    "signal_name",
    "start_rule",
    "start_rule_guards",
    "to_bytes",
    "to_json",
    "write_remycc",
]


class RemyCCError(FileError):
    """A file that does not hold a RemyCC, or whose name does not say how to write one."""


@dataclass(frozen=True)
class RemyCC:
    """A rule table, and the metadata of its .dna file.

    `dna_metadata` holds encoded fields of a .dna file's outermost message, which describe the
    networks and the design of the table. They are preserved unchanged.
    """

    table: RuleTable
    dna_metadata: bytes = b""

    @classmethod
    def from_message(cls, message: rule_table_pb2.RuleTable) -> RemyCC:
        """Makes the RemyCC of a message. Raises remy_simulator.InvalidTable."""
        return cls(to_native(message), message.dna_metadata)

    def to_message(self) -> rule_table_pb2.RuleTable:
        """Returns the message that `from_message` reads."""
        message = from_native(self.table)
        message.dna_metadata = self.dna_metadata
        return message

    def with_path_model(self, **constants: float) -> RemyCC:
        """Returns the same rules with a path model, which replaces one that they have.

        Constants that are not given by name have their defaults (docs/reference/spec.md). Raises
        ValueError for a name that is none of theirs, and remy_simulator.InvalidTable for a value
        out of range.
        """
        message = self.to_message()
        message.path_model.CopyFrom(rule_table_pb2.PathModel(**constants))
        return RemyCC.from_message(message)

    def with_competition(self, rtt_ratio: float) -> RemyCC:
        """Returns the same table with another `competition_rtt_ratio` in its path model.

        Raises ValueError for a table without a path model, and remy_simulator.InvalidTable for a
        ratio out of range.
        """
        path_model = self.table.path_model
        if path_model is None:
            raise ValueError("a table without a path model cannot compete; give it one first")
        changed = path_model._replace(competition_rtt_ratio=rtt_ratio)
        return RemyCC(self.table.with_path_model(changed), self.dna_metadata)


# Buffer size of an infinite buffer in the reference tool's format.
_INFINITE_BUFFER: Final = 2**32 - 1
_MS_PER_SECOND: Final = 1000


def reference_config(spec: spec_pb2.DesignSpec) -> bytes:
    """Encodes a specification's networks as field 4 (ConfigRange) of a .dna file.

    The format holds only the range of a distribution. The time on of flows that are given in bytes
    is left out.
    """
    model = outline(spec)
    network, traffic = model.network, model.network.traffic
    link_low, link_high = extent(network.rate_mbps)
    config = dna_pb2.ConfigRange(
        link_packets_per_ms=dna_pb2.Range(
            low=link_low / KILOBITS_PER_PACKET, high=link_high / KILOBITS_PER_PACKET
        ),
        rtt=_range(network.rtt_ms),
        num_senders=_range(network.senders),
        buffer_size=_ends(lambda take: buffer_capacity_packets(model, take), _INFINITE_BUFFER),
        mean_off_duration=_ends(lambda take: mean_off_ms(model, take)),
        simulation_ticks=min(round(spec.search.simulated_seconds * _MS_PER_SECOND), 2**32 - 1),
        stochastic_loss_rate=_range(network.loss_probability),
    )
    if traffic.HasField("exponential_time"):
        config.mean_on_duration.CopyFrom(_range(traffic.exponential_time.mean_ms))
    return dna_pb2.WhiskerTree(config=config).SerializeToString(deterministic=True)


def _ends(
    of: Callable[[Callable[[spec_pb2.Distribution], float]], float | None], absent: float = 0.0
) -> dna_pb2.Range:
    """Returns the range between the results of `of` for the lowest and the highest quantities.

    `of` is called with a function that selects the value of a distribution. `absent` replaces a
    result of None.
    """
    results = [of(lambda each: extent(each)[0]), of(lambda each: extent(each)[1])]
    low, high = sorted(absent if each is None else each for each in results)
    return dna_pb2.Range(low=low, high=high)


def _range(distribution: spec_pb2.Distribution) -> dna_pb2.Range:
    low, high = extent(distribution)
    return dna_pb2.Range(low=low, high=high)


# The .json form of a RemyCC: the JSON mapping of the RuleTable message, with its field names
#
# Keys are sorted and doubles are written exactly, so that equal tables have equal files.


# Limit of braces, brackets and commas: twice the number in the largest table. A node has five.
_MAX_ELEMENTS: Final = 4_000_000
_LONGEST_CLAUSE: Final = 300
# An unpaired surrogate, for which the Protocol Buffers library raises SystemError.
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_LIBRARY_NOISE: Final = re.compile(
    r"Failed to parse \w+ field: |\. Available Fields.*|, use quoted \"\S+\" instead"
)


class InvalidJson(ValueError):
    """A text is not the JSON form of a rule table; the message is a clause without a subject."""


def to_json(message: rule_table_pb2.RuleTable) -> str:
    """Returns the message as JSON text."""
    tree = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return json.dumps(tree, indent=2, sort_keys=True) + "\n"


def from_json(data: bytes) -> rule_table_pb2.RuleTable:
    """Reads what `to_json` wrote. Raises InvalidJson; does not check the table itself."""
    if sum(data.count(sign) for sign in (b"{", b"[", b",")) > _MAX_ELEMENTS:
        raise InvalidJson(f"has too many elements; at most {_MAX_ELEMENTS} are allowed")
    if surrogate := _SURROGATE.search(data):
        raise InvalidJson(f"holds the surrogate {surrogate[0].decode()}; texts have none")
    try:
        tree = json.loads(
            data, object_pairs_hook=_unique, parse_int=integer, parse_constant=_not_finite
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"is not JSON ({error.msg}, line {error.lineno}, column {error.colno})"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidJson(f"is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise InvalidJson("is nested too deeply to be a rule table") from error
    if not isinstance(tree, dict):
        raise InvalidJson('is not a rule table, which is an object with "signals" and "nodes"')
    try:
        return json_format.ParseDict(tree, rule_table_pb2.RuleTable())
    except json_format.ParseError as error:
        raise InvalidJson(f"is not a rule table ({_clause(error)})") from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidJson(f"names the key {twice[:60]!r} twice in one object")
    return result


def _not_finite(text: str) -> float:
    raise InvalidJson(f"holds {text}, but every number must be finite")


def _clause(error: json_format.ParseError) -> str:
    """Returns the library's message without its prefixes, on one line of printable characters."""
    text = _LIBRARY_NOISE.sub("", " ".join(str(error).split()))
    return text.encode("ascii", "backslashreplace").decode().rstrip(".")[:_LONGEST_CLAUSE]


@dataclass(frozen=True)
class ReadableRule:
    """A rule: its region, its action and its use.

    `region` holds the half-open interval of each signal of the table, in ms or as a ratio. Memory
    values are clamped to the domain, so that an interval up to `domain_upper` is unbounded.
    `use_share` is the rule's share of all look-ups, or None if unknown.

    The window increment is in packets and the intersend time in ms, unless the rule `is_relative`.
    The increment of a relative rule is in percent of the bandwidth-delay product, and its intersend
    time is a multiple of the measured interval between packets. `rules` is the kind of the table's
    rules; in a scale-free table only the start rule is not relative.
    """

    number: int
    region: dict[str, tuple[float, float]]
    window_multiple: float
    window_increment: float
    intersend_ms: float
    use_share: float | None
    rules: int = rule_table_pb2.RULES_ABSOLUTE
    is_relative: bool = False


def readable_rules(table: RuleTable, uses: Sequence[int] | None = None) -> list[ReadableRule]:
    """Returns the rules by number; `uses` is the number of look-ups of each, None if unknown."""
    if uses is not None and len(uses) != table.rule_count:
        raise ValueError(
            f"{len(uses)} use counts were given for a table of {table.rule_count} rules; "
            "each rule needs one"
        )
    total = sum(uses) if uses is not None else 0
    start = start_rule(table)
    rules = []
    for number in range(table.rule_count):
        lower, upper = table.region(number)
        region = {
            signal_name(axis, table.rules): (lower[axis], upper[axis]) for axis in table.signals
        }
        share = None if uses is None else (uses[number] / total if total else 0.0)
        rules.append(
            ReadableRule(
                number,
                region,
                *table.action(number),
                use_share=share,
                rules=table.rules,
                is_relative=table.is_scale_free and number != start,
            )
        )
    return rules


#: RTT ratios between 1 and this one are not distinguishable from 1 with real clocks.
_FINEST_RTT_RATIO: Final = 1 + 1e-6


def share_beyond_clocks(rules: Sequence[ReadableRule]) -> float | None:
    """Returns the share of look-ups of rules with a bound that real clocks cannot measure.

    These are bounds of rtt_ratio less than a millionth above 1. None if uses are unknown.
    """
    shares = [
        rule.use_share
        for rule in rules
        if any(1 < end < _FINEST_RTT_RATIO for end in rule.region.get("rtt_ratio", ()))
    ]
    if any(rule.use_share is None for rule in rules):
        return None
    return math.fsum(share for share in shares if share is not None)


def clock_precision_sentence(rules: Sequence[ReadableRule]) -> str:
    """Returns a sentence on `share_beyond_clocks`; empty if the share is zero or unknown."""
    share = share_beyond_clocks(rules)
    if not share:
        return ""
    return (
        f"{share:.1%} of all look-ups are of rules with a bound less than a millionth above the "
        "minimum RTT, which real clocks cannot measure."
    )


def path_model_sentence(table: RuleTable) -> str:
    """Returns a sentence with the constants of a table's path model; empty if it has none."""
    if table.path_model is None:
        return ""
    constants = (f"{name} {value:g}" for name, value in table.path_model._asdict().items())
    return f"The senders have a path model: {', '.join(constants)}."


def start_rule(table: RuleTable) -> int | None:
    """Returns the start rule of a scale-free table: for senders that have measured nothing.

    Its action is in packets and ms. Returns None if the table has absolute rules, or if the rule of
    the all-zero memory also contains measured memories.
    """
    if not table.is_scale_free:
        return None
    rule = table.find((0.0, 0.0, 0.0, 0.0))
    return rule if start_rule_guards(table, rule) else None


_RTT_RATIO: Final = axis_of(rule_table_pb2.SIGNAL_RTT_RATIO)


def start_rule_guards(table: RuleTable, rule: int) -> list[int]:
    """Returns the axes on which a scale-free rule's region ends below all measured values.

    rtt_ratio is not among them for senders that remember the path: theirs is 0 until the first ACK.
    """
    _, upper = table.region(rule)
    remembers = table.rules == rule_table_pb2.RULES_SCALE_FREE_REMEMBERING
    return [
        axis
        for axis, signal in enumerate(signals.AXES)
        if 0 < signal.form(True).least_measured >= upper[axis]
        and not (remembers and axis == _RTT_RATIO)
    ]


def signal_name(axis: int, rules: int) -> str:
    """Returns the name of an axis in specifications.

    Axis 0, for example, is send_ewma of absolute rules and send_ratio of scale-free ones.
    """
    values = rule_table_pb2.Signal.DESCRIPTOR.values_by_number
    return short_name(values[signal_of(axis, rules)])


def file_suffixes(table: RuleTable) -> tuple[str, ...]:
    """Returns the extensions of files that can hold the table.

    .dna is for absolute rules without a path model only.
    """
    holds_dna = not table.is_scale_free and table.path_model is None
    return (".json", ".dna") if holds_dna else (".json",)


MAXIMUM_BYTES: Final = 64 << 20


def read_remycc(path: str | os.PathLike[str], time_unit_ms: float = 1.0) -> RemyCC:
    """Reads a RemyCC from a .dna or .json file; with another extension the content decides.

    If no such file exists, `path` may be the name of a RemyCC that is installed with the library.
    `time_unit_ms` is the time unit of a .dna file, which does not state it; .json files are in ms.
    Raises RemyCCError if the file is not a RemyCC, and FileError if it cannot be read.
    """
    if not os.path.lexists(path) and (shipped := shipped_table(os.fspath(path))) is not None:
        path = shipped
    data = read_file(path, limit=MAXIMUM_BYTES)
    suffix = _suffix(path)
    is_json = suffix == ".json" or (suffix != ".dna" and data.startswith(b"{"))
    if is_json and time_unit_ms != 1.0:
        raise RemyCCError(
            f"{os.fspath(path)} is a .json file, which is in milliseconds; a time unit of "
            f"{time_unit_ms:g} ms is allowed for .dna files only"
        )
    try:
        if is_json:
            return RemyCC.from_message(from_json(data))
        return RemyCC(*RuleTable.from_dna(data, time_unit_ms))
    except InvalidJson as error:
        raise RemyCCError(f"{os.fspath(path)} {error}") from error
    except InvalidTable as error:
        form = "JSON" if is_json else ".dna"
        problem = str(error).rstrip(".")
        raise RemyCCError(
            f"{os.fspath(path)} is not a valid {form} rule table: {problem}"
        ) from error


def write_remycc(path: str | os.PathLike[str], remycc: RemyCC) -> None:
    """Writes a .dna or .json file atomically, depending on the extension.

    Raises RemyCCError for another extension, and for a .dna file if a window increment is not an
    integer of 32 bits. Raises FileError if the file cannot be written.
    """
    check_remycc_name(path)
    try:
        data = to_bytes(remycc, _suffix(path))
    except InvalidTable as error:
        close = (
            ", or write an approximation with 'remy-farm export --dna'"
            if remycc.table.is_scale_free
            and axis_of(rule_table_pb2.SIGNAL_AGE) not in remycc.table.signals
            else ""
        )
        raise RemyCCError(
            f"{os.fspath(path)} cannot be written: {str(error).rstrip('.')}{close}"
        ) from error
    write_file(path, data)


def to_bytes(remycc: RemyCC, suffix: str) -> bytes:
    """Returns the content of a RemyCC file with the extension `suffix`, ".json" or ".dna".

    Raises remy_simulator.InvalidTable if a .dna file cannot hold the table.
    """
    if suffix == ".json":
        return to_json(remycc.to_message()).encode()
    return remycc.table.to_dna(remycc.dna_metadata)


def check_remycc_name(path: str | os.PathLike[str]) -> None:
    """Raises RemyCCError unless the name has the extension of a RemyCC file."""
    if _suffix(path) not in (".json", ".dna"):
        raise RemyCCError(
            f"{os.fspath(path)} is not the name of a RemyCC file; it must end in .dna or .json"
        )


def _suffix(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.lower()
