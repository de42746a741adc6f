"""Studies as data: a figure of a paper, read strictly from a YAML file.

A file says on which networks what ran, what is measured, what the paper found, and how it was
drawn; or why none of this can be done, and what stands in. docs/reference/studies.md describes the
fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from remy_farm.files import FileError, read_file
from remy_farm.specification import SpecError
from remy_farm.specification.reading import Tree, read_yaml, suggest
from remy_farm.specification.schema import show
from remy_farm.specification.senders import SenderSpec, parse_sender
from remy_laboratory.studies.networks import (
    PUBLISHED,
    layered,
    network_of,
    paths_in,
    study_network,
    varied,
    varied_field,
)
from remy_laboratory.studies.reading import (
    FROM_0,
    PER_CENT,
    RUNS,
    Amount,
    Check,
    Fields,
    amount_of,
)

_LARGEST_FILE = 1_000_000
#: A simulator of others that rows may ask for.
NS3 = "ns3"


class Statistic(StrEnum):
    """What of the samples of a cell counts; a sample is a sender of a run unless a measure says
    otherwise."""

    MEAN = "mean"
    MEDIAN = "median"
    DEVIATION = "deviation"
    PERCENTILE_5 = "percentile_5"
    PERCENTILE_95 = "percentile_95"


class Measure(StrEnum):
    """What is measured."""

    #: Of a sender: what counts as throughput over the time that it was on.
    THROUGHPUT_MBPS = "throughput_mbps"
    #: Of a sender: mean over its ACKs of each packet's own.
    RTT_MS = "rtt_ms"
    #: The same, less what a lone packet takes.
    QUEUEING_DELAY_MS = "queueing_delay_ms"
    #: Of a sender that samples RTTs: mean over packets handed on of the latest sample; over time.
    SAMPLED_RTT_MS = "sampled_rtt_ms"
    SAMPLED_RTT_OVER_TIME_MS = "sampled_rtt_over_time_ms"
    #: ln(mean throughput / expected fair share) - ln(mean RTT / RTT without queueing).
    OBJECTIVE = "objective"
    #: ln(mean throughput / link rate) - ln(mean RTT / RTT without queueing).
    OBJECTIVE_OVER_LINK = "objective_over_link"
    #: Of a sender: its throughput over all senders' of the run.
    SHARE = "share"
    #: Of a run: all that counts as throughput over what the link can carry in the whole time.
    UTILIZATION = "utilization"
    #: Of a run: of the senders' throughputs, (sum)^2 / (n sum of squares).
    JAIN = "jain"
    #: Of a run: smallest throughput of a sender over the largest.
    SMALLEST_OVER_LARGEST = "smallest_over_largest"
    #: Of a flow: from its first sending to its last ACK.
    COMPLETION_MS = "completion_ms"
    #: Of a run: packets lost over packets sent.
    LOSS = "loss"
    #: Of a run: summed throughput over mean RTT, Mbit/s per ms.
    POWER = "power"
    #: Of a run that was recorded, where two senders are there: packets received in time that a
    #: sender was on alone, over those in as much time beside another.
    ALONE_OVER_SHARED = "alone_over_shared"
    #: Of a sender: share of the time that it was on.
    ON_FRACTION = "on_fraction"
    #: Of a run that was recorded: Jain's index of what senders received between two records, while
    #: all are on; its mean.
    RECORDED_JAIN = "recorded_jain"
    #: Of a run that was recorded: from when the last sender is on, how long until six records in a
    #: row have every sender within a quarter of equal shares of the link; all that is left if none.
    CONVERGENCE_S = "convergence_s"


class Drawing(StrEnum):
    """How a figure is drawn."""

    #: Throughput over queueing delay, which grows to the left: a point for each sender and run,
    #: medians and ellipses.
    ELLIPSES = "ellipses"
    #: A measure over what is varied, a line for each row.
    CURVES = "curves"
    #: A measure of each row.
    BARS = "bars"
    #: How large a part of the samples is at most so large.
    DISTRIBUTION = "distribution"
    #: Packets received over time, of one run.
    SEQUENCE = "sequence"
    #: Packets that wait, over time, of one run.
    QUEUE = "queue"
    #: Jain's index over the time in which packets are counted, while all senders are on.
    FAIRNESS = "fairness"
    NONE = "none"


#: What needs a recording.
RECORDED_DRAWINGS = (Drawing.SEQUENCE, Drawing.QUEUE, Drawing.FAIRNESS)
RECORDED_MEASURES = (Measure.ALONE_OVER_SHARED, Measure.RECORDED_JAIN, Measure.CONVERGENCE_S)


@dataclass(frozen=True)
class StudySweep:
    """What is varied from cell to cell."""

    field: str
    values: Amount
    label: str


@dataclass(frozen=True)
class StudyRow:
    """What ran: all senders of a protocol or RemyCC, or of several that meet."""

    name: str
    senders: tuple[SenderSpec, ...]
    network: Mapping[str, Any]
    """What is other than in the figure's network."""
    time_unit_ms: float
    design_range: tuple[float, float] | None
    """Of what is varied, where a RemyCC was designed for a range of it."""
    simulator: str = ""
    """Another than this project's, by what --with calls it."""
    initial_window_packets: int = 0
    """There, on TCP: what may leave before the first ACK; 0: as the table's rules say."""

    def published_tables(self) -> list[str]:
        """Names of files that others published."""
        names = [each.remycc for each in self.senders if each.remycc is not None]
        return [name for name in names if name.startswith(PUBLISHED)]


@dataclass(frozen=True)
class MeasuredQuantity:
    """A number that a figure comes to: of a row, or of one row over another."""

    row: str
    over: str | None
    measure: Measure
    statistic: Statistic
    at: float | None
    """The value of what is varied, the nearest that was simulated; none: the mean over all."""
    over_at: float | None
    group: int | None
    """Which of the row's kinds of senders, from 0; none: all together."""
    over_group: int | None
    low: float | None
    """Where something is varied: from here, to `high`."""
    high: float | None
    is_difference: bool
    """Of one row less another, in place of the ratio."""


@dataclass(frozen=True)
class Expectation:
    """What a paper or ns-2 found, and how near to it counts as the same."""

    claim: str
    quantity: MeasuredQuantity
    value: float | None
    least: float | None
    most: float | None
    source: str
    unless: str
    """Why it differs here, where that is known or likely."""
    tested: str
    """By what run that was told; empty where it was not."""

    def holds(self, measured: float, error: float) -> bool:
        """Whether it is so here, as far as a standard error allows to tell: two of them do."""
        above = self.least is None or measured + 2 * error >= self.least
        return above and (self.most is None or measured - 2 * error <= self.most)


@dataclass(frozen=True)
class Picture:
    """How a figure is drawn."""

    drawing: Drawing
    measure: Measure
    statistic: Statistic
    sigma: float
    """Half axes of ellipses, in standard deviations."""
    logarithmic_x: bool
    logarithmic_y: bool
    frontier: tuple[str, ...]
    """Rows whose medians are joined."""
    bound: bool
    """Whether what nobody can exceed is drawn (objective only: 0)."""
    shown: bool
    """Whether the page in short shows it."""
    curves_file: str
    """A file of the folder learnability of REMY_REFERENCE_DIR: published curves to draw beside."""


@dataclass(frozen=True)
class FigureStudy:
    """One figure or table of a paper."""

    study: str
    name: str
    title: str
    source: str
    about: str
    network: Mapping[str, Any]
    seconds: float
    runs: Amount
    sweep: StudySweep | None
    rows: tuple[StudyRow, ...]
    expectations: tuple[Expectation, ...]
    picture: Picture
    record_every_ms: float | None
    not_reproducible: str
    """Why it cannot be done; empty where it can."""
    instead: str
    """What stands in, or differs from the paper, in one sentence."""

    @property
    def simulators(self) -> frozenset[str]:
        """Others than this project's that its rows need."""
        return frozenset(row.simulator for row in self.rows if row.simulator)

    @property
    def key(self) -> str:
        """As it is called on the command line."""
        return f"{self.study}/{self.name}"


def _sweep(fields: Fields | None) -> StudySweep | None:
    if fields is None:
        return None
    field = fields.text("field", None)
    check = varied_field(field)
    if check is None:
        fields.fail(
            "field", f"is {show(field)}, which cannot be varied; a number can, as buffer.bdp"
        )
    sweep = StudySweep(
        field, amount_of(fields, "values", check, many=True), fields.text("label", field)
    )
    fields.end()
    return sweep


def _range(fields: Fields, field: str) -> tuple[float, float] | None:
    tree = fields.take(field)
    if tree is None:
        return None
    if not isinstance(tree, list) or len(tree) != 2:
        fields.fail(field, f"is {show(tree)}, but must be [low, high]")
    low, high = (fields.checked(field, each, FROM_0) for each in tree)
    if low > high:
        fields.fail(field, f"is {show(tree)}, whose first number must be the lower")
    return low, high


_WINDOW: Check = (lambda value: 1 <= value <= 1000 and value == int(value), "1 to 1000")


def _row(fields: Fields) -> StudyRow:
    tree = fields.take("sender")
    words = []
    for text in tree if isinstance(tree, list) else [tree]:
        if not isinstance(text, str):
            fields.fail("sender", f"is {show(text)}, but must be words as --sender takes them")
        try:
            words.append(parse_sender(text))
        except ValueError as problem:
            fields.fail("sender", f"is {show(text)}: {problem}")
    if not words:
        fields.fail("sender", "is empty, but must name who sends")
    row = StudyRow(
        name=fields.text("name", None),
        senders=tuple(words),
        network=network_of(fields.part("network")),
        time_unit_ms=fields.number("time_unit_ms") or 1.0,
        design_range=_range(fields, "design_range"),
        simulator=fields.text("simulator"),
        initial_window_packets=int(fields.number("initial_window_packets", _WINDOW) or 0),
    )
    if row.simulator not in ("", NS3):
        fields.fail("simulator", f"is {show(row.simulator)}, but must be {NS3}")
    is_on_tcp = any(each.transport and each.transport.name == "tcp" for each in row.senders)
    if row.initial_window_packets and not (row.simulator and is_on_tcp):
        fields.fail("initial_window_packets", f"is only for rows on tcp in {NS3}")
    fields.end()
    return row


_ANY: Check = (lambda value: abs(value) < float("inf"), "a number")
_GROUP: Check = (lambda value: 0 <= value < 100 and value == int(value), "0 to 99")


def _expectation(fields: Fields, rows: Sequence[str]) -> Expectation:
    def row_name(field: str, usual: str | None) -> str:
        name = fields.text(field, usual)
        if name and name not in rows:
            fields.fail(field, f"is {show(name)}, which is no row; {suggest(name, list(rows))}")
        return name

    groups = [fields.number(name, _GROUP) for name in ("group", "over_group")]
    group, over_group = (None if each is None else int(each) for each in groups)
    quantity = MeasuredQuantity(
        row=row_name("row", None),
        over=row_name("over", "") or None,
        measure=fields.word("measure", Measure, Measure.THROUGHPUT_MBPS),
        statistic=fields.word("statistic", Statistic, Statistic.MEAN),
        at=fields.number("at", FROM_0),
        over_at=fields.number("over_at", FROM_0),
        group=group,
        over_group=over_group,
        low=fields.number("from", FROM_0),
        high=fields.number("to", FROM_0),
        is_difference=fields.flag("difference"),
    )
    value = fields.number("value", _ANY)
    least, most = fields.number("at_least", _ANY), fields.number("at_most", _ANY)
    within = fields.take("within")
    if value is not None:
        margin = _margin(fields, value, within)
        least, most = value - margin, value + margin
    elif within is not None or (least is None and most is None):
        fields.fail("", "must have value and within, or at_least, or at_most")
    found = Expectation(
        claim=fields.text("claim"),
        quantity=quantity,
        value=value,
        least=least,
        most=most,
        source=fields.text("source", None),
        unless=fields.text("unless"),
        tested=fields.text("tested"),
    )
    fields.end()
    return found


def _margin(fields: Fields, value: float, within: Tree) -> float:
    if isinstance(within, str) and (share := PER_CENT.fullmatch(within)):
        return abs(value) * float(share[1]) / 100
    if within is None or isinstance(within, str):
        fields.fail("within", f"is {show(within)}, but must be as 5 %, or a number")
    return fields.checked("within", within, FROM_0)


def _picture(fields: Fields | None, rows: Sequence[str], source: str) -> Picture:
    fields = fields or Fields({"drawing": "none"}, source, "picture")
    frontier = fields.take("frontier") or []
    if not isinstance(frontier, list) or any(name not in rows for name in frontier):
        fields.fail("frontier", f"is {show(frontier)}, but must be a list of rows")
    picture = Picture(
        drawing=fields.word("drawing", Drawing, Drawing.CURVES),
        measure=fields.word("measure", Measure, Measure.THROUGHPUT_MBPS),
        statistic=fields.word("statistic", Statistic, Statistic.MEAN),
        sigma=fields.number("sigma") or 1.0,
        logarithmic_x=fields.flag("logarithmic_x"),
        logarithmic_y=fields.flag("logarithmic_y"),
        frontier=tuple(str(name) for name in frontier),
        bound=fields.flag("bound"),
        shown=fields.flag("shown"),
        curves_file=fields.text("curves_file"),
    )
    fields.end()
    return picture


def read_study(path: Path) -> FigureStudy:
    """One file. Raises SpecError or FileError with one sentence."""
    source = str(path)
    text = read_file(path, limit=_LARGEST_FILE).decode("utf-8", "replace")
    return parse_study(text, source, study=path.parent.name, name=path.stem)


def parse_study(text: str, source: str, *, study: str, name: str) -> FigureStudy:
    """Of a file's text. Raises SpecError with one sentence."""
    fields = Fields(read_yaml(text, source), source, "")
    rows = tuple(_row(each) for each in fields.parts("rows"))
    names = [row.name for row in rows]
    for place, each in enumerate(names):
        if each in names[:place]:
            fields.fail("rows", f"has {show(each)} twice")
    not_reproducible = fields.text("not_reproducible")
    if not rows and not not_reproducible:
        fields.fail("rows", "is empty, but must name what ran; or not_reproducible says why none")
    found = FigureStudy(
        study=study,
        name=name,
        title=fields.text("title", None),
        source=fields.text("source", None),
        about=fields.text("about"),
        network=network_of(fields.part("network")),
        seconds=fields.number("seconds") or 100.0,
        runs=amount_of(fields, "runs", RUNS, many=False) if rows else Amount((1,), (1,)),
        sweep=_sweep(fields.part("sweep")),
        rows=rows,
        expectations=tuple(_expectation(each, names) for each in fields.parts("expect")),
        picture=_picture(fields.part("picture"), names, source),
        record_every_ms=fields.number("record_every_ms"),
        not_reproducible=not_reproducible,
        instead=fields.text("instead"),
    )
    _check_networks(fields, found)
    fields.end()
    return found


#: What rows in ns-3 and those beside them may say of a network.
_IN_NS3 = (
    *("rate_mbps", "rtt_ms", "buffer.packets", "packet_bytes"),
    *("senders", "traffic.exponential_time.mean_ms", "traffic.exponential_bytes.mean_bytes"),
    *("traffic.mean_off_ms", "first_on_mean_ms"),
)
_NEEDED = (("rate_mbps", "links"), ("rtt_ms", "routes"), ("traffic",))


def check_network(
    fields: Fields, network: Mapping[str, Any], name: str, senders: Sequence[SenderSpec]
) -> None:
    """Refuses what these senders cannot be on; recordings may be elsewhere."""
    for names in _NEEDED:
        if not any(each in network for each in names):
            fields.fail("network", f"says no {' or '.join(names)} for {show(name)}")
    try:
        study_network(senders, network)
    except FileError:
        return
    except SpecError as problem:
        fields.fail("network", f"cannot be that of {show(name)}: {problem}")


def _check_networks(fields: Fields, study: FigureStudy) -> None:
    for row in study.rows:
        network = layered(study.network, row.network)
        if study.sweep:
            network = varied(network, study.sweep.field, study.sweep.values.full[-1])
        check_network(fields, network, row.name, row.senders)
        others = [path for path in paths_in(network) if path not in _IN_NS3]
        if study.simulators and (others or any(each.remycc is None for each in row.senders)):
            what = f"has {others[0]}" if others else f"has no RemyCC in {show(row.name)}"
            fields.fail("network", f"{what}; beside rows in ns-3 it may have {', '.join(_IN_NS3)}")
    drawing = study.picture.drawing
    if drawing == Drawing.CURVES and study.rows and study.sweep is None:
        fields.fail("picture", "draws curves, but sweep says nothing that is varied")
    measured = [each.quantity.measure for each in study.expectations]
    needs = drawing in RECORDED_DRAWINGS or any(each in RECORDED_MEASURES for each in measured)
    if needs and study.record_every_ms is None:
        fields.fail("record_every_ms", "is not given, but what is drawn or measured needs it")


def find_studies(folder: Path) -> list[Path]:
    """All files of a folder of studies, a folder for each study; figure 2 before figure 10."""

    def key(path: Path) -> tuple[str, list[tuple[int, str]]]:
        parts = re.findall(r"[0-9]+|[^0-9]+", path.stem)
        return path.parent.name, [
            (int(part), "") if part.isdigit() else (-1, part) for part in parts
        ]

    return sorted(folder.glob("*/*.yaml"), key=key)
