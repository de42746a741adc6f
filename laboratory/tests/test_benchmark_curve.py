"""Tests the curve of a search: its points, CSV, plot and the thresholds that it passes."""

import csv
import io

from library.tests.analysis.pictures import assert_is_png
from remy_farm.evaluation.measures import Estimate
from remy_laboratory.search_benchmark import (
    QUOTED,
    BenchmarkScore,
    CurvePoint,
    IntermediateTable,
    SeedCurve,
    best_groups,
    curve_dict,
    groups_below,
    plot_curves,
    thin,
    to_csv,
)
from remy_simulator import RuleTable

TABLE = RuleTable([0], [([], (0.9, 3.0, 3.0))])


def point(cpu_seconds: float, mean: float, pooled: float, *groups: float) -> CurvePoint:
    return CurvePoint(
        seed=3,
        steps=int(cpu_seconds),
        rules=8,
        cpu_seconds=cpu_seconds,
        wall_seconds=cpu_seconds / 2,
        score=BenchmarkScore(
            mean=Estimate(mean, 0.01, 16),
            pooled=Estimate(pooled, 0.01, 100),
            groups=tuple(Estimate(value, None, 4) for value in groups or (mean,) * 4),
        ),
    )


CURVE = SeedCurve(
    seed=3,
    steps=50,
    cpu_seconds=50.0,
    wall_seconds=25.0,
    points=(
        point(1, -0.9, -0.8),
        point(10, -0.4, -0.44),
        point(20, -0.35, -0.42),
        point(40, -0.28, -0.29, -0.3, -0.36, -0.2, -0.35),
    ),
)


def test_threshold_is_passed_when_both_means_exceed_it() -> None:
    passing = CURVE.first_passed(-0.43)
    assert passing is not None
    assert (passing.cpu_seconds, passing.wall_seconds) == (20, 10)
    assert CURVE.first_passed(-0.30) == CURVE.final
    assert CURVE.first_passed(-0.25) is None


def test_groups_are_compared_with_the_best_published_score_of_each_group() -> None:
    assert best_groups(QUOTED) == (-0.43, -0.35, -0.38, -0.35)
    assert groups_below(CURVE.final.score, QUOTED) == ["2-4"]
    assert groups_below(CURVE.final.score, ()) == []


def test_curve_dict_has_the_final_score_and_the_passed_thresholds() -> None:
    result = curve_dict(CURVE, [-0.43, -0.22], QUOTED)
    assert (result["seed"], result["steps"], result["mean"]) == (3, 50, -0.28)
    assert [each["cpu_seconds"] for each in result["first_passed"]] == [20, None]


def test_csv_has_a_line_per_point() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(CURVE.points))))
    assert [float(row["cpu_seconds"]) for row in rows] == [1, 10, 20, 40]
    assert float(rows[-1]["senders_2-4"]) == -0.36
    assert rows[-1]["senders_2-4_stderr"] == ""


def test_curves_are_plotted() -> None:
    assert_is_png(plot_curves([CURVE, CURVE], QUOTED, delta=1))
    assert_is_png(plot_curves([], (), delta=0.1))


def test_thin_drops_tables_that_are_too_close_but_never_the_last() -> None:
    tables = [IntermediateTable(TABLE, steps, 0, 0) for steps in (0, 3, 10, 12, 19, 21, 22)]
    assert [each.steps for each in thin(tables, 10)] == [0, 10, 21, 22]
    assert [each.steps for each in thin(tables, 1)] == [0, 3, 10, 12, 19, 21, 22]
    assert [each.steps for each in thin(tables[:1], 5)] == [0]
