"""Tests samples, quantities computed from them, and verdicts on figures."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from laboratory.tests.studies.small_studies import SMALL
from remy_laboratory.studies.study import (
    Measure,
    MeasuredQuantity,
    Statistic,
    StudyRow,
    parse_study,
)
from remy_laboratory.studies.verdicts import (
    CellSamples,
    CheckedExpectation,
    FigureResult,
    FigureVerdict,
    Recorded,
    RowResult,
    SenderSample,
    jain_by_records,
    measure_quantity,
    standard_error,
)

STUDY = parse_study(SMALL, "small.yaml", study="small", name="figure")
NETWORK = {
    "rate_mbps": 12.0,
    "rtt_ms": 100.0,
    "traffic": {"exponential_time": {"mean_ms": 1000.0}, "mean_off_ms": 1000.0},
}


def _sample(run: int, sender: int, mbps: float, rtt_ms: float = 110.0) -> SenderSample:
    # Only senders on TCP sample RTTs; here those of the first run.
    sampled = (rtt_ms - 1, rtt_ms - 2) if run == 0 else (None, None)
    return SenderSample(run, sender, sender, mbps, rtt_ms, 0.5, 1000, 110, 10, (5.0, 7.0), *sampled)


def _cell(x: float | None, *samples: SenderSample, senders: int = 2) -> CellSamples:
    return CellSamples(x, NETWORK, senders, 10.0, samples)


def _row(*cells: CellSamples) -> RowResult:
    return RowResult(StudyRow("a", (), {}, 1.0, None), list(cells))


CELL = _cell(None, _sample(0, 0, 2), _sample(0, 1, 4), _sample(1, 0, 6), _sample(1, 1, 6, 150))


@pytest.mark.parametrize(
    ("measure", "values"),
    [
        (Measure.THROUGHPUT_MBPS, [2, 4, 6, 6]),
        (Measure.RTT_MS, [110, 110, 110, 150]),
        (Measure.SAMPLED_RTT_MS, [109, 109]),
        (Measure.SAMPLED_RTT_OVER_TIME_MS, [108, 108]),
        # A packet of 1500 bytes takes 1 ms.
        (Measure.QUEUEING_DELAY_MS, [9, 9, 9, 49]),
        (Measure.SMALLEST_OVER_LARGEST, [0.5, 1]),
        (Measure.JAIN, [36 / 40, 1]),
        (Measure.LOSS, [20 / 220, 20 / 220]),
        (Measure.POWER, [6 / 110, 12 / 130]),
        (Measure.UTILIZATION, [0.2, 0.2]),
        (Measure.ON_FRACTION, [0.5] * 4),
        (Measure.SHARE, [1 / 3, 2 / 3, 0.5, 0.5]),
        (Measure.COMPLETION_MS, [5, 7] * 4),
        # With two senders that are on half of the time, the fair share is 3/4 of the link.
        (Measure.OBJECTIVE, [math.log(4.5 / 9) - math.log(1.2)]),
        (Measure.OBJECTIVE_OVER_LINK, [math.log(4.5 / 12) - math.log(1.2)]),
    ],
)
def test_samples_of_each_measure(measure: Measure, values: list[float]) -> None:
    assert CELL.values(measure) == pytest.approx(values)


def test_samples_of_one_kind_of_senders() -> None:
    assert CELL.values(Measure.THROUGHPUT_MBPS, 1) == [4, 6]


def _recording(*seconds: tuple[int, int], together_from: int = 0) -> Recorded:
    """Builds a recording of two senders, by packets per second; the second starts later."""
    packets = np.array([(0, 0), *seconds], dtype=float)
    on = np.ones_like(packets)
    on[:together_from, 1] = 0
    return {
        "time_ms": 1000.0 * np.arange(len(packets)),
        "packets_received": packets.cumsum(axis=0),
        "is_on": on,
    }


def test_recorded_jain_counts_intervals_in_which_all_senders_are_on() -> None:
    recording = _recording((9, 0), (3, 0), (1, 3), (3, 1), together_from=2)
    assert jain_by_records(recording, 1) == pytest.approx([0.8, 0.8])
    # Over two seconds both receive the same; the first two seconds have only one sender.
    assert jain_by_records(recording, 2) == pytest.approx([1.0])
    cell = dataclasses.replace(CELL, recordings=(recording,))
    assert cell.values(Measure.RECORDED_JAIN) == pytest.approx([0.8])


def test_convergence_needs_six_consecutive_records_near_equal_shares() -> None:
    # Half of 12 Mbit/s is 500 packets per second; 400 is within a quarter of that.
    late = [(950, 50), (600, 400), (300, 700)]
    recording = _recording((1000, 0), *late, *[(600, 400)] * 6, (1000, 0), together_from=1)
    cell = dataclasses.replace(CELL, recordings=(recording, _recording(*[(700, 300)] * 8)))
    assert cell.values(Measure.CONVERGENCE_S) == [3.0, 8.0]


def test_rate_alone_is_compared_with_the_rate_of_shared_time() -> None:
    steps = 400
    on = np.zeros((steps, 2))
    on[:, 0] = 1
    on[100:250, 1] = 1
    both = on.sum(axis=1) == 2
    rate = np.where(both, 5, 10)[:, None] * on
    recording = {
        "time_ms": 10.0 * np.arange(steps),
        "is_on": on,
        "packets_received": rate.cumsum(axis=0),
    }
    cell = CellSamples(None, NETWORK, 2, 4.0, (), (recording,))
    assert cell.values(Measure.ALONE_OVER_SHARED) == pytest.approx([2])


def _quantity(**fields: object) -> MeasuredQuantity:
    defaults = {
        "row": "a",
        "over": None,
        "measure": Measure.THROUGHPUT_MBPS,
        "statistic": Statistic.MEAN,
        "at": None,
        "over_at": None,
        "group": None,
        "over_group": None,
        "low": None,
        "high": None,
        "is_difference": False,
    }
    return MeasuredQuantity(**{**defaults, **fields})  # type: ignore[arg-type]


SWEPT = {
    "a": _row(*(_cell(x, _sample(0, 0, x), _sample(0, 1, 3 * x)) for x in (0.0, 1.0, 10.0))),
    "b": _row(_cell(1.0, _sample(0, 0, 4), _sample(0, 1, 4))),
}


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        (_quantity(at=10), 20),
        (_quantity(at=0), 0),
        (_quantity(at=9), 20),
        # No simulated x is near 4.
        (_quantity(at=4), None),
        (_quantity(low=0.5, high=20), 11),
        (_quantity(at=1, statistic=Statistic.DEVIATION), math.sqrt(2)),
        (_quantity(at=10, over_at=1), 10),
        (_quantity(at=1, over="b"), 0.5),
        (_quantity(at=1, over="b", is_difference=True), -2),
        (_quantity(at=1, group=1, over_group=0), 3),
        (_quantity(at=1, over="c"), None),
        (_quantity(row="c"), None),
    ],
)
def test_quantity_values(quantity: MeasuredQuantity, value: float | None) -> None:
    measured = measure_quantity(quantity, SWEPT)
    assert measured == (None if value is None else pytest.approx(value))


def test_objectives_are_compared_by_their_difference() -> None:
    rows = {"a": _row(_cell(None, _sample(0, 0, 3))), "b": _row(_cell(None, _sample(0, 0, 6)))}
    quantity = _quantity(over="b", measure=Measure.OBJECTIVE)
    assert measure_quantity(quantity, rows) == pytest.approx(-math.log(2))


def test_standard_error_is_computed_from_parts_of_the_runs() -> None:
    rows = {"a": _row(_cell(None, *(_sample(run, 0, 5 + run % 2) for run in range(8))))}
    assert standard_error(_quantity(), rows, 8) == pytest.approx(math.sqrt(8 / 28) / math.sqrt(8))
    assert standard_error(_quantity(), rows, 1) is None
    # Runs are paired, so a row divided by itself is exactly 1.
    assert standard_error(_quantity(over="a"), rows, 8) == 0


def _result(*measured: float | None) -> FigureResult:
    result = FigureResult(STUDY, 2)
    result.checked = [
        CheckedExpectation(expectation, value, 0.0)
        for expectation, value in zip(STUDY.expectations, measured, strict=True)
    ]
    return result


def test_verdict_depends_on_the_expectations_that_were_measured() -> None:
    assert _result(0.5, 2.0).verdict() == (FigureVerdict.REPRODUCED, "")
    finding, why = _result(0.5, 1.0).verdict()
    assert finding == FigureVerdict.DIFFERS
    assert "more at a faster link" in why
    # The verdict says whether the reason was tested.
    for tested, ends in (("", "slow (untested)"), ("a run", "slow (tested: a run)")):
        reasoned = dataclasses.replace(STUDY.expectations[0], unless="slow", tested=tested)
        result = FigureResult(STUDY, 2, checked=[CheckedExpectation(reasoned, 0.0, 0.0)])
        assert result.verdict() == (FigureVerdict.DIFFERS, ends)
    # An expectation that was not measured does not count.
    assert _result(0.5, None).verdict() == (FigureVerdict.REPRODUCED, "")
    assert _result(None, None).verdict()[0] == FigureVerdict.NOT_REPRODUCIBLE
