"""`remy-farm reproduce` and `league`: published studies, and who does best on which networks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remy_cli.common import (
    PlainTable,
    json_option,
    local_evaluator,
    option,
    print_json,
    print_table,
    quiet_option,
    say,
    switch,
    threads_option,
)
from remy_cli.on_farm import OnFarm, on_farm_options, simulate_missing
from remy_cli.views import meter
from remy_farm.analysis import duration, several
from remy_farm.files import FileError, make_folder, write_file
from remy_farm.shipped import DATA

if TYPE_CHECKING:
    from remy_laboratory.studies import Entrant, FigureResult, FigureStudy

FOLDER = click.Path(file_okay=False, path_type=Path)
#: Beside the pages: what has been simulated.
CELLS = "cells.db"


@click.command("reproduce")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@switch("--quick", "Fewer runs and points, so that all takes minutes; the pages say how many.")
@option(
    "--out -o DIR", "Pages, data, pictures and what has been simulated.", FOLDER, default="studies"
)
@option(
    "--studies DIR",
    "Studies: a folder each, with a file for each figure.",
    FOLDER,
    default=DATA / "studies",
    show_default="those installed with it",
)
@switch("--list", "List the figures and stop.", name="is_list")
@option(
    "--with SIMULATOR",
    "Figures that need another simulator, too: ns3, whose wheel REMY_NS3 names.",
    click.Choice(["ns3"]),
    name="other",
)
@option("--evidence FILE.md", "Write the verdicts with some pictures to this page, too.")
@threads_option
@on_farm_options
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
    farm: OnFarm | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Make the figures of published studies, and compare.

    NAME is a study, or a figure as study/figure; all without one. What has been simulated is kept
    in DIR and not simulated again; with --coordinator a farm keeps it, too. Tables that others
    published are found in the folder that REMY_REFERENCE_DIR names; without it their rows are left
    out.
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
    chosen = _choose(studies, names, other)
    if is_list:
        _list(chosen)
        return
    make_folder(out)
    results: list[FigureResult] = []
    pictures: dict[str, bytes] = {}
    began = time.monotonic()
    with ExitStack() as stack:
        evaluator = stack.enter_context(local_evaluator(threads))
        store = stack.enter_context(closing(CellStore(out / CELLS)))
        others: dict[str, Ns3] = {}
        if other is not None:
            try:
                others[other] = stack.enter_context(closing(Ns3(studies)))
            except FileError as problem:
                chosen = [study for study in chosen if not study.simulators]
                say(f"figures in {other} are skipped: {problem}")
        runner = CellRunner(evaluator.evaluate, store, others)
        plans = [plan_figure(study, studies.parent, quick=quick, others=others) for study in chosen]
        batches = [batch for plan in plans for batch in plan.batches]
        with meter(runner.weight(batches), quiet=quiet) as shown:
            simulate_missing(farm, "reproduce", batches, runner, shown)
            for plan in plans:
                shown.work(plan.study.key)
                result = measure_figure(plan, runner, shown.advance)
                results.append(result)
                for name in write_figure(out, result):
                    if name.endswith(".png"):
                        pictures[plan.study.key] = (out / name).read_bytes()
    write_file(out / "index.html", html_page(results, quick=quick, pictures=pictures))
    _write_markdown(out / "evidence.md", results, quick=quick, names=names, pictures=pictures)
    if evidence is not None:
        _write_markdown(Path(evidence), results, quick=quick, names=names, pictures=pictures)
    if as_json:
        print_json(_tree(results, runner, quick=quick))
    else:
        _print(results)
        say(
            f"{several(runner.simulated, 'cell')} simulated and {runner.found} found in "
            f"{duration(time.monotonic() - began)}; the page is {out / 'index.html'}"
        )


def _choose(folder: Path, names: Sequence[str], other: str | None) -> list[FigureStudy]:
    """Those by these names, or all; in another simulator only if that is asked for."""
    from remy_laboratory.studies import find_studies, read_study

    found = [read_study(path) for path in find_studies(folder)]
    if not found:
        raise click.UsageError(
            f"--studies {folder} has no studies: a folder each, with .yaml files"
        )
    for name in names:
        if not any(name in (study.study, study.key) for study in found):
            known = ", ".join(dict.fromkeys(study.study for study in found))
            raise click.UsageError(
                f"'{name}' is neither a study ({known}) nor a figure; --list lists figures"
            )
    chosen = [
        study
        for study in found
        if not names or any(name in (study.study, study.key) for name in names)
    ]
    kept = [study for study in chosen if study.simulators <= {other}]
    if not kept:
        raise click.UsageError(f"{', '.join(names)} is in another simulator; ask for --with ns3")
    return kept


def _list(chosen: Sequence[FigureStudy]) -> None:
    table = PlainTable("figure", "title", "runs", left=2)
    for study in chosen:
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

    shown = [
        result for result in results if result.study.picture.shown and result.study.key in pictures
    ]
    files = []
    for result in shown:
        name = f"images/{result.study.study}-{result.study.name}.png"
        make_folder((path.parent / name).parent)
        write_file(path.parent / name, pictures[result.study.key])
        files.append((f"{result.study.source}: {result.study.title}", name))
    flags = [*names, *(["--quick"] if quick else []), "--evidence docs/results/evidence.md"]
    if any(result.study.simulators for result in results):
        flags.insert(-1, "--with ns3")
    command = f"remy-farm reproduce {' '.join(flags)}"
    write_file(path, markdown_page(results, quick=quick, command=command, pictures=files))


def _tree(results: Sequence[FigureResult], runner: Any, *, quick: bool) -> dict[str, Any]:
    from remy_laboratory.studies import data_digest, figure_tree

    return {
        "quick": quick,
        "data_sha256": data_digest(results),
        "cells_simulated": runner.simulated,
        "cells_found": runner.found,
        "figures": [figure_tree(result) for result in results],
    }


def _print(results: Sequence[FigureResult]) -> None:
    from remy_laboratory.studies import counts_sentence, verdict_sentence

    table = PlainTable("figure", "verdict", left=2)
    for result in results:
        table.add_row(result.study.key, verdict_sentence(result))
    print_table(table)
    click.echo()
    click.echo(counts_sentence(results))


@click.command("league")
@click.argument("names", metavar="TABLE-OR-PROTOCOL...", nargs=-1, required=True)
@switch("--quick", "Fewer networks and runs, so that all takes minutes; the page says how many.")
@option(
    "--out -o DIR", "Page, data, pictures and what has been simulated.", FOLDER, default="league"
)
@option(
    "--sets DIR",
    "Sets of networks, a file each.",
    FOLDER,
    default=DATA / "league",
    show_default="those installed with it",
)
@option("--set NAME", "Only this set; may be given several times.", name="chosen", multiple=True)
@switch(
    "--alone", "Only what is named, without Cubic, NewReno, BBR, Copa, Vivace and others' tables."
)
@threads_option
@on_farm_options
@quiet_option
@json_option
def league_command(
    names: tuple[str, ...],
    quick: bool,
    out: Path,
    sets: Path,
    chosen: tuple[str, ...],
    alone: bool,
    threads: int,
    farm: OnFarm | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare RemyCCs and protocols on the sets of networks that congestion control is asked for.

    A table is a file, a protocol is in words as in simulate --sender. An entrant has won on a
    network where its score is within a margin of the best; the page has winning rates, heat maps,
    and the commands that simulate the networks where an entrant is farthest behind.
    """
    from remy_laboratory.studies import CellRunner, CellStore, LeagueRun, read_sets, rivals

    leagues = read_sets(sets, chosen)
    own = [entrant_of(name) for name in names]
    make_folder(out)
    with local_evaluator(threads) as evaluator, closing(CellStore(out / CELLS)) as store:
        runner = CellRunner(evaluator.evaluate, store)
        run = LeagueRun(leagues, own, [] if alone else rivals(), runner, quick=quick)
        with meter(run.weight, quiet=quiet) as shown:
            simulate_missing(farm, "league", run.batches, runner, shown)
            league = run.play(shown.work, shown.advance)
    league.save(out)
    if as_json:
        print_json(league.to_dict())
        return
    table = PlainTable("entrant", *league.sets, left=1)
    for row in league.winning_rates().to_dicts():
        name, *rates = row.values()
        style = "bold" if name in league.asked else ""
        table.add_row(name, *(f"{rate:.0%}" for rate in rates), style=style)
    print_table(table)
    say(f"the page is {out / 'index.html'}")


def entrant_of(text: str, time_unit_ms: float = 1.0) -> Entrant:
    """A file, or words. Raises UsageError."""
    from remy_laboratory.studies import entrant_of

    try:
        return entrant_of(text, time_unit_ms)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
