"""Searches on the yardstick: one after another, each measured when it is over."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from remy_farm.v1 import spec_pb2
from remy_services.cli.benchmark_tables import (
    SCORE_HEAD,
    MeasuredFile,
    score_cells,
    tables_tree,
)
from remy_services.cli.output import plain_table, print_json, print_table
from remy_services.files import write_file
from remy_services.remycc import RemyCC, write_remycc
from remy_services.remycc.reference_config import reference_config
from remy_services.report.trial import Evaluate
from remy_services.report.wording import several, with_error
from remy_services.yardstick.curve import Passing, SeedCurve, groups_below, summary_tree, to_csv
from remy_services.yardstick.published import QUOTED, QUOTED_DELTA, PublishedScore
from remy_services.yardstick.search_run import SearchRun, measure_curve, run_search

# The best published score on delta = 1, and what a search is expected to reach beyond it.
_THRESHOLDS = (-0.43, -0.30, -0.25, -0.22)


def benchmark_seeds(
    specs: Sequence[spec_pb2.DesignSpec],
    out: Path,
    tables: Sequence[MeasuredFile],
    evaluate: Evaluate,
    *,
    threads: int,
    every: int,
    specimens: int,
    as_json: bool,
) -> None:
    """Runs each design in a folder of its own, and keeps the files in `out` up to date with those
    that are over."""
    delta = specs[0].objective.delta
    published = _published(tables, delta)
    thresholds = _thresholds(published, delta)
    curves: list[SeedCurve] = []
    tree: dict[str, Any] = {}
    for spec in specs:
        seed = spec.search.seed
        run = run_search(spec, out / f"seed-{seed}", threads=threads)
        _say(
            f"seed {seed}: {several(run.result.steps, 'step')} in {run.cpu_seconds:.1f} CPU-s, "
            f"{run.wall_seconds:.1f} s; measuring"
        )
        remycc = RemyCC(run.result.table, reference_config(run.result.spec))
        for suffix in (".dna", ".json"):
            write_remycc(out / f"seed-{seed}{suffix}", remycc)
        curves.append(_measured(run, evaluate, every=every, delta=delta, specimens=specimens))
        tree = {
            **tables_tree(tables, delta=delta, specimens=specimens),
            "threads": threads,
            "searches": [summary_tree(curve, thresholds, published) for curve in curves],
        }
        _write(out, curves, tree, published, delta)
    if as_json:
        print_json(tree)
    else:
        _print(curves, thresholds, published)


def _measured(
    run: SearchRun, evaluate: Evaluate, *, every: int, delta: float, specimens: int
) -> SeedCurve:
    points = []
    for point in measure_curve(run, evaluate, every=every, delta=delta, specimens=specimens):
        points.append(point)
        _say(
            f"  step {point.steps}, {point.cpu_seconds:.1f} CPU-s, "
            f"{several(point.rules, 'rule')}: mean {with_error(point.score.mean)}, "
            f"pooled {with_error(point.score.pooled)}"
        )
    return SeedCurve(
        seed=run.result.spec.search.seed,
        steps=run.result.steps,
        cpu_seconds=run.cpu_seconds,
        wall_seconds=run.wall_seconds,
        points=tuple(points),
    )


def _published(tables: Sequence[MeasuredFile], delta: float) -> tuple[PublishedScore, ...]:
    """What was measured here takes the place of what is quoted."""
    if tables:
        return tuple(each.as_published() for each in tables)
    return QUOTED if delta == QUOTED_DELTA else ()


def _thresholds(published: Sequence[PublishedScore], delta: float) -> Sequence[float]:
    if delta == QUOTED_DELTA:
        return _THRESHOLDS
    return [max(each.mean for each in published)] if published else []


def _write(
    out: Path,
    curves: Sequence[SeedCurve],
    tree: dict[str, Any],
    published: Sequence[PublishedScore],
    delta: float,
) -> None:
    # matplotlib takes longer to import than a short command takes to run.
    from remy_services.yardstick.curve_plot import plot_curves

    write_file(out / "curve.csv", to_csv(point for curve in curves for point in curve.points))
    write_file(out / "summary.json", json.dumps(tree, indent=2, allow_nan=False) + "\n")
    write_file(out / "curve.png", plot_curves(curves, published, delta=delta))


def _print(
    curves: Sequence[SeedCurve],
    thresholds: Sequence[float],
    published: tuple[PublishedScore, ...],
) -> None:
    rows = plain_table("seed", "CPU-s", "wall-s", "rules", *SCORE_HEAD)
    for curve in curves:
        rows.add_row(
            str(curve.seed),
            f"{curve.cpu_seconds:.1f}",
            f"{curve.wall_seconds:.1f}",
            str(curve.final.rules),
            *score_cells(curve.final.score),
        )
    print_table(rows)
    if thresholds:
        click.echo("\nFirst passed, mean and pooled, at CPU-s / wall-s:\n")
        times = plain_table("seed", *(f"{threshold:.3g}" for threshold in thresholds))
        for curve in curves:
            passings = [curve.first_passed(threshold) for threshold in thresholds]
            times.add_row(str(curve.seed), *(_passing(each) for each in passings))
        print_table(times)
    for curve in curves:
        if worse := groups_below(curve.final.score, published):
            click.echo(
                f"\nseed {curve.seed}: a published RemyCC is better with {', '.join(worse)} senders"
            )


def _passing(passing: Passing) -> str:
    if passing.cpu_seconds is None:
        return "-"
    return f"{passing.cpu_seconds:.1f} / {passing.wall_seconds:.1f}"


def _say(sentence: str) -> None:
    click.echo(sentence, err=True)
