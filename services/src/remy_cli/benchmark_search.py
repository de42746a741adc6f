"""`remy-farm benchmark-search`: scores RemyCCs and searches on the benchmark networks."""

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
    examples,
    flag,
    json_option,
    local_evaluator,
    option,
    print_json,
    print_note,
    print_status,
    print_table,
    settings_option,
    threads_option,
    time_unit_option,
)
from remy_farm.analysis import format_estimate, plural
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
    curve_dict,
    group_name,
    groups_below,
    measure_curve,
    measure_table,
    plot_curves,
    published_files,
    run_search,
    score_dict,
    to_csv,
)
from remy_proto.v1 import spec_pb2

SCORE_COLUMNS = ("mean", "pooled", *(f"n={group_name(group)}" for group in GROUPS))


@dataclass(frozen=True)
class MeasuredFile:
    """A RemyCC file and its score."""

    path: Path
    rules: int
    score: BenchmarkScore

    def as_published(self) -> PublishedScore:
        """Converts to a PublishedScore, for the plot of searches."""
        return PublishedScore(self.path.stem, self.rules, self.score)


def measure_files(
    paths: Sequence[Path], evaluate: Evaluate, benchmark: Benchmark, time_unit_ms: float = 1.0
) -> list[MeasuredFile]:
    """Reads all files, then measures each. Raises FileError."""
    tables = [read_remycc(path, time_unit_ms).table for path in paths]
    return [
        MeasuredFile(path, table.rule_count, measure_table(table, evaluate, benchmark))
        for path, table in zip(paths, tables, strict=True)
    ]


def score_cells(score: BenchmarkScore) -> list[str]:
    """Returns table cells in the order of SCORE_COLUMNS."""
    return [format_estimate(each) for each in (score.mean, score.pooled, *score.groups)]


def print_tables(tables: Sequence[MeasuredFile], quoted: Sequence[PublishedScore] = ()) -> None:
    """Prints the scores as a text table; `quoted` scores come from publications."""
    rows = PlainTable("RemyCC", "rules", *SCORE_COLUMNS, left=1)
    for each in tables:
        rows.add_row(each.path.name, str(each.rules), *score_cells(each.score))
    for table in quoted:
        rows.add_row(f"published {table.name}", str(table.rules), *score_cells(table.score))
    print_table(rows)
    print_note(
        "mean: over specimens; pooled: over senders; both ± standard error. n: senders per "
        "specimen."
    )


def scores_dict(tables: Sequence[MeasuredFile], benchmark: Benchmark) -> dict[str, Any]:
    """Returns the scores as the dict that --json prints."""
    return {
        "network": benchmark.network,
        "delta": benchmark.delta,
        "specimens": benchmark.specimen_count,
        "simulated_seconds": NETWORKS[benchmark.network].seconds,
        "tables": [
            {"file": str(each.path), "rules": each.rules, **score_dict(each.score)}
            for each in tables
        ],
    }


#: Scores at delta = 1: the best published score, then three higher targets for a search.
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
    """Runs one design per specification in its own directory; rewrites the results after each."""
    # Scores measured in this run replace the quoted ones.
    quoted = QUOTED if benchmark.is_quoted else ()
    published = tuple(each.as_published() for each in tables) or quoted
    thresholds = _thresholds(published, benchmark.is_quoted)
    curves: list[SeedCurve] = []
    results: dict[str, Any] = {}
    for spec in specs:
        seed = spec.search.seed
        run = run_search(spec, out / f"seed-{seed}", threads=threads)
        print_status(
            f"seed {seed}: {plural(run.result.steps, 'step')} in {run.cpu_seconds:.1f} CPU-s, "
            f"{run.wall_seconds:.1f} s; measuring"
        )
        remycc = RemyCC(run.result.table, reference_config(run.result.spec))
        for suffix in file_suffixes(remycc.table):
            write_remycc(out / f"seed-{seed}{suffix}", remycc)
        curves.append(_measure_curve(run, evaluate, benchmark, every=every))
        results = {
            **scores_dict(tables, benchmark),
            "threads": threads,
            "searches": [curve_dict(curve, thresholds, published) for curve in curves],
        }
        _write_results(out, curves, results, published, benchmark.delta)
    if as_json:
        print_json(results)
    else:
        _print_results(curves, thresholds, published)


def _measure_curve(
    run: SearchRun, evaluate: Evaluate, benchmark: Benchmark, *, every: int
) -> SeedCurve:
    points = []
    for point in measure_curve(run, evaluate, benchmark, every=every):
        points.append(point)
        print_status(
            f"  step {point.steps}, {point.cpu_seconds:.1f} CPU-s, "
            f"{plural(point.rules, 'rule')}: mean {format_estimate(point.score.mean)}, "
            f"pooled {format_estimate(point.score.pooled)}"
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


def _write_results(
    out: Path,
    curves: Sequence[SeedCurve],
    results: dict[str, Any],
    published: Sequence[PublishedScore],
    delta: float,
) -> None:
    write_file(out / "curve.csv", to_csv(point for curve in curves for point in curve.points))
    write_file(out / "summary.json", json.dumps(results, indent=2, allow_nan=False) + "\n")
    write_file(out / "curve.png", plot_curves(curves, published, delta=delta))


def _print_results(
    curves: Sequence[SeedCurve], thresholds: Sequence[float], published: tuple[PublishedScore, ...]
) -> None:
    rows = PlainTable("seed", "CPU-s", "wall-s", "rules", *SCORE_COLUMNS)
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
        click.echo(
            "\nTime until both mean and pooled score reached the threshold, CPU-s / wall-s:\n"
        )
        times = PlainTable("seed", *(f"{threshold:.3g}" for threshold in thresholds))
        for curve in curves:
            passings = [curve.first_passed(threshold) for threshold in thresholds]
            times.add_row(str(curve.seed), *(_passing(each) for each in passings))
        print_table(times)
    for curve in curves:
        if worse := groups_below(curve.final.score, published):
            click.echo(
                f"\nseed {curve.seed}: a published RemyCC scores higher at n = {', '.join(worse)}"
            )


def _passing(passing: CurvePoint | None) -> str:
    return f"{passing.cpu_seconds:.1f} / {passing.wall_seconds:.1f}" if passing else "-"


_SEEDS = re.compile(r"(\d+)(?:-(\d+))?")
_MAX_SEEDS = 1000
_MAX_SEED = 2**64 - 1


def _parse_seeds(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Parses a seed list such as 1-5 or 1,3,8; None if the option is not given."""
    if value is None:
        return None
    seeds: list[int] = []
    for part in value.split(","):
        match = _SEEDS.fullmatch(part)
        if match is None:
            raise click.BadParameter(f"{value!r} is not a list of seeds such as 1-5 or 1,3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < first + _MAX_SEEDS:
            raise click.BadParameter(f"{part!r} is not a range of 1 to {_MAX_SEEDS} seeds")
        seeds += range(first, last + 1)
    if max(seeds) > _MAX_SEED or len(set(seeds)) < len(seeds):
        raise click.BadParameter(
            f"{value!r} has duplicate seeds, or a seed above the maximum of {_MAX_SEED}"
        )
    return tuple(seeds)


@click.command(
    "benchmark-search",
    epilog=examples(
        "remy-farm benchmark-search --remycc design/remycc.json --published",
        "remy-farm benchmark-search --seeds 1-5 --cpu-seconds 100 --out benchmark",
    ),
)
@option(
    "--remycc FILE",
    "Measure this RemyCC file, .dna or .json; may be given several times.",
    FILE,
    name="remyccs",
    multiple=True,
)
@flag("--published", "Measure the published RemyCCs in $REMY_REFERENCE_DIR/remyccs.")
@option(
    "--seeds K-L", "Run a search for each of these seeds, e.g. 1-5 or 1,3,8.", callback=_parse_seeds
)
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
    "Override a setting of the searches, e.g. search.joint.starts=3; may be given several times."
)
@option(
    "--every STEPS",
    "Measure the tables that a search publishes at most once every STEPS steps.",
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
    "Number of held-out networks; fewer give larger standard errors.  [default: the network's]",
    SPECIMEN_COUNT,
)
@option(
    "--network NAME",
    "Benchmark networks. On those of the learnability study, the score is the objective itself.",
    click.Choice(sorted(NETWORKS)),
    default=GENERAL_PURPOSE,
)
@option("--out DIR", "Directory for the searches' files.", click.Path(file_okay=False))
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

    By default, the benchmark is 512 held-out specimens of 100 s each: 1-16 senders with mean on and
    off times of 5 s, a link of 10-20 Mbit/s, RTTs of 100-200 ms and an infinite buffer. A sender's
    score is log2(equal-share throughput / link rate) - D log2(delay / RTT), where D is --delta.
    Senders that are on for less than 500 ms are excluded.

    --remycc and --published measure existing RemyCCs. --seeds runs a design for each seed, then
    measures the RemyCCs that the design published at intermediate steps. --out then contains
    curve.csv, summary.json, curve.png and the final RemyCCs.
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
            print_json(scores_dict(tables, benchmark))
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
