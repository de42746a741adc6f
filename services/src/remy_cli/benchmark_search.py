"""`remy-farm benchmark-search`: tables and searches on the benchmark network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from remy_cli.common import (
    FILE,
    POSITIVE,
    POSITIVE_INT,
    SPECIMEN_COUNT,
    FiniteRange,
    PlainTable,
    json_option,
    local_evaluator,
    option,
    print_json,
    print_note,
    print_table,
    say,
    settings_option,
    switch,
    threads_option,
    time_unit_option,
)
from remy_farm.analysis import several, with_error
from remy_farm.designer import with_steps
from remy_farm.evaluation import Evaluate
from remy_farm.files import write_file
from remy_farm.remycc import RemyCC, file_suffixes, read_remycc, reference_config, write_remycc
from remy_farm.specification import Tree, parse_setting
from remy_laboratory.search_benchmark import (
    GENERAL_PURPOSE,
    GROUPS,
    NETWORKS,
    QUOTED,
    Benchmark,
    BenchmarkScore,
    CurvePoint,
    PublishedScore,
    SearchRun,
    SeedCurve,
    benchmark_spec,
    group_name,
    groups_below,
    measure_curve,
    measure_table,
    plot_curves,
    published_files,
    run_search,
    score_tree,
    summary_tree,
    to_csv,
)
from remy_proto.v1 import spec_pb2

SCORE_HEAD = ("mean", "pooled", *(f"n={group_name(group)}" for group in GROUPS))


@dataclass(frozen=True)
class MeasuredFile:
    """A RemyCC file and its score."""

    path: Path
    rules: int
    score: BenchmarkScore

    def as_published(self) -> PublishedScore:
        """To draw beside the curves of searches."""
        return PublishedScore(self.path.stem, self.rules, self.score)


def measure_files(
    paths: Sequence[Path], evaluate: Evaluate, benchmark: Benchmark, time_unit_ms: float = 1.0
) -> list[MeasuredFile]:
    """Every file is read before the first is measured. Raises FileError."""
    tables = [read_remycc(path, time_unit_ms).table for path in paths]
    return [
        MeasuredFile(path, table.rule_count, measure_table(table, evaluate, benchmark))
        for path, table in zip(paths, tables, strict=True)
    ]


def score_cells(score: BenchmarkScore) -> list[str]:
    """As SCORE_HEAD says."""
    return [with_error(each) for each in (score.mean, score.pooled, *score.groups)]


def print_tables(tables: Sequence[MeasuredFile], quoted: Sequence[PublishedScore] = ()) -> None:
    """For people; `quoted` tables were measured elsewhere."""
    rows = PlainTable("RemyCC", "rules", *SCORE_HEAD, left=1)
    for each in tables:
        rows.add_row(each.path.name, str(each.rules), *score_cells(each.score))
    for table in quoted:
        rows.add_row(f"published {table.name}", str(table.rules), *score_cells(table.score))
    print_table(rows)
    print_note(
        "Means over specimens (pooled: over senders) with standard errors; n: senders of a "
        "specimen."
    )


def tables_tree(tables: Sequence[MeasuredFile], benchmark: Benchmark) -> dict[str, Any]:
    """For --json."""
    return {
        "network": benchmark.network,
        "delta": benchmark.delta,
        "specimens": benchmark.specimen_count,
        "simulated_seconds": NETWORKS[benchmark.network].seconds,
        "tables": [
            {"file": str(each.path), "rules": each.rules, **score_tree(each.score)}
            for each in tables
        ],
    }


# The best published score on delta = 1, and what a search is expected to reach beyond it.
_THRESHOLDS = (-0.43, -0.30, -0.25, -0.22)


def benchmark_seeds(
    specs: Sequence[spec_pb2.DesignSpec],
    out: Path,
    tables: Sequence[MeasuredFile],
    evaluate: Evaluate,
    benchmark: Benchmark,
    *,
    threads: int,
    every: int,
    as_json: bool,
) -> None:
    """Runs each design in a folder of its own, and keeps the files in `out` up to date with those
    that are over."""
    # What was measured here takes the place of what is quoted.
    quoted = QUOTED if benchmark.is_quoted else ()
    published = tuple(each.as_published() for each in tables) or quoted
    thresholds = _thresholds(published, benchmark.is_quoted)
    curves: list[SeedCurve] = []
    tree: dict[str, Any] = {}
    for spec in specs:
        seed = spec.search.seed
        run = run_search(spec, out / f"seed-{seed}", threads=threads)
        say(
            f"seed {seed}: {several(run.result.steps, 'step')} in {run.cpu_seconds:.1f} CPU-s, "
            f"{run.wall_seconds:.1f} s; measuring"
        )
        remycc = RemyCC(run.result.table, reference_config(run.result.spec))
        for suffix in file_suffixes(remycc.table):
            write_remycc(out / f"seed-{seed}{suffix}", remycc)
        curves.append(_measured(run, evaluate, benchmark, every=every))
        tree = {
            **tables_tree(tables, benchmark),
            "threads": threads,
            "searches": [summary_tree(curve, thresholds, published) for curve in curves],
        }
        _write(out, curves, tree, published, benchmark.delta)
    if as_json:
        print_json(tree)
    else:
        _print(curves, thresholds, published)


def _measured(run: SearchRun, evaluate: Evaluate, benchmark: Benchmark, *, every: int) -> SeedCurve:
    points = []
    for point in measure_curve(run, evaluate, benchmark, every=every):
        points.append(point)
        say(
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


def _thresholds(published: Sequence[PublishedScore], is_quoted: bool) -> Sequence[float]:
    if is_quoted:
        return _THRESHOLDS
    means = [each.score.mean.mean for each in published if each.score.mean is not None]
    return [max(means)] if means else []


def _write(
    out: Path,
    curves: Sequence[SeedCurve],
    tree: dict[str, Any],
    published: Sequence[PublishedScore],
    delta: float,
) -> None:
    write_file(out / "curve.csv", to_csv(point for curve in curves for point in curve.points))
    write_file(out / "summary.json", json.dumps(tree, indent=2, allow_nan=False) + "\n")
    write_file(out / "curve.png", plot_curves(curves, published, delta=delta))


def _print(
    curves: Sequence[SeedCurve], thresholds: Sequence[float], published: tuple[PublishedScore, ...]
) -> None:
    rows = PlainTable("seed", "CPU-s", "wall-s", "rules", *SCORE_HEAD)
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
        times = PlainTable("seed", *(f"{threshold:.3g}" for threshold in thresholds))
        for curve in curves:
            passings = [curve.first_passed(threshold) for threshold in thresholds]
            times.add_row(str(curve.seed), *(_passing(each) for each in passings))
        print_table(times)
    for curve in curves:
        if worse := groups_below(curve.final.score, published):
            click.echo(
                f"\nseed {curve.seed}: a published RemyCC is better with {', '.join(worse)} senders"
            )


def _passing(passing: CurvePoint | None) -> str:
    return f"{passing.cpu_seconds:.1f} / {passing.wall_seconds:.1f}" if passing else "-"


_SEEDS = re.compile(r"(\d+)(?:-(\d+))?")
_MOST_SEEDS = 1000
_LARGEST_SEED = 2**64 - 1


def _seeds(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """The seeds that a text such as 1-5 or 1,3,8 names."""
    if value is None:
        return None
    seeds: list[int] = []
    for part in value.split(","):
        match = _SEEDS.fullmatch(part)
        if match is None:
            raise click.BadParameter(f"{value!r} is not a list of seeds such as 1-5 or 1,3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < first + _MOST_SEEDS:
            raise click.BadParameter(f"{part!r} is not a range of 1 to {_MOST_SEEDS} seeds")
        seeds += range(first, last + 1)
    if max(seeds) > _LARGEST_SEED or len(set(seeds)) < len(seeds):
        raise click.BadParameter(f"{value!r} must hold different seeds of at most {_LARGEST_SEED}")
    return tuple(seeds)


@click.command("benchmark-search")
@option(
    "--remycc FILE",
    "Measure this RemyCC, .dna or .json; may be given several times.",
    FILE,
    name="remyccs",
    multiple=True,
)
@switch("--published", "Measure the published RemyCCs in $REMY_REFERENCE_DIR/remyccs.")
@option("--seeds K-L", "Search with these seeds.", callback=_seeds)
@option(
    "--steps N",
    "Length of each search: search.joint.steps, or search.pattern.steps.",
    click.IntRange(1, 10_000_000),
)
@option(
    "--cpu-seconds S",
    "Length of each search as CPU time: search.joint.cpu_seconds, or stop.cpu_seconds in "
    "the other modes.",
    POSITIVE,
)
@settings_option(
    "Another setting of the searches, as search.joint.starts=3; may be given several times."
)
@option(
    "--every STEPS",
    "Measure published tables that are at least so many steps apart.",
    POSITIVE_INT,
    default=1,
)
@option(
    "--delta D",
    "Weight of delay, in the searches' objective and in the score.",
    FiniteRange(min=0, max=1000),
    default=1.0,
)
@option(
    "--specimens N",
    "Held-out networks; with fewer the errors grow.  [default: 512, or as evaluate has them]",
    SPECIMEN_COUNT,
)
@option(
    "--network NAME",
    "Which networks; on those of the learnability study scores are the objective's own.",
    click.Choice(sorted(NETWORKS)),
    default=GENERAL_PURPOSE,
)
@option("--out DIR", "Directory of the searches.", click.Path(file_okay=False))
@time_unit_option
@threads_option
@json_option
def command(
    remyccs: tuple[str, ...],
    published: bool,
    seeds: tuple[int, ...] | None,
    steps: int | None,
    cpu_seconds: float | None,
    settings: tuple[str, ...],
    every: int,
    delta: float,
    specimens: int | None,
    network: str,
    out: str | None,
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Measure RemyCCs, or the search, on networks that published RemyCCs were designed for.

    1 to 16 senders on and off for 5 s each, 10-20 Mbit/s, 100-200 ms, no limit to the queue; 512
    specimens of 100 s that serve nothing else. A sender's score is log2(equal-share throughput /
    link rate) - D log2(delay / RTT), where D is 1 unless --delta says otherwise; senders on for
    less than 500 ms are left out.

    With --remycc or --published these RemyCCs are measured. With --seeds a design is made for each
    seed, and the RemyCCs that it published on the way are measured once it is over: --out then
    holds curve.csv, summary.json, curve.png and the final RemyCCs.
    """
    if seeds is None:
        for name, value in (("--out", out), ("--steps", steps), ("--cpu-seconds", cpu_seconds)):
            if value is not None:
                raise click.UsageError(f"{name} needs --seeds")
        if settings:
            raise click.UsageError("--set needs --seeds")
        if not (remyccs or published):
            raise click.UsageError("one of --remycc, --published and --seeds is needed")
    elif out is None:
        raise click.UsageError("--seeds needs --out")
    elif steps is not None and cpu_seconds is not None:
        raise click.UsageError("--steps and --cpu-seconds exclude each other")
    if time_unit_ms != 1.0 and published:
        raise click.UsageError("--time-unit-ms and --published exclude each other")
    benchmark = Benchmark(delta, specimens, network)
    files = [Path(path) for path in remyccs] + (published_files() if published else [])
    with local_evaluator(threads) as evaluator:
        tables = measure_files(files, evaluator.evaluate, benchmark, time_unit_ms)
        if seeds is not None and out is not None:
            changes = list(_changes(settings, cpu_seconds))
            specs = [
                benchmark_spec(
                    delta, [*changes, ("search.seed", seed)], network=network, source="--set"
                )
                for seed in seeds
            ]
            benchmark_seeds(
                specs if steps is None else [with_steps(spec, steps) for spec in specs],
                Path(out),
                tables,
                evaluator.evaluate,
                benchmark,
                threads=threads,
                every=every,
                as_json=as_json,
            )
        elif as_json:
            print_json(tables_tree(tables, benchmark))
        else:
            print_tables(tables, QUOTED if benchmark.is_quoted and not published else ())


def _changes(settings: tuple[str, ...], cpu_seconds: float | None) -> Iterator[tuple[str, Tree]]:
    mode: Tree = "joint"
    for setting in settings:
        path = setting.partition("=")[0]
        if "=" not in setting or path.split(".")[0] not in (
            "search",
            "signals",
            "rules",
            "edition",
        ):
            raise click.UsageError(
                f"--set is {setting!r}, but must be PATH=VALUE with a path that begins with "
                "search, signals, rules or edition"
            )
        path, tree = parse_setting(setting, "--set", source="--set")
        mode = tree if path == "search.mode" else mode
        yield path, tree
    if cpu_seconds is not None:
        yield "search.joint.cpu_seconds" if mode == "joint" else "stop.cpu_seconds", cpu_seconds
