"""Campaigns: one design for each combination of values of some settings of a specification."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

import remy_simulator
from remy_farm.analysis import wording
from remy_farm.analysis.wording import duration, format_estimate, plural
from remy_farm.evaluation.measures import (
    PERCENTS,
    Estimate,
    Evaluate,
    PacketMeasures,
    estimate,
    evaluate_table,
)
from remy_farm.files import FileError, read_file, write_file
from remy_farm.specification import (
    SpecError,
    Violation,
    spec_from_tree,
    validation_specimens,
    vary,
)
from remy_farm.specification.reading import Tree, read_yaml
from remy_farm.specification.schema import format_number, show
from remy_proto.v1 import spec_pb2
from remy_simulator import RuleTable

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True)
class SweptSetting:
    """A field of the specification, and its values in the order of the campaign."""

    #: Path of the field, such as "objective.delta".
    path: str
    values: tuple[Tree, ...]


def parse_sweep(text: str) -> SweptSetting:
    """Parses a sweep such as "objective.delta=0.1,1,10" or "signals=[rtt_ratio],[send_ewma]".

    Values are YAML, separated by commas. Raises SpecError.
    """
    path, equals, values = text.partition("=")
    if not equals or not path:
        raise _error(text, "must be PATH=VALUE,VALUE,...")
    tree = read_yaml(f"[{values}\n]", text)
    if not isinstance(tree, list) or not tree:
        raise _error(text, "has no value")
    for index, value in enumerate(tree):
        if value in tree[:index]:
            raise _error(text, f"has the value {value_name(value)} twice")
    return SweptSetting(path.strip(), tuple(tree))


def value_name(value: Tree) -> str:
    """Formats a value for use in a file name: 0.1, send_ewma+rtt_ratio, uniform+10+20."""
    return _NOT_IN_NAMES.sub("-", "+".join(_words(value)))


def labels(sweeps: tuple[SweptSetting, ...]) -> list[str]:
    """Returns short names of the swept fields: their last keys, or their paths if keys repeat."""
    last = [sweep.path.rpartition(".")[2] for sweep in sweeps]
    if len(set(last)) < len(last):
        return [sweep.path for sweep in sweeps]
    return last


def _words(value: Tree) -> list[str]:
    match value:
        case list():
            return [word for item in value for word in _words(item)]
        case dict():
            return [word for key, item in value.items() for word in (key, *_words(item))]
        case str():
            return [value]
        case int() | float() if not isinstance(value, bool):
            return [format_number(value)]
    return [show(value)]


def _error(text: str, problem: str) -> SpecError:
    return SpecError("--sweep", [Violation(show(text), problem)])


_MAX_MEMBERS = 10_000
# Maximum length of a member's name; leaves room for a file name within the path limit.
_LONGEST_NAME = 120


@dataclass(frozen=True)
class Member:
    """One design of a campaign."""

    #: Name of the member and of its folder, such as "delta=0.1,seed=2".
    name: str
    #: (path, value) for each sweep.
    settings: tuple[tuple[str, Tree], ...]
    spec: spec_pb2.DesignSpec


def members_of(
    tree: Tree,
    sweeps: Sequence[SweptSetting],
    *,
    source: str = "the specification",
    folder: Path | None = None,
) -> list[Member]:
    """Returns the members of a campaign: the Cartesian product of the sweeps.

    The last sweep varies fastest.

    Relative file names in the specification are resolved against `folder`. All specifications are
    checked. Raises SpecError, which names `source` and the member's settings.
    """
    _check(sweeps)
    names = labels(tuple(sweeps))
    members = []
    for values in itertools.product(*(sweep.values for sweep in sweeps)):
        shown = [value_name(value) for value in values]
        name = ",".join(f"{label}={value}" for label, value in zip(names, shown, strict=True))
        settings = tuple((sweep.path, value) for sweep, value in zip(sweeps, values, strict=True))
        varied = tree
        for path, value in settings:
            varied = vary(varied, path, value, source=source)
        members.append(
            Member(name, settings, spec_from_tree(varied, f"{source} with {name}", files=folder))
        )
    return _with_usable_names(members)


def _check(sweeps: Sequence[SweptSetting]) -> None:
    paths = [sweep.path for sweep in sweeps]
    for index, path in enumerate(paths):
        for other in paths[:index]:
            shorter, longer = sorted((path, other), key=len)
            if f"{longer}.".startswith(f"{shorter}."):
                problem = f"overlaps with {other}; sweep only one of them"
                raise SpecError("--sweep", [Violation(path, problem)])
    count = math.prod(len(sweep.values) for sweep in sweeps)
    if count > _MAX_MEMBERS:
        problem = f"has {count} combinations of values; at most {_MAX_MEMBERS} are allowed"
        raise SpecError("--sweep", [Violation("", problem)])


def _with_usable_names(members: list[Member]) -> list[Member]:
    """Replaces all names by numbers if one of them is too long for a folder."""
    if all(len(member.name) <= _LONGEST_NAME for member in members):
        return members
    return [
        Member(f"member-{number}", member.settings, member.spec)
        for number, member in enumerate(members, start=1)
    ]


# Random-stream key of the comparison's specimens, which must be the same for all members although
# their seeds may differ.
_COMPARISON = 0x63616D706169676E


@dataclass(frozen=True)
class Comparison:
    """A member's results on networks that its search has not used."""

    #: Score by the member's own objective.
    score: Estimate | None
    #: Mean of log2(throughput / link rate) - log2(delay / RTT) over senders that received packets.
    normalized_score: Estimate | None
    #: Median over specimens.
    throughput_over_link_rate: float | None
    #: Median over specimens.
    delay_over_rtt: float | None
    #: Measures of packets, as in `Summary`. Records of earlier versions have none.
    packets: PacketMeasures = field(default_factory=PacketMeasures)


def compare_member(
    spec: spec_pb2.DesignSpec, tables: Sequence[RuleTable], *, evaluate: Evaluate
) -> Comparison:
    """Evaluates a member's tables on fresh networks of its specification.

    The number of specimens is that of the search's validation. Members with the same network model
    and simulated time get the same specimens.
    """
    table, *companions = tables
    trial = evaluate_table(
        spec,
        table,
        companions=companions,
        seed=remy_simulator.mix(_COMPARISON),
        specimens=validation_specimens(spec),
        evaluate=evaluate,
        distributions=True,
    )
    summary = trial.summary()
    return Comparison(
        score=summary.score,
        normalized_score=estimate(
            [result.measures.normalized_score_per_sender for result in trial.results]
        ),
        throughput_over_link_rate=summary.throughput_over_link_rate,
        delay_over_rtt=summary.delay_over_rtt,
        packets=summary.packets,
    )


def undominated(points: Sequence[tuple[float, float] | None]) -> list[bool]:
    """Tells for each (delay, throughput) point whether it is Pareto-optimal; False for None.

    A point is Pareto-optimal if no other one has at least its throughput at no more than its delay.
    """
    return [
        point is not None
        and not any(
            other is not None and other != point and other[0] <= point[0] and other[1] >= point[1]
            for other in points
        )
        for point in points
    ]


_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class MemberRecord:
    """The record of a member whose design is finished."""

    #: Name of the member and of its folder.
    name: str
    #: Swept values by path.
    settings: dict[str, Any]
    #: Digest of the member's specification, budgets included; another digest makes the record void.
    spec_digest: str
    #: Reason why the design finished, such as "schedule_complete".
    reason: str
    steps: int
    epochs: int
    rules: int
    cpu_seconds: float
    wall_seconds: float
    comparison: Comparison


class CampaignRecord:
    """The records of finished members by name, in the order of the campaign."""

    def __init__(self, records: dict[str, MemberRecord] | None = None) -> None:
        self._records = dict(records or {})

    @classmethod
    def read(cls, path: Path) -> CampaignRecord:
        """Reads the records in a file; a missing file has none. Raises FileError."""
        if not path.exists():
            return cls()
        try:
            tree = json.loads(read_file(path, limit=_MAX_BYTES))
            records = msgspec.convert(tree["members"], list[MemberRecord])
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"{path} is not the record of a campaign; remove it to compare all members again"
            ) from error
        return cls({record.name: record for record in records})

    def write(self, path: Path) -> None:
        """Writes the records to a file. Raises FileError."""
        write_file(
            path, json.dumps(members_dict(self._records.values()), indent=2, allow_nan=False) + "\n"
        )

    def finished(self, name: str, spec_digest: str) -> MemberRecord | None:
        """Returns the record of a member; None if it is missing or of another specification."""
        record = self._records.get(name)
        return record if record is not None and record.spec_digest == spec_digest else None

    def add(self, record: MemberRecord) -> None:
        """Adds a record, in place of an earlier one of that name."""
        self._records[record.name] = record

    def all(self) -> list[MemberRecord]:
        """Returns all records."""
        return [*self._records.values()]

    def records_of(self, names: list[str]) -> list[MemberRecord]:
        """Returns the records of these members; a member without a record is left out."""
        return [self._records[name] for name in names if name in self._records]


def members_dict(records: Iterable[MemberRecord]) -> dict[str, Any]:
    """Returns the records as the dict that is written as JSON."""
    return {"members": [asdict(record) for record in records]}


MEMBER_HEAD = (
    "",
    "member",
    "score",
    "normalized score",
    "throughput / link rate",
    "delay / RTT",
    "loss",
    *(f"RTT {percent} %, ms" for percent in PERCENTS),
    "rules",
    "CPU time",
)
MEMBER_EXPLANATION = (
    "Scores are means over fresh specimens with standard errors, each by its member's own "
    "objective; the normalized score is log2(throughput / link rate) - log2(delay / RTT) per "
    "sender. Throughput, delay and percentiles of the RTT are medians; the loss is a mean."
)


def member_cells(number: int, record: MemberRecord) -> tuple[str, ...]:
    """Returns the cells of a member's row, for the columns of MEMBER_HEAD.

    `number` is the member's number in the plot.
    """
    comparison = record.comparison
    return (
        str(number),
        record.name,
        format_estimate(comparison.score),
        format_estimate(comparison.normalized_score),
        wording.number(comparison.throughput_over_link_rate),
        wording.number(comparison.delay_over_rtt),
        wording.percentage(comparison.packets.loss),
        *(wording.number(getattr(comparison.packets, f"rtt_p{each}_ms")) for each in PERCENTS),
        str(record.rules),
        duration(record.cpu_seconds),
    )


def render(name: str, records: Sequence[MemberRecord], *, picture_png: bytes) -> str:
    """Returns the campaign's page as HTML."""
    rows = [member_cells(number, record) for number, record in enumerate(records, start=1)]
    return wording.document(
        title=f"{name}: a campaign",
        sections=[
            f"<h1>{wording.escape(name)}</h1>",
            wording.paragraph(f"A campaign of {plural(len(records), 'design')}.", style="lead"),
            wording.figure(
                picture_png,
                description="Scatter plot of throughput over link rate against delay over RTT, a "
                "point for each member.",
                caption="Filled dots, joined by a line: no other member has as much throughput at "
                "as little delay.",
            ),
            wording.table("Members", MEMBER_HEAD, rows, text=2),
            wording.paragraph(MEMBER_EXPLANATION, style="soft"),
            wording.paragraph("Each member's folder holds its RemyCC, its report and its history."),
        ],
    )
