"""`remy-farm benchmark-search`: tables and searches on the yardstick."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from remy_services.cli.benchmark_curves import benchmark_seeds
from remy_services.cli.benchmark_tables import measure_files, print_tables, tables_tree
from remy_services.cli.options import FILE, FiniteRange, json_option, threads_option
from remy_services.cli.output import print_json
from remy_services.embedded import with_steps
from remy_services.evaluation import LocalEvaluator
from remy_services.spec.text import Tree, read_yaml
from remy_services.yardstick.network import SPECIMENS, benchmark_spec
from remy_services.yardstick.published import QUOTED, QUOTED_DELTA, published_files

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
@click.option(
    "--remycc",
    "remyccs",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="Measure this RemyCC, .dna or .json; may be given several times.",
)
@click.option(
    "--published",
    is_flag=True,
    help="Measure the published RemyCCs in $REMY_REFERENCE_DIR/remyccs.",
)
@click.option("--seeds", callback=_seeds, metavar="K-L", help="Search with these seeds.")
@click.option(
    "--steps",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Length of each search: search.joint.steps, or search.pattern.steps.",
)
@click.option(
    "--cpu-seconds",
    type=FiniteRange(min=0, min_open=True),
    metavar="S",
    help="Length of each search as CPU time: search.joint.cpu_seconds, or stop.cpu_seconds in the "
    "other modes.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PATH=VALUE",
    help="Another setting of the searches, as search.joint.starts=3; may be given several times.",
)
@click.option(
    "--every",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="STEPS",
    help="Measure published tables that are at least so many steps apart.",
)
@click.option(
    "--delta",
    type=FiniteRange(min=0, max=1000),
    default=1.0,
    show_default=True,
    metavar="D",
    help="Weight of delay, in the searches' objective and in the score.",
)
@click.option(
    "--specimens",
    type=click.IntRange(1, 1_000_000),
    default=SPECIMENS,
    show_default=True,
    metavar="N",
    help="Held-out networks; with fewer the errors grow.",
)
@click.option(
    "--out", type=click.Path(file_okay=False), metavar="DIR", help="Directory of the searches."
)
@threads_option()
@json_option()
def command(
    remyccs: tuple[str, ...],
    published: bool,
    seeds: tuple[int, ...] | None,
    steps: int | None,
    cpu_seconds: float | None,
    settings: tuple[str, ...],
    every: int,
    delta: float,
    specimens: int,
    out: str | None,
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
    files = [Path(path) for path in remyccs] + (published_files() if published else [])
    with closing(LocalEvaluator(threads)) as evaluator:
        tables = measure_files(files, evaluator.evaluate, delta=delta, specimens=specimens)
        if seeds is not None and out is not None:
            changes = list(_changes(settings, cpu_seconds))
            specs = [
                benchmark_spec(delta, [*changes, ("search.seed", seed)], source="--set")
                for seed in seeds
            ]
            benchmark_seeds(
                specs if steps is None else [with_steps(spec, steps) for spec in specs],
                Path(out),
                tables,
                evaluator.evaluate,
                threads=threads,
                every=every,
                specimens=specimens,
                as_json=as_json,
            )
        elif as_json:
            print_json(tables_tree(tables, delta=delta, specimens=specimens))
        else:
            quoted = QUOTED if delta == QUOTED_DELTA and not published else ()
            print_tables(tables, quoted)


def _changes(settings: tuple[str, ...], cpu_seconds: float | None) -> Iterator[tuple[str, Tree]]:
    mode: Tree = "joint"
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals or path.split(".")[0] not in ("search", "signals"):
            raise click.UsageError(
                f"--set is {setting!r}, but must be PATH=VALUE with a path that begins with search "
                "or signals"
            )
        tree = read_yaml(value, "--set")
        mode = tree if path == "search.mode" else mode
        yield path, tree
    if cpu_seconds is not None:
        yield "search.joint.cpu_seconds" if mode == "joint" else "stop.cpu_seconds", cpu_seconds
