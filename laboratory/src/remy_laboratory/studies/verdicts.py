"""Computes the results of a figure: samples of cells, quantities, and verdicts on expectations."""

from __future__ import annotations

import csv
import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from remy_farm.evaluation.measures import (
    PACKET_MEASURES,
    PacketMeasures,
    measure_packets,
    measure_senders,
    present,
)
from remy_farm.files import FileError
from remy_laboratory.studies.cells import (
    Cell,
    CellBatch,
    CellRunner,
    OnCells,
    OtherSimulators,
    Tables,
    read_tables,
    row_cells,
)
from remy_laboratory.studies.networks import (
    packet_bytes,
    reference_folder,
    sender_counts,
    uses_traces,
    value_at,
)
from remy_laboratory.studies.study import (
    Expectation,
    FigureStudy,
    Measure,
    MeasuredQuantity,
    Statistic,
    StudyRow,
)
from remy_proto.v1 import evaluation_pb2
from remy_simulator import log2
from remy_simulator.messages import sampled_rtts, transport_results

_BITS_PER_BYTE = 8
_MS_PER_SECOND = 1000.0
_LN_2 = math.log(2.0)


@dataclass(frozen=True)
class SenderSample:
    """The results of one sender in one run."""

    run: int
    group: int
    """Index of the row's kind of senders."""
    sender: int
    throughput_mbps: float
    rtt_ms: float | None
    on_fraction: float
    packets: int
    """Packets that count as throughput."""
    sent: int
    lost: int
    completions_ms: tuple[float, ...]
    sampled_rtt_ms: float | None = None
    sampled_rtt_over_time_ms: float | None = None


#: Measures of one run's packets, by the index of the kind of senders; None: of all senders.
PacketsByGroup: TypeAlias = Mapping[int | None, PacketMeasures]
#: Time series of a run: arrays with a row per time.
Recorded: TypeAlias = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class CellSamples:
    """All runs of one row at one swept value."""

    x: float | None
    network: Mapping[str, Any]
    senders: int
    seconds: float
    samples: tuple[SenderSample, ...]
    recordings: tuple[Recorded, ...] = ()
    packets: tuple[PacketsByGroup, ...] = ()
    """Measures of each run's packets."""

    @property
    def lone_rtt_ms(self) -> float:
        """The RTT of a packet on the empty network: path RTT plus one transmission time, ms."""
        service_ms = packet_bytes(self.network) * _BITS_PER_BYTE / _MS_PER_SECOND
        return float(self.network["rtt_ms"] + service_ms / self.network["rate_mbps"])

    @property
    def fair_share_mbps(self) -> float:
        """A sender's expected throughput if all senders that are on share the link equally.

        With n senders that are each on with probability p, it is link rate * (1 - (1 - p)^n) / (n
        p).
        """
        on_ms, off_ms = (
            value_at(self.network, "traffic.exponential_time.mean_ms"),
            value_at(self.network, "traffic.mean_off_ms") or 0.0,
        )
        on = 1.0 if on_ms is None else on_ms / (on_ms + off_ms)
        idle = (1.0 - on) ** self.senders
        return float(self.network["rate_mbps"] * (1.0 - idle) / (self.senders * on))

    def subset(self, part: int, parts: int) -> CellSamples:
        """Returns every `parts`-th run, starting with run `part`."""
        return dataclasses.replace(
            self,
            samples=tuple(each for each in self.samples if each.run % parts == part),
            recordings=self.recordings[part::parts],
            packets=self.packets[part::parts],
        )

    def of_group(self, group: int | None) -> tuple[SenderSample, ...]:
        """Returns the samples of one kind of senders; of all senders if None."""
        return tuple(each for each in self.samples if group is None or each.group == group)

    def values(self, measure: Measure, group: int | None = None) -> list[float]:
        """Returns the samples of a measure."""
        samples = self.of_group(group)
        match measure:
            case Measure.THROUGHPUT_MBPS:
                return [each.throughput_mbps for each in samples if each.on_fraction > 0]
            case Measure.RTT_MS | Measure.SAMPLED_RTT_MS | Measure.SAMPLED_RTT_OVER_TIME_MS:
                return present(getattr(each, measure) for each in samples)
            case Measure.QUEUEING_DELAY_MS:
                return [each - self.lone_rtt_ms for each in self.values(Measure.RTT_MS, group)]
            case Measure.ALONE_OVER_SHARED:
                return present(
                    _alone_over_shared(each, self.network["rtt_ms"]) for each in self.recordings
                )
            case Measure.RECORDED_JAIN:
                by_run = (jain_by_records(each, 1) for each in self.recordings)
                return [math.fsum(indices) / len(indices) for indices in by_run if indices]
            case Measure.CONVERGENCE_S:
                return [self._convergence_s(each) for each in self.recordings]
            case Measure.SHARE:
                return self._shares(group)
            case Measure.ON_FRACTION:
                return [each.on_fraction for each in samples]
            case Measure.COMPLETION_MS:
                return [time for each in samples for time in each.completions_ms]
            case Measure.OBJECTIVE | Measure.OBJECTIVE_OVER_LINK:
                return self._objective(measure, group)
            case _ if measure in PACKET_MEASURES and measure != Measure.LOSS:
                return present(getattr(each[group], measure) for each in self.packets)
            case _:
                return present(self._run_value(measure, run) for run in _by_run(samples))

    def _convergence_s(self, recording: Recorded) -> float:
        time_s = recording["time_ms"] / _MS_PER_SECOND
        received = np.diff(recording["packets_received"], axis=0)
        bits = packet_bytes(self.network) * _BITS_PER_BYTE * received
        equal_bits = np.diff(time_s) * self.network["rate_mbps"] * 1e6 / self.senders
        deviation: np.ndarray = np.abs(bits / equal_bits[:, None] - 1.0).max(axis=1)
        is_near = deviation <= _NEAR_EQUAL
        start = int((recording["is_on"] > 0).all(axis=1).argmax())
        for index in range(start, len(is_near) - _CONSECUTIVE_RECORDS + 1):
            if is_near[index : index + _CONSECUTIVE_RECORDS].all():
                return float(time_s[index] - time_s[start])
        return float(time_s[-1] - time_s[start])

    def _shares(self, group: int | None) -> list[float]:
        shares = []
        for run in _by_run(self.samples):
            total = math.fsum(each.throughput_mbps for each in run)
            shares += [
                each.throughput_mbps / total
                for each in run
                if total > 0 and (group is None or each.group == group)
            ]
        return shares

    def _objective(self, measure: Measure, group: int | None) -> list[float]:
        """Computes the objective of the means over all runs, as in the papers: a single sample."""
        throughput = self.values(Measure.THROUGHPUT_MBPS, group)
        rtt_ms = self.values(Measure.RTT_MS, group)
        if not throughput or not rtt_ms or not any(throughput):
            return []
        is_relative_to_share = measure == Measure.OBJECTIVE
        full_mbps = self.fair_share_mbps if is_relative_to_share else self.network["rate_mbps"]
        ratio = math.fsum(throughput) / len(throughput) / full_mbps
        delay = math.fsum(rtt_ms) / len(rtt_ms) / self.network["rtt_ms"]
        return [_LN_2 * (log2(ratio) - log2(delay))]

    def _run_value(self, measure: Measure, run: Sequence[SenderSample]) -> float | None:
        """Computes a measure that has one sample per run; None if it is undefined."""
        rates = [each.throughput_mbps for each in run if each.on_fraction > 0]
        if not rates:
            return None
        match measure:
            case Measure.UTILIZATION:
                bits = sum(each.packets for each in run) * packet_bytes(self.network)
                bits *= _BITS_PER_BYTE
                return float(bits / (self.network["rate_mbps"] * 1e6 * self.seconds))
            case Measure.JAIN:
                squares = math.fsum(rate * rate for rate in rates)
                return math.fsum(rates) ** 2 / (len(rates) * squares) if squares else None
            case Measure.SMALLEST_OVER_LARGEST:
                return min(rates) / max(rates) if max(rates) else None
            case Measure.LOSS:
                sent = sum(each.sent for each in run)
                return sum(each.lost for each in run) / sent if sent else None
            case _:
                delays = [each.rtt_ms for each in run if each.rtt_ms is not None]
                if not delays:
                    return None
                return math.fsum(rates) / (math.fsum(delays) / len(delays))


# The criterion of convergence in PCC's paper.
_NEAR_EQUAL = 0.25
_CONSECUTIVE_RECORDS = 6


def jain_by_records(recording: Recorded, records: int) -> list[float]:
    """Returns Jain's index of packets received in each interval of `records` records, all on."""
    is_all_on: np.ndarray = recording["is_on"].min(axis=1) > 0
    received = recording["packets_received"]
    indices = []
    for end in range(records, len(received), records):
        packets = received[end] - received[end - records]
        if is_all_on[end - records : end + 1].all() and packets.any():
            indices.append(float(packets.sum() ** 2 / (len(packets) * (packets**2).sum())))
    return indices


def _alone_over_shared(recording: Recorded, settling_ms: float) -> float | None:
    """Computes ALONE_OVER_SHARED over all senders; None if they are never alone or never together.

    Time counts from `settling_ms` after each change of the senders that are on.
    """
    on = recording["is_on"] > 0
    received = np.diff(recording["packets_received"], axis=0, prepend=0.0)
    time_ms = recording["time_ms"]
    is_unchanged = np.concatenate([[False], (on[1:] == on[:-1]).all(axis=1)])
    changed_ms = np.maximum.accumulate(np.where(is_unchanged, 0.0, time_ms))
    settled = time_ms - changed_ms > settling_ms
    rates = []
    for number_on in (1, on.shape[1]):
        counted = settled & (on.sum(axis=1) == number_on)
        records = int(on[counted].sum())
        packets = float((received[counted] * on[counted]).sum())
        if not records or not packets:
            return None
        rates.append(packets / records)
    return rates[0] / rates[1]


def _by_run(samples: Sequence[SenderSample]) -> list[list[SenderSample]]:
    runs: dict[int, list[SenderSample]] = {}
    for each in samples:
        runs.setdefault(each.run, []).append(each)
    return list(runs.values())


STATISTICS: Mapping[Statistic, Callable[[Sequence[float]], float]] = {
    Statistic.MEAN: lambda values: math.fsum(values) / len(values),
    Statistic.MEDIAN: statistics.median,
    Statistic.DEVIATION: lambda values: statistics.stdev(values) if len(values) > 1 else 0.0,
    Statistic.PERCENTILE_5: lambda values: sorted(values)[(5 * len(values)) // 100],
    Statistic.PERCENTILE_95: lambda values: sorted(values)[(95 * len(values) - 1) // 100],
}


@dataclass
class RowResult:
    """The results of a row."""

    row: StudyRow
    cells: list[CellSamples]

    def cell_at(self, x: float | None) -> CellSamples:
        """Returns the cell whose x is nearest by ratio; the only cell without a sweep."""
        if x is None or len(self.cells) == 1:
            return self.cells[0]
        return min(self.cells, key=lambda cell: _distance(cell.x or 0.0, x))


def _distance(a: float, b: float) -> float:
    """Returns the ratio of the larger to the smaller number."""
    if a == b:
        return 1.0
    return max(a, b) / min(a, b) if min(a, b) > 0 else math.inf


# Maximum ratio between a requested x and the nearest simulated one.
_NEAR = 1.26


class FigureVerdict(StrEnum):
    """The verdict on a figure."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs because"
    NOT_REPRODUCIBLE = "not reproducible because"


@dataclass(frozen=True)
class CheckedExpectation:
    """An expectation with the measured value; None if it could not be measured."""

    expectation: Expectation
    measured: float | None
    error: float | None
    """Standard error of the measured value; None with one run."""

    @property
    def holds(self) -> bool | None:
        """Whether the expectation holds; None if it was not measured."""
        if self.measured is None:
            return None
        return self.expectation.holds(self.measured, self.error or 0.0)


@dataclass
class FigureResult:
    """The results of a figure."""

    study: FigureStudy
    runs: int
    rows: dict[str, RowResult] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    """Rows that could not run, with the reason."""
    checked: list[CheckedExpectation] = field(default_factory=list)
    curves: list[PublishedPoint] = field(default_factory=list)

    def verdict(self) -> tuple[FigureVerdict, str]:
        """Returns the verdict and its reason."""
        if self.study.not_reproducible:
            return FigureVerdict.NOT_REPRODUCIBLE, self.study.not_reproducible
        known = [each for each in self.checked if each.holds is not None]
        if not known:
            why = next(iter(self.left_out.values()), "no published value of it can be compared")
            return FigureVerdict.NOT_REPRODUCIBLE, why
        failed = [each for each in known if not each.holds]
        if not failed:
            return FigureVerdict.REPRODUCED, ""
        reasons = dict.fromkeys(_reason(each.expectation) for each in failed)
        return FigureVerdict.DIFFERS, "; ".join(reasons)


def _reason(expectation: Expectation) -> str:
    if not expectation.unless:
        return f"{_claim(expectation)} is not reproduced, unexplained"
    status = f"tested: {expectation.tested}" if expectation.tested else "untested"
    return f"{expectation.unless} ({status})"


def _claim(expectation: Expectation) -> str:
    return expectation.claim or quantity_name(expectation.quantity)


def quantity_name(quantity: MeasuredQuantity) -> str:
    """Returns a name such as "mean rtt_ms of Cubic at 10"."""
    name = f"{quantity.statistic} {quantity.measure} of {quantity.row}"
    if quantity.group is not None:
        name += f" ({quantity.group + 1}.)"
    if quantity.at is not None:
        name += f" at {quantity.at:g}"
    if quantity.low is not None or quantity.high is not None:
        name += f" from {quantity.low or 0:g} to {quantity.high or math.inf:g}"
    if quantity.over is not None:
        name += f" {'less' if quantity.is_difference else 'over'} {quantity.over}"
        if quantity.over_group is not None:
            name += f" ({quantity.over_group + 1}.)"
    elif quantity.over_at is not None or quantity.over_group is not None:
        name += " over its own"
    if quantity.over_at is not None:
        name += f" at {quantity.over_at:g}"
    return name


@dataclass(frozen=True)
class PublishedPoint:
    """A point of a published curve."""

    x: float
    protocol: str
    throughput_mbps: float
    rtt_ms: float


def read_curves(name: str) -> list[PublishedPoint]:
    """Reads published curves from REMY_REFERENCE_DIR; empty if the file is unavailable."""
    folder = reference_folder()
    path = folder / "learnability" / name if folder else None
    if path is None or not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            PublishedPoint(float(x), protocol, float(mbps), float(rtt_ms))
            for x, protocol, mbps, rtt_ms, *_ in list(csv.reader(file))[1:]
        ]


def sender_samples(
    cell: Cell, outcome: evaluation_pb2.SpecimenOutcome, seconds: float
) -> list[SenderSample]:
    """Returns the results of each sender in one run."""
    groups = _groups(cell)
    measures = measure_senders(outcome, bytes_a_packet=packet_bytes(cell.network))
    flows = [
        tuple(flow.time_ms for flow in each.flows) for each in transport_results(outcome.transport)
    ]
    rtts = sampled_rtts(outcome.transport)
    rate = packet_bytes(cell.network) * _BITS_PER_BYTE / _MS_PER_SECOND
    return [
        SenderSample(
            run=cell.run,
            group=groups[sender],
            sender=sender,
            throughput_mbps=each.throughput_mbps,
            rtt_ms=each.delay_ms,
            on_fraction=each.on_ms / (seconds * _MS_PER_SECOND),
            packets=round(each.throughput_mbps * each.on_ms / rate),
            sent=outcome.packets_sent[sender],
            lost=outcome.packets_lost[sender],
            completions_ms=flows[sender] if flows else (),
            sampled_rtt_ms=rtts[sender].by_packets_ms if rtts else None,
            sampled_rtt_over_time_ms=rtts[sender].over_time_ms if rtts else None,
        )
        for sender, each in enumerate(measures)
    ]


def packets_by_group(cell: Cell, outcome: evaluation_pb2.SpecimenOutcome) -> PacketsByGroup:
    """Returns the measures of the packets of each kind of senders in one run, and of all."""
    groups = _groups(cell)
    return {
        group: measure_packets(
            outcome,
            [sender for sender, each in enumerate(groups) if group is None or each == group],
        )
        for group in (None, *dict.fromkeys(groups))
    }


def _groups(cell: Cell) -> list[int]:
    """Returns the index of each sender's kind."""
    counts = sender_counts(cell.row.senders, cell.network)
    return [group for group, count in enumerate(counts) for _ in range(count)]


@dataclass(frozen=True)
class FigurePlan:
    """The simulations of a figure."""

    study: FigureStudy
    rows: Sequence[tuple[StudyRow, Tables, list[Cell]]]
    left_out: Mapping[str, str]
    quick: bool

    @property
    def batches(self) -> list[CellBatch]:
        """The cells of each row."""
        return [CellBatch(tables, cells, self.study.seconds) for _, tables, cells in self.rows]


def plan_figure(
    study: FigureStudy, examples: Path, *, quick: bool, others: OtherSimulators | None = None
) -> FigurePlan:
    """Plans a figure's simulations.

    A row is left out if it needs published files that are unavailable. `others` are the simulators
    that rows may use. Raises FileError for other missing files.
    """
    rows = []
    left_out = {}
    for row in study.rows:
        try:
            tables = read_tables(row, examples)
            cells = list(row_cells(study, row, tables, quick=quick, others=others))
        except FileError as problem:
            if not row.published_tables() and not uses_traces(study.network, row.network):
                raise
            left_out[row.name] = str(problem)
            continue
        rows.append((row, tables, cells))
    return FigurePlan(study, rows, left_out, quick)


def measure_figure(plan: FigurePlan, runner: CellRunner, on_cells: OnCells) -> FigureResult:
    """Simulates the missing cells and checks the expectations."""
    study = plan.study
    (runs,) = study.runs.select(quick=plan.quick)
    result = FigureResult(study, int(runs), left_out=dict(plan.left_out))
    for row, tables, cells in plan.rows:
        outcomes = runner.run(tables, cells, study.seconds, on_cells)
        samples_by_x: dict[float | None, list[SenderSample]] = {}
        packets_by_x: dict[float | None, list[PacketsByGroup]] = {}
        networks: dict[float | None, Mapping[str, Any]] = {}
        for cell, outcome in zip(cells, outcomes, strict=True):
            samples_by_x.setdefault(cell.x, []).extend(sender_samples(cell, outcome, study.seconds))
            packets_by_x.setdefault(cell.x, []).append(packets_by_group(cell, outcome))
            networks[cell.x] = cell.network
        every_ms = study.record_every_ms
        recordings: dict[float | None, list[Recorded]] = {}
        for cell in cells if every_ms is not None else ():
            assert every_ms is not None
            recording = runner.record(tables, cell, study.seconds, every_ms)
            recordings.setdefault(cell.x, []).append(recording)
        result.rows[row.name] = RowResult(
            row,
            [
                CellSamples(
                    x=x,
                    network=networks[x],
                    senders=sum(sender_counts(row.senders, networks[x])),
                    seconds=study.seconds,
                    samples=tuple(samples),
                    recordings=tuple(recordings.get(x, ())),
                    packets=tuple(packets_by_x[x]),
                )
                for x, samples in samples_by_x.items()
            ],
        )
    if study.picture.curves_file:
        result.curves = read_curves(study.picture.curves_file)
    result.checked = [
        CheckedExpectation(
            each,
            measure_quantity(each.quantity, result.rows),
            standard_error(each.quantity, result.rows, result.runs),
        )
        for each in study.expectations
    ]
    return result


# Number of parts into which runs are divided to estimate the standard error of any quantity.
_MAX_PARTS = 8


def standard_error(
    quantity: MeasuredQuantity, rows: Mapping[str, RowResult], runs: int
) -> float | None:
    """Estimates the standard error of a quantity from its values in parts of the runs.

    Rows have the same random draws in the same run, so a ratio of two rows varies less than either.
    """
    parts = min(runs, _MAX_PARTS)
    if parts < 2:
        return None
    values = []
    for part in range(parts):
        rows_of_part = {
            name: RowResult(row.row, [cell.subset(part, parts) for cell in row.cells])
            for name, row in rows.items()
            if name in (quantity.row, quantity.over)
        }
        value = measure_quantity(quantity, rows_of_part)
        if value is not None:
            values.append(value)
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def measure_quantity(quantity: MeasuredQuantity, rows: Mapping[str, RowResult]) -> float | None:
    """Computes a quantity; None if its rows did not run or its x is far from all simulated ones."""
    numerator = _value(quantity, rows.get(quantity.row), quantity.at, quantity.group)
    if not (quantity.over or quantity.over_at is not None or quantity.over_group is not None):
        return numerator
    denominator_at = quantity.at if quantity.over_at is None else quantity.over_at
    denominator_row = rows.get(quantity.over or quantity.row)
    denominator_group = quantity.group if quantity.over_group is None else quantity.over_group
    denominator = _value(quantity, denominator_row, denominator_at, denominator_group)
    if numerator is None or denominator is None:
        return None
    logarithms = (Measure.OBJECTIVE, Measure.OBJECTIVE_OVER_LINK)
    if quantity.is_difference or quantity.measure in logarithms:
        return numerator - denominator
    return numerator / denominator if denominator else None


def _value(
    quantity: MeasuredQuantity, row: RowResult | None, at: float | None, group: int | None
) -> float | None:
    if row is None:
        return None
    if at is not None:
        cells = [row.cell_at(at)]
        if cells[0].x is not None and _distance(cells[0].x, at) > _NEAR:
            return None
    else:
        low, high = quantity.low or 0.0, math.inf if quantity.high is None else quantity.high
        cells = [cell for cell in row.cells if cell.x is None or low <= cell.x <= high]
    values = [
        STATISTICS[quantity.statistic](samples)
        for cell in cells
        if (samples := cell.values(quantity.measure, group))
    ]
    return math.fsum(values) / len(values) if values else None
