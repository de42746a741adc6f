"""The search benchmark: scores tables and searches on held-out specimens of one network model.

The default model is the general-purpose one of "TCP ex Machina" (section 5.1), for which tables are
published. A search is scored by the table that it has published after a given time.
"""

from __future__ import annotations

import csv
import io
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import remy_simulator
from remy_farm.analysis.wording import estimate_fields
from remy_farm.driver.progress import DesignObserver
from remy_farm.driver.run import DesignResult, DesignRun
from remy_farm.evaluation.measures import (
    Estimate,
    Evaluate,
    by_specimen,
    estimate,
    evaluation_request,
    link_rate_mbps,
)
from remy_farm.files import FileError
from remy_farm.specification import spec_from_tree, vary
from remy_farm.specification.reading import Tree
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import RuleTable
from remy_simulator.objective import mean_of_scored, sender_scores

__all__ = [
    "GENERAL_PURPOSE",
    "GROUPS",
    "MINIMUM_ON_MS",
    "NETWORKS",
    "QUOTED",
    "QUOTED_DELTA",
    "REFERENCE_VARIABLE",
    "SIMULATED_SECONDS",
    "SPECIMENS",
    "Benchmark",
    "BenchmarkNetwork",
    "BenchmarkScore",
    "CurvePoint",
    "IntermediateTable",
    "PublishedScore",
    "SearchRun",
    "SeedCurve",
    "benchmark_spec",
    "best_groups",
    "curve_dict",
    "group_name",
    "groups_below",
    "held_out_request",
    "measure_curve",
    "measure_table",
    "normalized_scores",
    "plot_curves",
    "published_files",
    "run_search",
    "score_dict",
    "summarize",
    "thin",
    "to_csv",
]

SPECIMENS = 512
SIMULATED_SECONDS = 100.0
#: Senders that are on for less are excluded, as no table can influence their score much.
MINIMUM_ON_MS = 500.0

_MODEL: Tree = {
    "name": "general-purpose",
    "network": {
        "rate_mbps": {"uniform": [10, 20]},
        "rtt_ms": {"uniform": [100, 200]},
        "senders": {"integer_uniform": [1, 16]},
        "buffer": "infinite",
        "traffic": {"exponential_time": {"mean_ms": 5000}, "mean_off_ms": 5000},
    },
    "objective": {"alpha": 1, "beta": 1, "minimum_on_ms": MINIMUM_ON_MS},
    "search": {"mode": "joint"},
}

# Seed of the held-out specimens. A search cannot draw them, because the keys of its random streams
# have another length: they consist of its seed and small numbers.
_HELD_OUT = 0x7961726473746963
# Seed of the specimens that `remy-farm evaluate --seed 20130812` draws.
_EVALUATION = 20130812


@dataclass(frozen=True)
class BenchmarkNetwork:
    """A network model on which tables and searches are scored."""

    model: Tree
    #: Number of held-out specimens, their simulated time, and their seed.
    specimens: int
    seconds: float
    held_out: int
    #: Whether scores are in bits relative to a sender with a fair share of the link and without
    #: queueing, instead of in the objective's unit.
    is_normalized: bool = False


def _learnability(lowest_mbps: float, highest_mbps: float) -> BenchmarkNetwork:
    """Returns a range of link rates of "An Experimental Study of the Learnability of Congestion
    Control" (Table 2).

    Scores are those of `evaluate`: 256 specimens of 30 s, natural logarithms.
    """
    model: Tree = {
        "name": "learnability",
        "network": {
            "rate_mbps": {"log_uniform": [lowest_mbps, highest_mbps]},
            "rtt_ms": 150,
            "senders": 2,
            "buffer": "infinite",
            "traffic": {"exponential_time": {"mean_ms": 1000}, "mean_off_ms": 1000},
        },
        "search": {"mode": "joint"},
    }
    return BenchmarkNetwork(model, 256, 30.0, _EVALUATION)


# The combined ranges of the learnability study (Tables 2 to 4), with clocks like those of kernels.
_GENERALIST: Tree = {
    "name": "generalist",
    "network": {
        "rate_mbps": {"log_uniform": [1, 1000]},
        "rtt_ms": {"log_uniform": [10, 300]},
        "senders": [1, 2, 4, 8, 16, 32, 64, 100],
        "buffer": "infinite",
        "measurement": {
            "jitter": {"exponential_mean_packets": {"log_uniform": [0.01, 3]}},
            "timestamp_resolution_ms": 0.001,
            "bunch_packets": [1, 2, 4],
            "delayed_ack_ms": [0, 1],
        },
        "traffic": {"exponential_time": {"mean_ms": 2000}, "mean_off_ms": 2000},
    },
    "objective": {"minimum_on_ms": MINIMUM_ON_MS},
    "search": {"mode": "joint", "specimens": 32, "simulated_seconds": 12},
}

GENERAL_PURPOSE: Final = "general-purpose"
#: Network models by name.
NETWORKS: Final = {
    GENERAL_PURPOSE: BenchmarkNetwork(_MODEL, SPECIMENS, SIMULATED_SECONDS, _HELD_OUT, True),
    "general-purpose-noise": BenchmarkNetwork(
        vary(
            vary(
                _MODEL, "network.measurement.jitter", {"exponential_mean_ms": {"uniform": [0, 0.5]}}
            ),
            "network.measurement.timestamp_resolution_ms",
            [0.001, 1],
        ),
        128,
        30.0,
        _EVALUATION,
        True,
    ),
    "generalist": BenchmarkNetwork(_GENERALIST, 256, 12.0, _EVALUATION, True),
    "learnability-2x": _learnability(22, 44),
    "learnability-10x": _learnability(10, 100),
    "learnability-100x": _learnability(3.2, 320),
    "learnability-1000x": _learnability(1, 1000),
}


def benchmark_spec(
    delta: float = 1.0,
    settings: Iterable[tuple[str, Tree]] = (),
    *,
    network: str = GENERAL_PURPOSE,
    source: str = "the benchmark",
) -> spec_pb2.DesignSpec:
    """Returns the specification of a design for a benchmark network.

    `settings` are (path, value) pairs as for `vary`. Raises SpecError, which names `source`.
    """
    tree = vary(NETWORKS[network].model, "objective.delta", delta)
    for path, value in settings:
        tree = vary(tree, path, value, source=source)
    return spec_from_tree(tree, source)


def held_out_request(
    table: RuleTable, specimens: int, *, network: str = GENERAL_PURPOSE
) -> evaluation_pb2.EvaluationRequest:
    """Returns the request that evaluates a table on the first `specimens` held-out specimens."""
    measured = NETWORKS[network]
    return evaluation_request(
        benchmark_spec(network=network),
        table,
        seed=measured.held_out,
        specimens=specimens,
        seconds=measured.seconds,
    )


#: Groups of specimens by number of senders: first and last of each group.
GROUPS: Final = ((1, 1), (2, 4), (5, 9), (10, 16))

_NATURAL_LOGARITHM_OF_2: Final = remy_simulator.log(2.0)


@dataclass(frozen=True)
class BenchmarkScore:
    """Mean scores with standard errors; None if nothing was scored."""

    #: Over specimens, with the mean over senders as the specimen's score.
    mean: Estimate | None
    #: Over the senders of all specimens.
    pooled: Estimate | None
    #: Over the specimens of each group in GROUPS.
    groups: tuple[Estimate | None, ...]


def group_name(group: tuple[int, int]) -> str:
    """Returns a name such as "2-4"."""
    first, last = group
    return str(first) if first == last else f"{first}-{last}"


@dataclass(frozen=True)
class Benchmark:
    """The networks on which tables are scored, and the weight of delay."""

    #: Weight of delay in the score, and in the objective of searches.
    delta: float = 1.0
    #: Number of held-out specimens; None for all.
    specimens: int | None = None
    #: A key of NETWORKS.
    network: str = GENERAL_PURPOSE

    @property
    def specimen_count(self) -> int:
        """The number of specimens on which tables are scored."""
        return self.specimens or NETWORKS[self.network].specimens

    @property
    def is_quoted(self) -> bool:
        """Whether the scores in QUOTED belong to this benchmark."""
        return self.delta == QUOTED_DELTA and self.network == GENERAL_PURPOSE


def measure_table(
    table: RuleTable, evaluate: Evaluate, benchmark: Benchmark = Benchmark()
) -> BenchmarkScore:
    """Evaluates a table on the held-out specimens and scores it.

    Scores are those of `normalized_scores` or, if the network is not normalized, of the objective.
    """
    delta, network = benchmark.delta, benchmark.network
    request = held_out_request(table, benchmark.specimen_count, network=network)
    objective = benchmark_spec(delta, network=network).objective

    def scores(
        specimen: evaluation_pb2.Specimen, result: evaluation_pb2.SpecimenOutcome
    ) -> list[float | None]:
        if NETWORKS[network].is_normalized:
            return normalized_scores(delta, specimen, result, request.duration_ms)
        return sender_scores(objective, specimen, result, request.duration_ms)

    return summarize(
        [scores(specimen, result) for specimen, result in by_specimen(request, evaluate(request))]
    )


def normalized_scores(
    delta: float,
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    duration_ms: float,
) -> list[float | None]:
    """Returns each sender's log2(equal-share throughput / link rate) - delta * log2(delay / RTT).

    This is the objective with alpha = beta = 1 in bits. It is zero for a sender with its fair share
    of the link and no queueing, and None for an excluded sender.
    """
    objective = spec_pb2.Objective(
        alpha=1,
        beta=1,
        delta=delta,
        throughput=spec_pb2.THROUGHPUT_MEASURE_EQUAL_SHARE,
        minimum_on_ms=MINIMUM_ON_MS,
    )
    ideal = remy_simulator.log(link_rate_mbps(specimen)) - delta * remy_simulator.log(
        specimen.rtt_ms
    )
    return [
        None if score is None else (score - ideal) / _NATURAL_LOGARITHM_OF_2
        for score in sender_scores(objective, specimen, outcome, duration_ms)
    ]


def summarize(scores: Sequence[Sequence[float | None]]) -> BenchmarkScore:
    """Summarizes scores by specimen and sender; None is excluded."""
    means = [mean_of_scored(senders) for senders in scores]
    return BenchmarkScore(
        mean=estimate(means),
        pooled=_pooled(scores),
        groups=tuple(
            estimate(
                [
                    mean
                    for mean, senders in zip(means, scores, strict=True)
                    if first <= len(senders) <= last
                ]
            )
            for first, last in GROUPS
        ),
    )


def _pooled(scores: Sequence[Sequence[float | None]]) -> Estimate | None:
    """Estimates the mean over senders.

    Senders of the same specimen are not independent, so the standard error is that of a ratio of
    two sums over independent specimens.
    """
    scored = [[score for score in senders if score is not None] for senders in scores]
    counts = [len(senders) for senders in scored if senders]
    sums = [math.fsum(senders) for senders in scored if senders]
    senders, specimens = sum(counts), len(counts)
    if not senders:
        return None
    mean = math.fsum(sums) / senders
    if specimens < 2:
        return Estimate(mean, None, senders)
    squares = math.fsum(
        (total - mean * count) ** 2 for total, count in zip(sums, counts, strict=True)
    )
    error = math.sqrt(squares * specimens / (specimens - 1)) / senders
    return Estimate(mean, error, senders)


REFERENCE_VARIABLE: Final = "REMY_REFERENCE_DIR"


@dataclass(frozen=True)
class PublishedScore:
    """A published table's score on the benchmark."""

    name: str
    rules: int
    score: BenchmarkScore


def _quoted(name: str, rules: int, *means: float) -> PublishedScore:
    """Creates a score from the mean, the pooled mean and the means of the groups."""
    mean, pooled, *groups = (Estimate(value, None, SPECIMENS) for value in means)
    return PublishedScore(name, rules, BenchmarkScore(mean, pooled, tuple(groups)))


#: Scores at delta = 1, quoted from other specimens, with standard errors from .005 to .027.
QUOTED: Final = (
    _quoted("2013-delta0.1", 162, -0.436, -0.476, -0.43, -0.35, -0.38, -0.52),
    _quoted("2013-delta1", 190, -0.485, -0.436, -0.84, -0.59, -0.43, -0.42),
    _quoted("2013-delta10", 197, -0.807, -0.518, -2.25, -1.46, -0.72, -0.35),
)
QUOTED_DELTA: Final = 1.0


def best_groups(published: tuple[PublishedScore, ...]) -> tuple[float, ...]:
    """Returns the best published score of each group; empty without published scores."""
    by_group = zip(*(each.score.groups for each in published), strict=True)
    return tuple(max(each.mean if each else -math.inf for each in group) for group in by_group)


def published_files() -> list[Path]:
    """Returns the .dna files of the published tables. Raises FileError if there are none."""
    folder = os.environ.get(REFERENCE_VARIABLE)
    files = sorted(Path(folder, "remyccs").glob("*.dna")) if folder else []
    if not files:
        raise FileError(
            f"{REFERENCE_VARIABLE} is {folder!r}, but must name the directory whose subdirectory "
            "remyccs has the published .dna files"
        )
    return files


@dataclass(frozen=True)
class IntermediateTable:
    """A table that a design published, with the time spent until then."""

    table: RuleTable
    #: Number of steps; 0 for the initial table.
    steps: int
    #: CPU time of the process since the design started, without any scoring of tables.
    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True)
class CurvePoint:
    """The score of a search at one time."""

    seed: int
    steps: int
    rules: int
    cpu_seconds: float
    wall_seconds: float
    score: BenchmarkScore


@dataclass(frozen=True)
class SearchRun:
    """A finished design and the tables that it published."""

    result: DesignResult
    cpu_seconds: float
    wall_seconds: float
    published: tuple[IntermediateTable, ...]


class _Recorder(DesignObserver):
    """Records every published table with its time."""

    def __init__(self) -> None:
        self._cpu_origin = time.process_time()
        self._wall_origin = time.monotonic()
        self.tables: list[IntermediateTable] = []

    def elapsed(self) -> tuple[float, float]:
        """Returns CPU seconds and wall seconds since the start."""
        return time.process_time() - self._cpu_origin, time.monotonic() - self._wall_origin

    def published(self, table: RuleTable, steps: int) -> None:
        self.tables.append(IntermediateTable(table, steps, *self.elapsed()))


def run_search(
    spec: spec_pb2.DesignSpec, folder: str | os.PathLike[str], *, threads: int
) -> SearchRun:
    """Runs a design and records each table that it publishes.

    Tables are scored later, so that scoring takes no time from the design. The times include all
    work of the design, also the work of converting a CPU-time budget to steps. Raises
    KeyboardInterrupt if the run is interrupted, and the errors of DesignRun.
    """
    recorder = _Recorder()
    result = DesignRun(spec, folder, threads=threads).run(recorder)
    cpu_seconds, wall_seconds = recorder.elapsed()
    if result.reason is None:
        raise KeyboardInterrupt
    return SearchRun(result, cpu_seconds, wall_seconds, tuple(recorder.tables))


def thin(tables: Iterable[IntermediateTable], every: int) -> list[IntermediateTable]:
    """Returns tables that are at least `every` steps apart, and the last table."""
    *earlier, last = tables
    selected: list[IntermediateTable] = []
    for each in earlier:
        if not selected or each.steps >= selected[-1].steps + every:
            selected.append(each)
    return [*selected, last]


def measure_curve(
    run: SearchRun, evaluate: Evaluate, benchmark: Benchmark, *, every: int = 1
) -> Iterator[CurvePoint]:
    """Scores the tables of a search and yields the points of its curve."""
    for each in thin(run.published, every):
        yield CurvePoint(
            seed=run.result.spec.search.seed,
            steps=each.steps,
            rules=each.table.rule_count,
            cpu_seconds=each.cpu_seconds,
            wall_seconds=each.wall_seconds,
            score=measure_table(each.table, evaluate, benchmark),
        )


@dataclass(frozen=True)
class SeedCurve:
    """The curve of one search, with its points by increasing time."""

    seed: int
    steps: int
    cpu_seconds: float
    wall_seconds: float
    points: tuple[CurvePoint, ...]

    @property
    def final(self) -> CurvePoint:
        """The last point, for the final table."""
        return self.points[-1]

    def first_passed(self, threshold: float) -> CurvePoint | None:
        """Returns the first point whose mean and pooled scores both exceed `threshold`, or None."""
        for point in self.points:
            mean, pooled = point.score.mean, point.score.pooled
            if mean and pooled and min(mean.mean, pooled.mean) > threshold:
                return point
        return None


def groups_below(score: BenchmarkScore, published: tuple[PublishedScore, ...]) -> list[str]:
    """Returns the names of groups in which a published table scores higher."""
    return [
        group_name(group)
        for group, ours, best in zip(GROUPS, score.groups, best_groups(published), strict=False)
        if ours is None or ours.mean < best
    ]


def score_dict(score: BenchmarkScore) -> dict[str, Any]:
    """Returns a score as a JSON object."""
    return {
        **estimate_fields(score.mean, "mean"),
        **estimate_fields(score.pooled, "pooled"),
        "groups": [
            {
                "senders": group_name(group),
                "specimens": each.count if each else 0,
                **estimate_fields(each, "mean"),
            }
            for group, each in zip(GROUPS, score.groups, strict=True)
        ],
    }


def curve_dict(
    curve: SeedCurve, thresholds: Sequence[float], published: tuple[PublishedScore, ...]
) -> dict[str, Any]:
    """Returns the results of a search as a JSON object."""
    passings = [(threshold, curve.first_passed(threshold)) for threshold in thresholds]
    return {
        "seed": curve.seed,
        "cpu_seconds": curve.cpu_seconds,
        "wall_seconds": curve.wall_seconds,
        "steps": curve.steps,
        "rules": curve.final.rules,
        **score_dict(curve.final.score),
        "groups_below_the_best_published": groups_below(curve.final.score, published),
        "first_passed": [
            {
                "score": threshold,
                "cpu_seconds": passing and passing.cpu_seconds,
                "wall_seconds": passing and passing.wall_seconds,
            }
            for threshold, passing in passings
        ],
    }


def to_csv(points: Iterable[CurvePoint]) -> str:
    """Returns CSV with a line per point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ["mean", "pooled", *(f"senders_{group_name(group)}" for group in GROUPS)]
    writer.writerow(
        ["seed", "steps", "rules", "cpu_seconds", "wall_seconds"]
        + [column for name in names for column in (name, f"{name}_stderr")]
    )
    for point in points:
        score = point.score
        estimates = [score.mean, score.pooled, *score.groups]
        writer.writerow(
            [point.seed, point.steps, point.rules, point.cpu_seconds, point.wall_seconds]
            + [cell for each in estimates for cell in estimate_fields(each, "").values()]
        )
    return text.getvalue()


# Lower limit of the plot; scores of early steps below it would compress the rest.
_MIN_SCORE = -1.6
_MARGIN = 0.05
_LINEAR_SECONDS = 10.0


def plot_curves(
    curves: Sequence[SeedCurve], published: Sequence[PublishedScore], *, delta: float
) -> bytes:
    """Plots each search as a line and each published table as a horizontal line; returns a PNG."""
    # Imported here because matplotlib is slow to import.
    from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

    from remy_farm.analysis.plots import COLORS, INK, MUTED, label_axes, new_figure, to_png

    figure, axes = new_figure(8.0, 4.8)
    lowest = highest = -0.2
    for number, curve in enumerate(curves):
        scored = [(p.cpu_seconds, p.score.mean) for p in curve.points if p.score.mean is not None]
        if not scored:
            continue
        means = [score.mean for _, score in scored]
        lowest, highest = min(lowest, *means), max(highest, *means)
        color = COLORS[number % len(COLORS)]
        times = [seconds for seconds, _ in scored]
        axes.plot(
            [*times, curve.cpu_seconds],
            [*means, means[-1]],
            drawstyle="steps-post",
            color=color,
            linewidth=1.5,
            label=f"seed {curve.seed}",
        )
        axes.errorbar(
            times,
            means,
            yerr=[score.standard_error or 0.0 for _, score in scored],
            fmt=".",
            color=color,
            markersize=5,
            elinewidth=1.0,
        )
    for each in published:
        if (mean := each.score.mean) is not None:
            lowest = min(lowest, mean.mean)
            axes.axhline(mean.mean, color=MUTED, linewidth=1.1, linestyle="--")
            axes.annotate(
                f"{each.name}, {mean.mean:.3f}",
                (1.0, mean.mean),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="bottom",
                fontsize=8.5,
                color=MUTED,
            )
    axes.set_ylim(max(lowest - _MARGIN, _MIN_SCORE), highest + _MARGIN)
    axes.set_xscale("symlog", linthresh=_LINEAR_SECONDS)
    axes.xaxis.set_major_locator(
        SymmetricalLogLocator(base=10, linthresh=_LINEAR_SECONDS, subs=(1, 2, 5))
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(left=0)
    weight = "" if delta == 1 else f"{delta:g} "
    label_axes(
        axes,
        title="Published table's score on held-out specimens",
        x=f"CPU time of the search, s (logarithmic above {_LINEAR_SECONDS:g})",
        y=f"log2(throughput / link rate) - {weight}log2(delay / RTT)",
    )
    if curves:
        axes.legend(frameon=False, fontsize=9.5, loc="lower right", labelcolor=INK)
    return to_png(figure)
