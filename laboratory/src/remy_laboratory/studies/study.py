"""Reads studies: YAML files that each describe a figure or table of a paper.

A file describes the networks, the senders, the measured quantities, the published values and the
plot; or it explains why the figure cannot be reproduced. docs/reference/studies.md describes the
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
    key_paths,
    merge_networks,
    read_network,
    study_network,
    value_check,
    with_value,
)
from remy_laboratory.studies.reading import (
    NOT_NEGATIVE_NUMBER,
    PERCENTAGE,
    RUNS,
    Amount,
    Check,
    Fields,
    read_amount,
)

_MAX_FILE_BYTES = 1_000_000
#: Name of another simulator that rows may use.
NS3 = "ns3"


class Statistic(StrEnum):
    """A statistic over the samples of a cell. A sample is a sender in a run, unless a measure says
    otherwise."""

    MEAN = "mean"
    MEDIAN = "median"
    DEVIATION = "deviation"
    PERCENTILE_5 = "percentile_5"
    PERCENTILE_95 = "percentile_95"


class Measure(StrEnum):
    """A measured quantity, with the unit in its name."""

    #: Per sender: packets that count as throughput, over its time on.
    THROUGHPUT_MBPS = "throughput_mbps"
    #: Per sender: mean over its ACKs of the RTT of each packet.
    RTT_MS = "rtt_ms"
    #: Per sender: RTT minus the RTT of a packet on the empty network.
    QUEUEING_DELAY_MS = "queueing_delay_ms"
    #: Per sender that samples RTTs: the latest sample, averaged over delivered packets or over
    #: time.
    SAMPLED_RTT_MS = "sampled_rtt_ms"
    SAMPLED_RTT_OVER_TIME_MS = "sampled_rtt_over_time_ms"
    #: Per run: percentiles of the RTTs of all packets.
    RTT_P50_MS = "rtt_p50_ms"
    RTT_P95_MS = "rtt_p95_ms"
    RTT_P99_MS = "rtt_p99_ms"
    #: ln(mean throughput / expected fair share) - ln(mean RTT / RTT without queueing).
    OBJECTIVE = "objective"
    #: ln(mean throughput / link rate) - ln(mean RTT / RTT without queueing).
    OBJECTIVE_OVER_LINK = "objective_over_link"
    #: Per sender: its throughput over the total throughput of the run.
    SHARE = "share"
    #: Per run: total throughput over the link's capacity during the whole run.
    UTILIZATION = "utilization"
    #: Per run: Jain's index of the senders' throughputs, (sum)^2 / (n sum of squares).
    JAIN = "jain"
    #: Per run: smallest throughput of a sender over the largest.
    SMALLEST_OVER_LARGEST = "smallest_over_largest"
    #: Per flow: time from its first packet to its last ACK.
    COMPLETION_MS = "completion_ms"
    #: Per run: percentiles of the completion times of all flows.
    COMPLETION_P50_MS = "completion_p50_ms"
    COMPLETION_P95_MS = "completion_p95_ms"
    COMPLETION_P99_MS = "completion_p99_ms"
    #: Per run: packets lost over packets sent.
    LOSS = "loss"
    #: Per run: retransmissions.
    PACKETS_RETRANSMITTED = "packets_retransmitted"
    #: Per run: total throughput over mean RTT, Mbit/s per ms.
    POWER = "power"
    #: Per recorded run with two senders: receive rate of a sender while it is on alone, over its
    #: rate while both are on.
    ALONE_OVER_SHARED = "alone_over_shared"
    #: Per sender: fraction of the time that it is on.
    ON_FRACTION = "on_fraction"
    #: Per recorded run: mean over time of Jain's index of the packets received between two
    #: records, while all senders are on.
    RECORDED_JAIN = "recorded_jain"
    #: Per recorded run: time from when the last sender is on until every sender is within a quarter
    #: of an equal share in six consecutive records; the remaining time if that never happens.
    CONVERGENCE_S = "convergence_s"


class Drawing(StrEnum):
    """The kind of a figure's plot."""

    #: Throughput over queueing delay, which increases to the left: a point per sender and run,
    #: medians and ellipses.
    ELLIPSES = "ellipses"
    #: A measure over the swept field, a line per row.
    CURVES = "curves"
    #: A measure per row.
    BARS = "bars"
    #: The cumulative distribution of the samples.
    DISTRIBUTION = "distribution"
    #: Packets received over time, in one run.
    SEQUENCE = "sequence"
    #: Packets in the queue over time, in one run.
    QUEUE = "queue"
    #: Jain's index over the length of the interval in which packets are counted, while all
    #: senders are on.
    FAIRNESS = "fairness"
    NONE = "none"


#: Plots and measures that need runs recorded over time.
RECORDED_DRAWINGS = (Drawing.SEQUENCE, Drawing.QUEUE, Drawing.FAIRNESS)
RECORDED_MEASURES = (Measure.ALONE_OVER_SHARED, Measure.RECORDED_JAIN, Measure.CONVERGENCE_S)


@dataclass(frozen=True)
class StudySweep:
    """A field that varies between cells, and its values."""

    field: str
    values: Amount
    label: str


@dataclass(frozen=True)
class StudyRow:
    """Senders that run in each cell: one or several protocols or RemyCCs."""

    name: str
    senders: tuple[SenderSpec, ...]
    network: Mapping[str, Any]
    """Keys that override the figure's network."""
    time_unit_ms: float
    design_range: tuple[float, float] | None
    """Range of the swept field for which a RemyCC was designed; None if it is unknown."""
    simulator: str = ""
    """Name of another simulator, as in --with; empty for this project's."""
    initial_window_packets: int = 0
    """Initial window over TCP in another simulator; 0 for the window of the table's rules."""

    def published_tables(self) -> list[str]:
        """Returns the names of RemyCC files that others published."""
        names = [each.remycc for each in self.senders if each.remycc is not None]
        return [name for name in names if name.startswith(PUBLISHED)]


@dataclass(frozen=True)
class MeasuredQuantity:
    """A number computed from a row's samples, or a ratio or difference of two rows."""

    row: str
    over: str | None
    measure: Measure
    statistic: Statistic
    at: float | None
    """Swept value; the nearest simulated one is used. None for the mean over all."""
    over_at: float | None
    group: int | None
    """Index of the row's kind of senders, from 0; None for all senders."""
    over_group: int | None
    low: float | None
    """Lower bound of swept values that are averaged; `high` is the upper bound."""
    high: float | None
    is_difference: bool
    """Whether the two rows are subtracted instead of divided."""


@dataclass(frozen=True)
class Expectation:
    """A value or bound published by a paper or computed by ns-2, and the tolerance."""

    claim: str
    quantity: MeasuredQuantity
    value: float | None
    minimum: float | None
    maximum: float | None
    source: str
    unless: str
    """Reason for a difference, if it is known or likely."""
    tested: str
    """The run that tested this reason; empty if it was not tested."""

    def holds(self, measured: float, error: float) -> bool:
        """Returns whether a measured value meets the bounds within two standard errors."""
        above = self.minimum is None or measured + 2 * error >= self.minimum
        return above and (self.maximum is None or measured - 2 * error <= self.maximum)


@dataclass(frozen=True)
class Picture:
    """The plot of a figure."""

    drawing: Drawing
    measure: Measure
    statistic: Statistic
    sigma: float
    """Half axes of the ellipses, in standard deviations."""
    logarithmic_x: bool
    logarithmic_y: bool
    frontier: tuple[str, ...]
    """Rows whose medians are connected by a line."""
    bound: bool
    """Whether the upper bound is drawn; it is 0, for the objective only."""
    shown: bool
    """Whether the Markdown page shows the plot."""
    curves_file: str
    """File with published curves in the subdirectory `learnability` of REMY_REFERENCE_DIR."""


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
    """Reason why the figure cannot be reproduced; empty if it can."""
    instead: str
    """A sentence about a substitute for the figure, or a difference from the paper."""

    @property
    def simulators(self) -> frozenset[str]:
        """Names of the other simulators that its rows use."""
        return frozenset(row.simulator for row in self.rows if row.simulator)

    @property
    def key(self) -> str:
        """The figure's name on the command line, study/figure."""
        return f"{self.study}/{self.name}"


def _read_sweep(fields: Fields | None) -> StudySweep | None:
    if fields is None:
        return None
    field = fields.text("field", None)
    check = value_check(field)
    if check is None:
        fields.fail(
            "field", f"is {show(field)}, which cannot be swept; a number can, e.g. buffer.bdp"
        )
    sweep = StudySweep(
        field, read_amount(fields, "values", check, many=True), fields.text("label", field)
    )
    fields.reject_remaining()
    return sweep


def _read_range(fields: Fields, field: str) -> tuple[float, float] | None:
    tree = fields.take(field)
    if tree is None:
        return None
    if not isinstance(tree, list) or len(tree) != 2:
        fields.fail(field, f"is {show(tree)}, but must be [low, high]")
    low, high = (fields.check_number(field, each, NOT_NEGATIVE_NUMBER) for each in tree)
    if low > high:
        fields.fail(field, f"is {show(tree)}, but the first number must be the lower one")
    return low, high


_WINDOW: Check = (lambda value: 1 <= value <= 1000 and value == int(value), "1 to 1000")


def _read_row(fields: Fields) -> StudyRow:
    tree = fields.take("sender")
    senders = []
    for text in tree if isinstance(tree, list) else [tree]:
        if not isinstance(text, str):
            fields.fail("sender", f"is {show(text)}, but must be text as in simulate --sender")
        try:
            senders.append(parse_sender(text))
        except ValueError as error:
            fields.fail("sender", f"is {show(text)}: {error}")
    if not senders:
        fields.fail("sender", "is empty, but must name a sender")
    row = StudyRow(
        name=fields.text("name", None),
        senders=tuple(senders),
        network=read_network(fields.mapping("network")),
        time_unit_ms=fields.number("time_unit_ms") or 1.0,
        design_range=_read_range(fields, "design_range"),
        simulator=fields.text("simulator"),
        initial_window_packets=int(fields.number("initial_window_packets", _WINDOW) or 0),
    )
    if row.simulator not in ("", NS3):
        fields.fail("simulator", f"is {show(row.simulator)}, but must be {NS3}")
    is_on_tcp = any(each.transport and each.transport.name == "tcp" for each in row.senders)
    if row.initial_window_packets and not (row.simulator and is_on_tcp):
        fields.fail("initial_window_packets", f"is only allowed for rows on tcp in {NS3}")
    fields.reject_remaining()
    return row


_FINITE_NUMBER: Check = (lambda value: abs(value) < float("inf"), "a number")
_GROUP: Check = (lambda value: 0 <= value < 100 and value == int(value), "0 to 99")


def _read_expectation(fields: Fields, rows: Sequence[str]) -> Expectation:
    def row_name(field: str, default: str | None) -> str:
        name = fields.text(field, default)
        if name and name not in rows:
            fields.fail(field, f"is {show(name)}, which is not a row; {suggest(name, list(rows))}")
        return name

    groups = [fields.number(name, _GROUP) for name in ("group", "over_group")]
    group, over_group = (None if each is None else int(each) for each in groups)
    quantity = MeasuredQuantity(
        row=row_name("row", None),
        over=row_name("over", "") or None,
        measure=fields.choice("measure", Measure, Measure.THROUGHPUT_MBPS),
        statistic=fields.choice("statistic", Statistic, Statistic.MEAN),
        at=fields.number("at", NOT_NEGATIVE_NUMBER),
        over_at=fields.number("over_at", NOT_NEGATIVE_NUMBER),
        group=group,
        over_group=over_group,
        low=fields.number("from", NOT_NEGATIVE_NUMBER),
        high=fields.number("to", NOT_NEGATIVE_NUMBER),
        is_difference=fields.flag("difference"),
    )
    value = fields.number("value", _FINITE_NUMBER)
    minimum, maximum = (
        fields.number("at_least", _FINITE_NUMBER),
        fields.number("at_most", _FINITE_NUMBER),
    )
    within = fields.take("within")
    if value is not None:
        margin = _read_margin(fields, value, within)
        minimum, maximum = value - margin, value + margin
    elif within is not None or (minimum is None and maximum is None):
        fields.fail("", "must have value and within, or at_least, or at_most")
    expectation = Expectation(
        claim=fields.text("claim"),
        quantity=quantity,
        value=value,
        minimum=minimum,
        maximum=maximum,
        source=fields.text("source", None),
        unless=fields.text("unless"),
        tested=fields.text("tested"),
    )
    fields.reject_remaining()
    return expectation


def _read_margin(fields: Fields, value: float, within: Tree) -> float:
    if isinstance(within, str) and (share := PERCENTAGE.fullmatch(within)):
        return abs(value) * float(share[1]) / 100
    if within is None or isinstance(within, str):
        fields.fail("within", f"is {show(within)}, but must be a percentage, e.g. 5 %, or a number")
    return fields.check_number("within", within, NOT_NEGATIVE_NUMBER)


def _read_picture(fields: Fields | None, rows: Sequence[str], source: str) -> Picture:
    fields = fields or Fields({"drawing": "none"}, source, "picture")
    frontier = fields.take("frontier") or []
    if not isinstance(frontier, list) or any(name not in rows for name in frontier):
        fields.fail("frontier", f"is {show(frontier)}, but must be a list of rows")
    picture = Picture(
        drawing=fields.choice("drawing", Drawing, Drawing.CURVES),
        measure=fields.choice("measure", Measure, Measure.THROUGHPUT_MBPS),
        statistic=fields.choice("statistic", Statistic, Statistic.MEAN),
        sigma=fields.number("sigma") or 1.0,
        logarithmic_x=fields.flag("logarithmic_x"),
        logarithmic_y=fields.flag("logarithmic_y"),
        frontier=tuple(str(name) for name in frontier),
        bound=fields.flag("bound"),
        shown=fields.flag("shown"),
        curves_file=fields.text("curves_file"),
    )
    fields.reject_remaining()
    return picture


def read_study(path: Path) -> FigureStudy:
    """Reads a study's file. Raises SpecError or FileError."""
    source = str(path)
    text = read_file(path, limit=_MAX_FILE_BYTES).decode("utf-8", "replace")
    return parse_study(text, source, study=path.parent.name, name=path.stem)


def parse_study(text: str, source: str, *, study: str, name: str) -> FigureStudy:
    """Parses the text of a study's file. Raises SpecError."""
    fields = Fields(read_yaml(text, source), source, "")
    rows = tuple(_read_row(each) for each in fields.mappings("rows"))
    names = [row.name for row in rows]
    for index, name_of_row in enumerate(names):
        if name_of_row in names[:index]:
            fields.fail("rows", f"has {show(name_of_row)} twice")
    not_reproducible = fields.text("not_reproducible")
    if not rows and not not_reproducible:
        fields.fail("rows", "is empty; name what to run, or give the reason in not_reproducible")
    figure = FigureStudy(
        study=study,
        name=name,
        title=fields.text("title", None),
        source=fields.text("source", None),
        about=fields.text("about"),
        network=read_network(fields.mapping("network")),
        seconds=fields.number("seconds") or 100.0,
        runs=read_amount(fields, "runs", RUNS, many=False) if rows else Amount((1,), (1,)),
        sweep=_read_sweep(fields.mapping("sweep")),
        rows=rows,
        expectations=tuple(_read_expectation(each, names) for each in fields.mappings("expect")),
        picture=_read_picture(fields.mapping("picture"), names, source),
        record_every_ms=fields.number("record_every_ms"),
        not_reproducible=not_reproducible,
        instead=fields.text("instead"),
    )
    _check_networks(fields, figure)
    fields.reject_remaining()
    return figure


#: Keys of a network that rows in ns-3, and the rows of the same figure, may use.
_NS3_KEYS = (
    *("rate_mbps", "rtt_ms", "buffer.packets", "packet_bytes"),
    *("senders", "traffic.exponential_time.mean_ms", "traffic.exponential_bytes.mean_bytes"),
    *("traffic.mean_off_ms", "first_on_mean_ms"),
)
_REQUIRED_KEYS = (("rate_mbps", "links"), ("rtt_ms", "routes"), ("traffic",))


def check_network(
    fields: Fields, network: Mapping[str, Any], name: str, senders: Sequence[SenderSpec]
) -> None:
    """Raises SpecError if these senders cannot run on the network. Trace files may be missing."""
    for names in _REQUIRED_KEYS:
        if not any(each in network for each in names):
            fields.fail("network", f"lacks {' or '.join(names)} for {show(name)}")
    try:
        study_network(senders, network)
    except FileError:
        return
    except SpecError as error:
        fields.fail("network", f"is invalid for {show(name)}: {error}")


def _check_networks(fields: Fields, study: FigureStudy) -> None:
    for row in study.rows:
        network = merge_networks(study.network, row.network)
        if study.sweep:
            network = with_value(network, study.sweep.field, study.sweep.values.full[-1])
        check_network(fields, network, row.name, row.senders)
        others = [path for path in key_paths(network) if path not in _NS3_KEYS]
        if study.simulators and (others or any(each.remycc is None for each in row.senders)):
            what = f"has {others[0]}" if others else f"has no RemyCC in {show(row.name)}"
            fields.fail(
                "network", f"{what}; figures with rows in ns-3 allow {', '.join(_NS3_KEYS)}"
            )
    drawing = study.picture.drawing
    if drawing == Drawing.CURVES and study.rows and study.sweep is None:
        fields.fail("picture", "draws curves, but the study has no sweep")
    measured = [each.quantity.measure for each in study.expectations]
    needs = drawing in RECORDED_DRAWINGS or any(each in RECORDED_MEASURES for each in measured)
    if needs and study.record_every_ms is None:
        fields.fail("record_every_ms", "is missing, but the plot or a measure needs recorded runs")


def find_studies(folder: Path) -> list[Path]:
    """Returns all study files in a directory, sorted so that figure 2 is before figure 10."""

    def key(path: Path) -> tuple[str, list[tuple[int, str]]]:
        parts = re.findall(r"[0-9]+|[^0-9]+", path.stem)
        return path.parent.name, [
            (int(part), "") if part.isdigit() else (-1, part) for part in parts
        ]

    return sorted(folder.glob("*/*.yaml"), key=key)
