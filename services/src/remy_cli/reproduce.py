"""`remy-farm reproduce` and `league`: reproduce published figures, and compare RemyCCs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remy_cli.common import (
    PlainTable,
    examples,
    flag,
    json_option,
    local_evaluator,
    option,
    print_json,
    print_status,
    print_table,
    quiet_option,
    threads_option,
)
from remy_cli.farm import FarmRunner, pass_farm, simulate_missing
from remy_cli.views import progress_meter
from remy_farm.analysis import duration, plural
from remy_farm.files import FileError, make_folder, write_file
from remy_farm.shipped import DATA

if TYPE_CHECKING:
    from remy_laboratory.studies import Entrant, FigureResult, FigureStudy, League

FOLDER = click.Path(file_okay=False, path_type=Path)
#: Database of simulated cells, in the output directory.
CELL_DATABASE = "cells.db"


@click.command(
    "reproduce",
    epilog=examples(
        "remy-farm reproduce --list",
        "remy-farm reproduce sigcomm2013/figure-4 --quick",
    ),
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@flag(
    "--quick",
    "Use fewer runs and points, so that everything takes minutes; the pages state the numbers.",
)
@option(
    "--out -o DIR",
    "Directory for pages, data, plots and simulated cells.",
    FOLDER,
    default="studies",
)
@option(
    "--studies DIR",
    "Directory with a subdirectory per study, which has a file per figure.",
    FOLDER,
    default=DATA / "studies",
    show_default="the installed ones",
)
@flag("--list", "List the figures and exit.", name="is_list")
@option(
    "--with SIMULATOR",
    "Include figures that need another simulator: ns3, from the wheel that REMY_NS3 names.",
    click.Choice(["ns3"]),
    name="other",
)
@option("--evidence FILE.md", "Also write the verdicts, with some plots, to this page.")
@threads_option
@pass_farm
@quiet_option
@json_option
def reproduce_command(
    names: tuple[str, ...],
    quick: bool,
    out: Path,
    studies: Path,
    is_list: bool,
    other: str | None,
    evidence: str | None,
    threads: int,
    farm: FarmRunner | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Reproduce the figures of published studies and compare them with the published values.

    NAME is a study, or a figure such as study/figure; the default is all. Simulated cells are
    stored in DIR and never simulated again; with --coordinator the farm stores them too. RemyCCs
    published by others are read from the directory named by REMY_REFERENCE_DIR; without it, their
    rows are omitted.
    """
    from remy_laboratory.studies import (
        CellRunner,
        CellStore,
        Ns3,
        html_page,
        measure_figure,
        plan_figure,
        write_figure,
    )

    if evidence is not None and not evidence.endswith(".md"):
        raise click.UsageError(f"{evidence} must be a name that ends in .md")
    selected = _select_studies(studies, names, other)
    if is_list:
        _print_list(selected)
        return
    make_folder(out)
    results: list[FigureResult] = []
    pictures: dict[str, bytes] = {}
    start = time.monotonic()
    with ExitStack() as stack:
        evaluator = stack.enter_context(local_evaluator(threads))
        store = stack.enter_context(closing(CellStore(out / CELL_DATABASE)))
        others: dict[str, Ns3] = {}
        if other is not None:
            try:
                others[other] = stack.enter_context(closing(Ns3(studies)))
            except FileError as problem:
                selected = [study for study in selected if not study.simulators]
                print_status(f"figures that need {other} are skipped: {problem}")
        runner = CellRunner(evaluator.evaluate, store, others)
        plans = [
            plan_figure(study, studies.parent, quick=quick, others=others) for study in selected
        ]
        batches = [batch for plan in plans for batch in plan.batches]
        with progress_meter(runner.weight(batches), quiet=quiet) as progress:
            simulate_missing(farm, "reproduce", batches, runner, progress)
            for plan in plans:
                progress.start_task(plan.study.key)
                result = measure_figure(plan, runner, progress.set_done)
                results.append(result)
                for name in write_figure(out, result):
                    if name.endswith(".png"):
                        pictures[plan.study.key] = (out / name).read_bytes()
    write_file(out / "index.html", html_page(results, quick=quick, pictures=pictures))
    _write_markdown(out / "evidence.md", results, quick=quick, names=names, pictures=pictures)
    if evidence is not None:
        _write_markdown(Path(evidence), results, quick=quick, names=names, pictures=pictures)
    if as_json:
        print_json(_results_dict(results, runner, quick=quick))
    else:
        _print_verdicts(results)
        print_status(
            f"{plural(runner.simulated, 'cell')} simulated and {runner.loaded} loaded in "
            f"{duration(time.monotonic() - start)}; the page is {out / 'index.html'}"
        )


def _select_studies(folder: Path, names: Sequence[str], other: str | None) -> list[FigureStudy]:
    """Returns the studies with these names, or all; those in another simulator only for --with."""
    from remy_laboratory.studies import find_studies, read_study

    available = [read_study(path) for path in find_studies(folder)]
    if not available:
        raise click.UsageError(
            f"--studies {folder} has no studies: it needs a subdirectory per study, with .yaml "
            "files"
        )
    for name in names:
        if not any(name in (study.study, study.key) for study in available):
            known = ", ".join(dict.fromkeys(study.study for study in available))
            raise click.UsageError(
                f"'{name}' is not a study ({known}) or a figure; --list lists the figures"
            )
    selected = [
        study
        for study in available
        if not names or any(name in (study.study, study.key) for name in names)
    ]
    runnable = [study for study in selected if study.simulators <= {other}]
    if not runnable:
        raise click.UsageError(f"{', '.join(names)} needs another simulator; add --with ns3")
    return runnable


def _print_list(selected: Sequence[FigureStudy]) -> None:
    table = PlainTable("figure", "title", "runs", left=2)
    for study in selected:
        (runs,) = study.runs.full
        table.add_row(study.key, study.title, f"{runs:g}" if study.rows else "none")
    print_table(table)


def _write_markdown(
    path: Path,
    results: Sequence[FigureResult],
    *,
    quick: bool,
    names: Sequence[str],
    pictures: dict[str, bytes],
) -> None:
    from remy_laboratory.studies import markdown_page

    illustrated = [
        result for result in results if result.study.picture.shown and result.study.key in pictures
    ]
    files = []
    for result in illustrated:
        name = f"images/{result.study.study}-{result.study.name}.png"
        make_folder((path.parent / name).parent)
        write_file(path.parent / name, pictures[result.study.key])
        files.append((f"{result.study.source}: {result.study.title}", name))
    flags = [*names, *(["--quick"] if quick else []), "--evidence docs/results/evidence.md"]
    if any(result.study.simulators for result in results):
        flags.insert(-1, "--with ns3")
    command = f"remy-farm reproduce {' '.join(flags)}"
    write_file(path, markdown_page(results, quick=quick, command=command, pictures=files))


def _results_dict(results: Sequence[FigureResult], runner: Any, *, quick: bool) -> dict[str, Any]:
    from remy_laboratory.studies import data_digest, figure_dict

    return {
        "quick": quick,
        "data_sha256": data_digest(results),
        "cells_simulated": runner.simulated,
        "cells_found": runner.loaded,
        "figures": [figure_dict(result) for result in results],
    }


def _print_verdicts(results: Sequence[FigureResult]) -> None:
    from remy_laboratory.studies import counts_sentence, verdict_sentence

    table = PlainTable("figure", "verdict", left=2)
    for result in results:
        table.add_row(result.study.key, verdict_sentence(result))
    print_table(table)
    click.echo()
    click.echo(counts_sentence(results))


@click.command(
    "league",
    epilog=examples(
        "remy-farm league design/remycc.json --quick",
        "remy-farm league design/remycc.json copa,delta=0.1 --set ccbench-1 --alone",
    ),
)
@click.argument("names", metavar="TABLE-OR-PROTOCOL...", nargs=-1, required=True)
@flag(
    "--quick",
    "Use fewer networks and runs, so that everything takes minutes; the page states the numbers.",
)
@option(
    "--out -o DIR",
    "Directory for the page, data, plots and simulated cells.",
    FOLDER,
    default="league",
)
@option(
    "--sets DIR",
    "Directory with a file per set of networks.",
    FOLDER,
    default=DATA / "league",
    show_default="the installed ones",
)
@option(
    "--set NAME", "Run only this set; may be given several times.", name="selected", multiple=True
)
@option(
    "--draws HALF",
    "Half of the drawn networks: tuning, on which a table may be tuned, or judging, which only "
    "judges finished tables.",
    click.Choice(["tuning", "judging"]),
    default="tuning",
)
@option(
    "--draw-seed N",
    "Seed of the drawn networks.",
    click.IntRange(0, 2**63 - 1),
    default=1,
)
@flag(
    "--alone",
    "Compare only the arguments, without Cubic, NewReno, BBR, Copa, Vivace and others' RemyCCs.",
)
@threads_option
@pass_farm
@quiet_option
@json_option
def league_command(
    names: tuple[str, ...],
    quick: bool,
    out: Path,
    sets: Path,
    selected: tuple[str, ...],
    draws: str,
    draw_seed: int,
    alone: bool,
    threads: int,
    farm: FarmRunner | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare RemyCCs and protocols on sets of networks.

    Each argument is a RemyCC file, or a protocol as in simulate --sender. An entrant wins on a
    network if its score is within a margin of the best score. The page shows winning rates and
    heat maps, and the commands that simulate the networks where an entrant is farthest behind.
    """
    from remy_laboratory.studies import (
        CellRunner,
        CellStore,
        Draws,
        Half,
        LeagueRun,
        read_sets,
        rivals,
    )

    leagues = read_sets(sets, selected)
    entrants = [parse_entrant(name) for name in names]
    make_folder(out)
    with local_evaluator(threads) as evaluator, closing(CellStore(out / CELL_DATABASE)) as store:
        runner = CellRunner(evaluator.evaluate, store, threads=threads)
        run = LeagueRun(
            leagues,
            entrants,
            [] if alone else rivals(),
            runner,
            draws=Draws(Half(draws), draw_seed),
            quick=quick,
        )
        with progress_meter(run.weight, quiet=quiet) as progress:
            simulate_missing(farm, "league", run.batches, runner, progress)
            league = run.run(progress.start_task, progress.set_done)
    league.save(out)
    if as_json:
        print_json(league.to_dict())
        return
    table = PlainTable("entrant", *league.sets, left=1)
    for row in league.winning_rates().to_dicts():
        name, *rates = row.values()
        style = "bold" if name in league.contenders else ""
        table.add_row(name, *(f"{rate:.0%}" for rate in rates), style=style)
    print_table(table)
    click.echo()
    print_table(_means_table(league))
    print_status(f"the page is {out / 'index.html'}")


# Measures that `league` prints, with their column heads and formats.
_MEANS = {
    "goodput_mbps": ("Mbit/s", ".4g"),
    "utilization": ("utilization", ".3f"),
    "jain": ("Jain", ".3f"),
    "loss": ("loss", ".2%"),
    "rtt_mean_ms": ("mean RTT ms", ".1f"),
    "rtt_p95_ms": ("RTT p95 ms", ".1f"),
    "rtt_over_path_p95": ("p95 RTT / path", ".2f"),
}


def _means_table(league: League) -> PlainTable:
    """Returns a table of each entrant's means over each set's networks."""
    heads = [head for head, _ in _MEANS.values()]
    table = PlainTable("set", "networks", "entrant", *heads, left=3)
    for row in league.means().to_dicts():
        values = [(row[name], style) for name, (_, style) in _MEANS.items()]
        table.add_row(
            row["set"],
            row["draws"],
            row["entrant"],
            *("" if value is None else format(value, style) for value, style in values),
            style="bold" if row["entrant"] in league.contenders else "",
        )
    return table


def parse_entrant(text: str, time_unit_ms: float = 1.0) -> Entrant:
    """Parses a RemyCC file name or a protocol. Raises UsageError."""
    from remy_laboratory.studies import parse_entrant

    try:
        return parse_entrant(text, time_unit_ms)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
