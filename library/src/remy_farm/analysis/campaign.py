"""Campaigns: one specification with some of its settings varied, a design for each combination."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

import remy_simulator
from remy_farm.analysis import wording
from remy_farm.analysis.wording import duration, several, with_error
from remy_farm.analysis.wording import number as figure
from remy_farm.evaluation.measures import Estimate, Evaluate, estimate, evaluate_table
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
    """A field of the specification and its values, in the order to go through them."""

    #: As in "objective.delta".
    path: str
    values: tuple[Tree, ...]


def parse_sweep(text: str) -> SweptSetting:
    """The sweep in a text such as "objective.delta=0.1,1,10" or "signals=[rtt_ratio],[send_ewma]".

    Values are YAML, separated by commas. Raises SpecError, in which the text stands for the source.
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
    """A value as a part of a file's name: 0.1, send_ewma+rtt_ratio, uniform+10+20."""
    return _NOT_IN_NAMES.sub("-", "+".join(_words(value)))


def labels(sweeps: tuple[SweptSetting, ...]) -> list[str]:
    """What to call the swept fields: their last keys, or their paths where those are the same."""
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


_MOST_MEMBERS = 10_000
# Leaves room for the names of files beside it.
_LONGEST_NAME = 120


@dataclass(frozen=True)
class Member:
    """One design of a campaign."""

    #: Also of its folder, as in "delta=0.1,seed=2".
    name: str
    #: (path, value) by sweep.
    settings: tuple[tuple[str, Tree], ...]
    spec: spec_pb2.DesignSpec


def members_of(
    tree: Tree,
    sweeps: Sequence[SweptSetting],
    *,
    source: str = "the specification",
    folder: Path | None = None,
) -> list[Member]:
    """The Cartesian product of the sweeps of a specification; the last one changes fastest.

    What it names of files counts from `folder`.

    All specifications are checked before any is designed. Raises SpecError, whose source is
    `source` with the member's settings.
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
                problem = f"sets what {other} sets, too; sweep either of them"
                raise SpecError("--sweep", [Violation(path, problem)])
    count = math.prod(len(sweep.values) for sweep in sweeps)
    if count > _MOST_MEMBERS:
        problem = f"has {count} combinations of values; at most {_MOST_MEMBERS} are allowed"
        raise SpecError("--sweep", [Violation("", problem)])


def _with_usable_names(members: list[Member]) -> list[Member]:
    """Numbers, where a name would be too long for a folder."""
    if all(len(member.name) <= _LONGEST_NAME for member in members):
        return members
    return [
        Member(f"member-{number}", member.settings, member.spec)
        for number, member in enumerate(members, start=1)
    ]


# Names the comparison's specimens. The members' own seeds differ, and these must not.
_COMPARISON = 0x63616D706169676E


@dataclass(frozen=True)
class Comparison:
    """What a member's table does on networks that its search has not seen."""

    #: The member's own objective.
    score: Estimate | None
    #: log2(throughput / link rate) - log2(delay / RTT) over the senders that received packets.
    normalized_score: Estimate | None
    #: Medians over specimens.
    throughput_over_link_rate: float | None
    delay_over_rtt: float | None


def compare_member(
    spec: spec_pb2.DesignSpec, tables: Sequence[RuleTable], *, evaluate: Evaluate
) -> Comparison:
    """Tries a table, or all that were designed together, on its own specification's networks.

    Members with the same networks and simulated time meet the same specimens. There are as many as
    the search validates on.
    """
    table, *companions = tables
    trial = evaluate_table(
        spec,
        table,
        companions=companions,
        seed=remy_simulator.mix(_COMPARISON),
        specimens=validation_specimens(spec),
        evaluate=evaluate,
    )
    summary = trial.summary()
    return Comparison(
        score=summary.score,
        normalized_score=estimate(
            [result.measures.normalized_score_per_sender for result in trial.results]
        ),
        throughput_over_link_rate=summary.throughput_over_link_rate,
        delay_over_rtt=summary.delay_over_rtt,
    )


def undominated(points: Sequence[tuple[float, float] | None]) -> list[bool]:
    """Of (delay, throughput) points, whether no other has as much throughput at as little delay;
    False for None."""
    return [
        point is not None
        and not any(
            other is not None and other != point and other[0] <= point[0] and other[1] >= point[1]
            for other in points
        )
        for point in points
    ]


_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class MemberRecord:
    """A member whose design is finished."""

    #: Also of its folder.
    name: str
    #: Values by path.
    settings: dict[str, Any]
    #: Of its specification with all budgets: a record of another one does not count.
    spec_digest: str
    #: As in "schedule_complete".
    reason: str
    steps: int
    epochs: int
    rules: int
    cpu_seconds: float
    wall_seconds: float
    comparison: Comparison


class CampaignRecord:
    """The records by name, in the order of the campaign."""

    def __init__(self, records: dict[str, MemberRecord] | None = None) -> None:
        self._records = dict(records or {})

    @classmethod
    def read(cls, path: Path) -> CampaignRecord:
        """What a file holds; nothing if there is none. Raises FileError."""
        if not path.exists():
            return cls()
        try:
            tree = json.loads(read_file(path, limit=_MOST_BYTES))
            records = msgspec.convert(tree["members"], list[MemberRecord])
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"{path} is not the record of a campaign; remove it to compare all members anew"
            ) from error
        return cls({record.name: record for record in records})

    def write(self, path: Path) -> None:
        """Raises FileError."""
        write_file(
            path, json.dumps(members_tree(self._records.values()), indent=2, allow_nan=False) + "\n"
        )

    def finished(self, name: str, spec_digest: str) -> MemberRecord | None:
        """The record of a member with that very specification."""
        record = self._records.get(name)
        return record if record is not None and record.spec_digest == spec_digest else None

    def add(self, record: MemberRecord) -> None:
        """Takes the place of an earlier record of that name."""
        self._records[record.name] = record

    def all(self) -> list[MemberRecord]:
        """The records of all members that are finished."""
        return [*self._records.values()]

    def of(self, names: list[str]) -> list[MemberRecord]:
        """The records of these members, as far as they are finished."""
        return [self._records[name] for name in names if name in self._records]


def members_tree(records: Iterable[MemberRecord]) -> dict[str, Any]:
    """As JSON."""
    return {"members": [asdict(record) for record in records]}


MEMBER_HEAD = (
    "",
    "member",
    "score",
    "normalized score",
    "throughput / link rate",
    "delay / RTT",
    "rules",
    "CPU time",
)
MEMBER_EXPLANATION = (
    "Scores are means over fresh specimens with standard errors, each by its member's own "
    "objective; the normalized score is log2(throughput / link rate) - log2(delay / RTT) per "
    "sender. Throughput and delay are medians."
)


def member_cells(number: int, record: MemberRecord) -> tuple[str, ...]:
    """As MEMBER_HEAD says; the picture has the same numbers."""
    comparison = record.comparison
    return (
        str(number),
        record.name,
        with_error(comparison.score),
        with_error(comparison.normalized_score),
        figure(comparison.throughput_over_link_rate),
        figure(comparison.delay_over_rtt),
        str(record.rules),
        duration(record.cpu_seconds),
    )


def render(name: str, records: Sequence[MemberRecord], *, picture_png: bytes) -> str:
    """The page as HTML."""
    rows = [member_cells(number, record) for number, record in enumerate(records, start=1)]
    return wording.document(
        title=f"{name}: a campaign",
        sections=[
            f"<h1>{wording.escape(name)}</h1>",
            wording.paragraph(f"A campaign of {several(len(records), 'design')}.", style="lead"),
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
