"""Results of a figure: samples of each cell, quantities computed from them, verdicts on claims."""

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

from remy_farm.evaluation.measures import measure_senders, present
from remy_farm.files import FileError
from remy_laboratory.studies.cells import (
    Cell,
    CellBatch,
    CellRunner,
    OnCells,
    Others,
    Tables,
    cells_of,
    read_tables,
)
from remy_laboratory.studies.networks import (
    follows_recordings,
    packet_bytes,
    reference_folder,
    sender_counts,
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
    """What one sender got in one run."""

    run: int
    group: int
    """Which of the row's kinds of senders."""
    sender: int
    throughput_mbps: float
    rtt_ms: float | None
    on_fraction: float
    packets: int
    """That count as throughput."""
    sent: int
    lost: int
    completions_ms: tuple[float, ...]
    sampled_rtt_ms: float | None = None
    sampled_rtt_over_time_ms: float | None = None


#: What was seen of a run over time: matrices have a row for each time.
Recorded: TypeAlias = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class CellSamples:
    """All runs of one row at one value of what is varied."""

    x: float | None
    network: Mapping[str, Any]
    senders: int
    seconds: float
    samples: tuple[SenderSample, ...]
    recordings: tuple[Recorded, ...] = ()

    @property
    def lone_rtt_ms(self) -> float:
        """What a packet takes where nobody else is: the path and one service."""
        service_ms = packet_bytes(self.network) * _BITS_PER_BYTE / _MS_PER_SECOND
        return float(self.network["rtt_ms"] + service_ms / self.network["rate_mbps"])

    @property
    def fair_share_mbps(self) -> float:
        """What a sender expects of equal shares at once and a link that is never idle in vain:
        with n senders that are on with probability p, link x (1 - (1 - p)^n) / (n p)."""
        on_ms, off_ms = (
            value_at(self.network, "traffic.exponential_time.mean_ms"),
            value_at(self.network, "traffic.mean_off_ms") or 0.0,
        )
        on = 1.0 if on_ms is None else on_ms / (on_ms + off_ms)
        idle = (1.0 - on) ** self.senders
        return float(self.network["rate_mbps"] * (1.0 - idle) / (self.senders * on))

    def only(self, part: int, parts: int) -> CellSamples:
        """Every so many of the runs."""
        return dataclasses.replace(
            self,
            samples=tuple(each for each in self.samples if each.run % parts == part),
            recordings=self.recordings[part::parts],
        )

    def of(self, group: int | None) -> tuple[SenderSample, ...]:
        """Of one kind of senders, or of all."""
        return tuple(each for each in self.samples if group is None or each.group == group)

    def values(self, measure: Measure, group: int | None = None) -> list[float]:
        """The samples of a measure."""
        samples = self.of(group)
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
                runs = (jain_by_records(each, 1) for each in self.recordings)
                return [math.fsum(found) / len(found) for found in runs if found]
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
            case _:
                return present(self._of_run(measure, run) for run in _by_run(samples))

    def _convergence_s(self, recording: Recorded) -> float:
        time_s = recording["time_ms"] / _MS_PER_SECOND
        received = np.diff(recording["packets_received"], axis=0)
        bits = packet_bytes(self.network) * _BITS_PER_BYTE * received
        equal_bits = np.diff(time_s) * self.network["rate_mbps"] * 1e6 / self.senders
        away: np.ndarray = np.abs(bits / equal_bits[:, None] - 1.0).max(axis=1)
        is_near = away <= _NEAR_EQUAL
        began = int((recording["is_on"] > 0).all(axis=1).argmax())
        for place in range(began, len(is_near) - _RECORDS_IN_A_ROW + 1):
            if is_near[place : place + _RECORDS_IN_A_ROW].all():
                return float(time_s[place] - time_s[began])
        return float(time_s[-1] - time_s[began])

    def _shares(self, group: int | None) -> list[float]:
        shares = []
        for run in _by_run(self.samples):
            whole = math.fsum(each.throughput_mbps for each in run)
            shares += [
                each.throughput_mbps / whole
                for each in run
                if whole > 0 and (group is None or each.group == group)
            ]
        return shares

    def _objective(self, measure: Measure, group: int | None) -> list[float]:
        """Of the means, as the papers have it: one sample in all."""
        throughput = self.values(Measure.THROUGHPUT_MBPS, group)
        rtt_ms = self.values(Measure.RTT_MS, group)
        if not throughput or not rtt_ms or not any(throughput):
            return []
        is_share = measure == Measure.OBJECTIVE
        full_mbps = self.fair_share_mbps if is_share else self.network["rate_mbps"]
        ratio = math.fsum(throughput) / len(throughput) / full_mbps
        delay = math.fsum(rtt_ms) / len(rtt_ms) / self.network["rtt_ms"]
        return [_LN_2 * (log2(ratio) - log2(delay))]

    def _of_run(self, measure: Measure, run: Sequence[SenderSample]) -> float | None:
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


# As PCC's paper says when a flow has converged.
_NEAR_EQUAL = 0.25
_RECORDS_IN_A_ROW = 6


def jain_by_records(recording: Recorded, records: int) -> list[float]:
    """Jain's index of what senders received in so many records, one after another, all on."""
    is_all_on: np.ndarray = recording["is_on"].min(axis=1) > 0
    received = recording["packets_received"]
    found = []
    for end in range(records, len(received), records):
        packets = received[end] - received[end - records]
        if is_all_on[end - records : end + 1].all() and packets.any():
            found.append(float(packets.sum() ** 2 / (len(packets) * (packets**2).sum())))
    return found


def _alone_over_shared(recording: Recorded, settling_ms: float) -> float | None:
    """Of all senders; time counts once it has been so for an RTT. None without both."""
    on = recording["is_on"] > 0
    received = np.diff(recording["packets_received"], axis=0, prepend=0.0)
    time_ms = recording["time_ms"]
    same = np.concatenate([[False], (on[1:] == on[:-1]).all(axis=1)])
    began_ms = np.maximum.accumulate(np.where(same, 0.0, time_ms))
    settled = time_ms - began_ms > settling_ms
    rates = []
    for others_on in (1, on.shape[1]):
        counts = settled & (on.sum(axis=1) == others_on)
        spent = int(on[counts].sum())
        packets = float((received[counts] * on[counts]).sum())
        if not spent or not packets:
            return None
        rates.append(packets / spent)
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
    """What a row came to."""

    row: StudyRow
    cells: list[CellSamples]

    def at(self, x: float | None) -> CellSamples:
        """The cell whose x is the nearest (by ratio); the only one where nothing is varied."""
        if x is None or len(self.cells) == 1:
            return self.cells[0]
        return min(self.cells, key=lambda cell: _distance(cell.x or 0.0, x))


def _distance(here: float, there: float) -> float:
    if here == there:
        return 1.0
    return max(here, there) / min(here, there) if min(here, there) > 0 else math.inf


# A sweep that is coarse has nothing to say of what is far from its values.
_NEAR = 1.26


class FigureVerdict(StrEnum):
    """What is said of a figure."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs because"
    NOT_REPRODUCIBLE = "not reproducible because"


@dataclass(frozen=True)
class Checked:
    """An expectation beside what was measured; None where it could not be."""

    expectation: Expectation
    measured: float | None
    error: float | None
    """Standard error of what was measured; None of one run."""

    @property
    def holds(self) -> bool | None:
        """Whether it came out; None where it was not measured."""
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
    """Rows that could not run, and why."""
    checked: list[Checked] = field(default_factory=list)
    curves: list[PublishedPoint] = field(default_factory=list)

    def verdict(self) -> tuple[FigureVerdict, str]:
        """The finding, and its reason."""
        if self.study.not_reproducible:
            return FigureVerdict.NOT_REPRODUCIBLE, self.study.not_reproducible
        known = [each for each in self.checked if each.holds is not None]
        if not known:
            why = next(
                iter(self.left_out.values()), "nothing of it is known that could be compared"
            )
            return FigureVerdict.NOT_REPRODUCIBLE, why
        failed = [each for each in known if not each.holds]
        if not failed:
            return FigureVerdict.REPRODUCED, ""
        reasons = dict.fromkeys(_reason(each.expectation) for each in failed)
        return FigureVerdict.DIFFERS, "; ".join(reasons)


def _reason(expectation: Expectation) -> str:
    if not expectation.unless:
        return f"{_claim(expectation)} does not come out, unexplained"
    how = f"tested: {expectation.tested}" if expectation.tested else "untested"
    return f"{expectation.unless} ({how})"


def _claim(expectation: Expectation) -> str:
    return expectation.claim or quantity_name(expectation.quantity)


def quantity_name(quantity: MeasuredQuantity) -> str:
    """In words."""
    words = f"{quantity.statistic} {quantity.measure} of {quantity.row}"
    if quantity.group is not None:
        words += f" ({quantity.group + 1}.)"
    if quantity.at is not None:
        words += f" at {quantity.at:g}"
    if quantity.low is not None or quantity.high is not None:
        words += f" from {quantity.low or 0:g} to {quantity.high or math.inf:g}"
    if quantity.over is not None:
        words += f" {'less' if quantity.is_difference else 'over'} {quantity.over}"
        if quantity.over_group is not None:
            words += f" ({quantity.over_group + 1}.)"
    elif quantity.over_at is not None or quantity.over_group is not None:
        words += " over its own"
    if quantity.over_at is not None:
        words += f" at {quantity.over_at:g}"
    return words


@dataclass(frozen=True)
class PublishedPoint:
    """A point of a published curve."""

    x: float
    protocol: str
    throughput_mbps: float
    rtt_ms: float


def read_curves(name: str) -> list[PublishedPoint]:
    """Of a file of REMY_REFERENCE_DIR; nothing where there is none."""
    folder = reference_folder()
    path = folder / "learnability" / name if folder else None
    if path is None or not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            PublishedPoint(float(x), protocol, float(mbps), float(rtt_ms))
            for x, protocol, mbps, rtt_ms, *_ in list(csv.reader(file))[1:]
        ]


def samples_of(
    cell: Cell, outcome: evaluation_pb2.SpecimenOutcome, seconds: float
) -> list[SenderSample]:
    """What the senders of one run got."""
    counts = sender_counts(cell.row.senders, cell.network)
    groups = [group for group, count in enumerate(counts) for _ in range(count)]
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


@dataclass(frozen=True)
class FigurePlan:
    """What a figure is going to simulate."""

    study: FigureStudy
    rows: Sequence[tuple[StudyRow, Tables, list[Cell]]]
    left_out: Mapping[str, str]
    quick: bool

    @property
    def batches(self) -> list[CellBatch]:
        """The cells of each row."""
        return [CellBatch(tables, cells, self.study.seconds) for _, tables, cells in self.rows]


def plan_figure(
    study: FigureStudy, examples: Path, *, quick: bool, others: Others | None = None
) -> FigurePlan:
    """Rows whose published tables or recordings are not here are left out. Raises FileError for
    others. `others` are the simulators that rows may ask for."""
    rows = []
    left_out = {}
    for row in study.rows:
        try:
            tables = read_tables(row, examples)
            cells = list(cells_of(study, row, tables, quick=quick, others=others))
        except FileError as problem:
            if not row.published_tables() and not follows_recordings(study.network, row.network):
                raise
            left_out[row.name] = str(problem)
            continue
        rows.append((row, tables, cells))
    return FigurePlan(study, rows, left_out, quick)


def measure_figure(plan: FigurePlan, runner: CellRunner, on_cells: OnCells) -> FigureResult:
    """Simulates what is missing, and holds what comes out to what is expected."""
    study = plan.study
    (runs,) = study.runs.of(quick=plan.quick)
    result = FigureResult(study, int(runs), left_out=dict(plan.left_out))
    for row, tables, cells in plan.rows:
        outcomes = runner.run(tables, cells, study.seconds, on_cells)
        found: dict[float | None, list[SenderSample]] = {}
        networks: dict[float | None, Mapping[str, Any]] = {}
        for cell, outcome in zip(cells, outcomes, strict=True):
            found.setdefault(cell.x, []).extend(samples_of(cell, outcome, study.seconds))
            networks[cell.x] = cell.network
        every_ms = study.record_every_ms
        recordings: dict[float | None, list[Recorded]] = {}
        for cell in cells if every_ms is not None else ():
            assert every_ms is not None
            seen = runner.record(tables, cell, study.seconds, every_ms)
            recordings.setdefault(cell.x, []).append(seen)
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
                )
                for x, samples in found.items()
            ],
        )
    if study.picture.curves_file:
        result.curves = read_curves(study.picture.curves_file)
    result.checked = [
        Checked(
            each,
            quantity_of(each.quantity, result.rows),
            error_of(each.quantity, result.rows, result.runs),
        )
        for each in study.expectations
    ]
    return result


# So many parts of the runs say how far a quantity scatters, whatever it is of.
_MOST_PARTS = 8


def error_of(quantity: MeasuredQuantity, rows: Mapping[str, RowResult], runs: int) -> float | None:
    """Standard error of a quantity, from how it differs between parts of the runs.

    Rows have the same draws in the same run, so that a ratio of two scatters less than either.
    """
    parts = min(runs, _MOST_PARTS)
    if parts < 2:
        return None
    found = []
    for part in range(parts):
        only = {
            name: RowResult(row.row, [cell.only(part, parts) for cell in row.cells])
            for name, row in rows.items()
            if name in (quantity.row, quantity.over)
        }
        value = quantity_of(quantity, only)
        if value is not None:
            found.append(value)
    return statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else None


def quantity_of(quantity: MeasuredQuantity, rows: Mapping[str, RowResult]) -> float | None:
    """None where its rows did not run, or what it asks for is not near to what was simulated."""
    above = _value(quantity, rows.get(quantity.row), quantity.at, quantity.group)
    if not (quantity.over or quantity.over_at is not None or quantity.over_group is not None):
        return above
    below_at = quantity.at if quantity.over_at is None else quantity.over_at
    below_row = rows.get(quantity.over or quantity.row)
    below_group = quantity.group if quantity.over_group is None else quantity.over_group
    below = _value(quantity, below_row, below_at, below_group)
    if above is None or below is None:
        return None
    logarithms = (Measure.OBJECTIVE, Measure.OBJECTIVE_OVER_LINK)
    if quantity.is_difference or quantity.measure in logarithms:
        return above - below
    return above / below if below else None


def _value(
    quantity: MeasuredQuantity, row: RowResult | None, at: float | None, group: int | None
) -> float | None:
    if row is None:
        return None
    if at is not None:
        cells = [row.at(at)]
        if cells[0].x is not None and _distance(cells[0].x, at) > _NEAR:
            return None
    else:
        low, high = quantity.low or 0.0, math.inf if quantity.high is None else quantity.high
        cells = [cell for cell in row.cells if cell.x is None or low <= cell.x <= high]
    found = [
        STATISTICS[quantity.statistic](values)
        for cell in cells
        if (values := cell.values(quantity.measure, group))
    ]
    return math.fsum(found) / len(found) if found else None
