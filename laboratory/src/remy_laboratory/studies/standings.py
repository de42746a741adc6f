"""Library call that compares RemyCCs and protocols on the league's sets of networks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from remy_farm.analysis import wording
from remy_farm.api.designing import Design, TemporaryFolder
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Plot, Rows, Tabular, rows_of
from remy_farm.api.table import Table
from remy_farm.files import FileError, make_folder, write_file
from remy_farm.shipped import DATA, table_name
from remy_farm.specification.senders import REMYCC, parse_sender
from remy_laboratory.studies.cells import CellBatch, CellRunner, CellStore, OnCells
from remy_laboratory.studies.draws import DRAW_SEED, Draws, Half
from remy_laboratory.studies.league import (
    MAX_WORST_NETWORKS,
    MEASURES,
    Entrant,
    LeagueSet,
    SetNetwork,
    SetResult,
    league_csv,
    league_page,
    network_files,
    plan_set,
    plot_set,
    read_set,
    run_set,
    simulate_command,
)
from remy_laboratory.studies.networks import reference_folder
from remy_laboratory.studies.pictures import figure_files
from remy_laboratory.studies.reproduction import CELL_DATABASE
from remy_simulator.cpus import allowed_cpus

#: Directory of the installed sets.
SETS: Final = DATA / "league"
#: Protocols that contenders are compared with, by name.
_RIVALS: Final = {
    "Cubic": "cubic,variant=linux",
    "NewReno": "newreno",
    "BBR v1": "bbr",
    "BBR v3": "bbr,variant=v3",
    "Copa": "copa",
    "Vivace": "pcc-vivace",
}
_PUBLISHED: Final = ("published 100x", "RemyCC-2014-100x.dna")
_TABLES: Final = "tables"


def parse_entrant(text: str, time_unit_ms: float = 1.0) -> Entrant:
    """Parses a RemyCC file name or a protocol. Raises ValueError."""
    is_table = text.startswith(REMYCC)
    if not is_table and text.partition(",")[0].endswith((".dna", ".json")):
        is_table, text = True, f"{REMYCC}{text}"
    sender = parse_sender(text)
    if sender.count != 1:
        raise ValueError(f"{text} has a number of senders, which the set determines")
    if sender.remycc is None:
        return Entrant(sender.name, sender)
    return Entrant(table_name(Path(sender.remycc)), sender, time_unit_ms)


def rival_protocols() -> list[Entrant]:
    """Returns the protocols that contenders are compared with."""
    return [Entrant(name, parse_sender(text)) for name, text in _RIVALS.items()]


def rivals() -> list[Entrant]:
    """Returns the rival protocols, and a published table if REMY_REFERENCE_DIR is set."""
    entrants, folder = rival_protocols(), reference_folder()
    if folder is not None:
        name, file = _PUBLISHED
        entrants.append(replace(parse_entrant(str(folder / "remyccs" / file)), name=name))
    return entrants


def read_sets(folder: Path, only: Sequence[str] = ()) -> list[LeagueSet]:
    """Reads the sets in a directory, or those named in `only`. Raises FileError and SpecError."""
    paths = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    if not paths:
        raise FileError(f"{folder} has no sets, which are files that end in .yaml")
    for name in only:
        if name not in paths:
            raise FileError(f"set {name} does not exist; the sets are {', '.join(paths)}")
    return [read_set(path) for name, path in paths.items() if not only or name in only]


class League(Tabular):
    """The results of the league: scores by set, network and entrant, and winning rates."""

    def __init__(
        self, results: Sequence[SetResult], contenders: Sequence[str], *, quick: bool
    ) -> None:
        """Wraps the results; `league` returns them."""
        self.results = results
        #: Names of the requested entrants; the others are their rivals.
        self.contenders = [*contenders]
        self.quick = quick

    @property
    def entrants(self) -> list[str]:
        """Names of all entrants."""
        return [each.name for each in self.results[0].entrants]

    @property
    def sets(self) -> list[str]:
        """Names of the sets of networks."""
        return [each.league.name for each in self.results]

    def __getitem__(self, name: str) -> SetResult:
        """Returns the results of the set with this name. Raises KeyError."""
        return {each.league.name: each for each in self.results}[name]

    def winning_rates(self) -> Rows:
        """Returns a row per entrant with its winning rate in each set.

        The winning rate is the fraction of networks on which its score is within a margin of the
        best.
        """
        rows: list[dict[str, Any]] = [
            {
                "entrant": name,
                **{each.league.name: each.winning_rate(name) for each in self.results},
            }
            for name in self.entrants
        ]
        return rows_of({"entrant": str, **dict.fromkeys(self.sets, float)}, rows)

    def rows(self) -> Rows:
        """Returns a row per set, network and entrant.

        A higher score is better; `over_best` is the score divided by the best score. `draws` is the
        half of the draws that the networks are from, or "fixed".
        """
        kinds = {
            "set": str,
            "draws": str,
            "network": str,
            "entrant": str,
            "score": float,
            "over_best": float,
            "runs": int,
            **dict.fromkeys(MEASURES, float),
        }
        rows: list[dict[str, Any]] = [
            {
                "set": result.league.name,
                "draws": result.drawn_from,
                "network": network.name,
                "entrant": entrant.name,
                "score": network.scores[entrant.name],
                "over_best": network.relative_score(entrant.name),
                "runs": result.runs,
                **network.measures[entrant.name],
            }
            for result in self.results
            for network in result.networks
            for entrant in result.entrants
        ]
        return rows_of(kinds, rows)

    def to_dict(self) -> dict[str, Any]:
        """Returns the results as `remy-farm league --json` prints them.

        They include the networks where the contenders are farthest behind, with commands to
        simulate them.
        """
        return {"quick": self.quick, "sets": [self._set_dict(each) for each in self.results]}

    def _set_dict(self, result: SetResult) -> dict[str, Any]:
        return {
            "set": result.league.name,
            "networks": len(result.networks),
            "draws": result.drawn_from,
            "runs": result.runs,
            "winning_rates": {
                each.name: result.winning_rate(each.name) for each in result.entrants
            },
            "means": {each.name: result.means(each.name) for each in result.entrants},
            "worst": {
                each.name: [
                    {
                        "network": network.name,
                        "over_best": network.relative_score(each.name),
                        **network.measures[each.name],
                        "simulate": simulate_command(result, each, network.on),
                    }
                    for network in result.worst_networks(each.name, MAX_WORST_NETWORKS)
                ]
                for each in result.entrants
                if each.name in self.contenders
            },
        }

    def plot(self, name: str | None = None) -> Plot:
        """Draws a set as a heat map of entrants and networks; by default the first set.

        Raises KeyError.
        """
        return Plot(plot_set(self.results[0] if name is None else self[name]))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes index.html, each set's scores and plots, and the files of networks with links.

        Raises FileError.
        """
        target = Path(directory)
        make_folder(target)
        pictures: dict[str, bytes] = {}
        for result in self.results:
            name = result.league.name
            write_file(target / f"{name}.csv", league_csv(result))
            for suffix, content in figure_files(plot_set(result)).items():
                write_file(target / f"{name}{suffix}", content)
                if suffix == ".png":
                    pictures[name] = content
        for file, text in network_files(self._worst()).items():
            make_folder((target / file).parent)
            write_file(target / file, text)
        write_file(target / "index.html", league_page(self.results, self.contenders, pictures))

    def _worst(self) -> Iterator[tuple[SetResult, Entrant, SetNetwork]]:
        """Yields the networks where contenders are farthest behind."""
        for result in self.results:
            for entrant in result.entrants:
                if entrant.name in self.contenders:
                    for network in result.worst_networks(entrant.name, MAX_WORST_NETWORKS):
                        yield result, entrant, network.on

    def means(self) -> Rows:
        """Returns a row per set and entrant with the means of its measures over the networks."""
        kinds = {"set": str, "draws": str, "entrant": str, "winning_rate": float}
        rows: list[dict[str, Any]] = [
            {
                "set": result.league.name,
                "draws": result.drawn_from,
                "entrant": entrant.name,
                "winning_rate": result.winning_rate(entrant.name),
                **result.means(entrant.name),
            }
            for result in self.results
            for entrant in result.entrants
        ]
        return rows_of({**kinds, **dict.fromkeys(MEASURES, float)}, rows)

    def _columns_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        cells = [
            (name, *(f"{each.winning_rate(name):.0%}" for each in self.results))
            for name in self.entrants
        ]
        return ("", *self.sets), cells

    def __repr__(self) -> str:
        return "\n".join([self._title(), *wording.aligned(*self._columns_and_cells())])

    def _repr_html_(self) -> str:
        return wording.table(self._title(), *self._columns_and_cells())

    def _title(self) -> str:
        networks = sum(len(each.networks) for each in self.results)
        return f"winning rates on {wording.plural(networks, 'network')}, by set"


class LeagueRun:
    """The simulations of a league, some of which may be stored already."""

    def __init__(
        self,
        leagues: Sequence[LeagueSet],
        contenders: Sequence[Entrant],
        rivals: Sequence[Entrant],
        runner: CellRunner,
        *,
        draws: Draws,
        quick: bool,
    ) -> None:
        """Plans the simulations. The results highlight the `contenders`.

        Raises FileError for a table that cannot be read.
        """
        entrants = list({each.name: each for each in (*contenders, *rivals)}.values())
        self._plans = [plan_set(each, entrants, draws, quick=quick) for each in leagues]
        self._contenders = [each.name for each in contenders]
        self._quick = quick
        self.runner = runner

    @property
    def batches(self) -> list[CellBatch]:
        """The cells of all sets and entrants."""
        return [batch for plan in self._plans for batch in plan.batches]

    @property
    def weight(self) -> float:
        """The total work of the missing cells, in the unit of OnCells."""
        return self.runner.weight(self.batches)

    def run(self, on_set: Callable[[str], None], on_cells: OnCells) -> League:
        """Simulates the missing cells. `on_set` gets the name of each set that starts."""
        results = []
        for plan in self._plans:
            on_set(plan.league.name)
            results.append(run_set(plan, self.runner, on_cells))
        return League(results, self._contenders, quick=self._quick)


def league(
    contenders: Table | Design | str | list[Table | Design | str],
    *,
    quick: bool = False,
    alone: bool = False,
    only: Sequence[str] = (),
    draws: str = Half.TUNING,
    draw_seed: int = DRAW_SEED,
    directory: str | os.PathLike[str] | None = None,
    sets: str | os.PathLike[str] = SETS,
    threads: int | None = None,
    on_progress: Callable[[float], None] = lambda _: None,
) -> League:
    """Compares tables and protocols on sets of networks.

    Args:
        contenders: A table, a design of one table or a protocol ("bbr"), or a list of them.
        quick: Use fewer networks and runs.
        alone: Leave out the rivals Cubic, NewReno, BBR, Copa, Vivace and a published table.
        only: Names of sets; by default all.
        draws: Half of the drawn networks: "tuning", on which a table may be tuned, or "judging",
            which only judges finished tables. Results say which was used.
        draw_seed: Seed of the drawn networks.
        directory: Directory that keeps the tables and the database of simulated cells (runs on one
            network). A later call simulates only the cells that the database lacks. None keeps
            nothing.
        sets: Directory with a file per set; by default the installed sets.
        threads: Number of simulation threads; by default the CPUs allowed.
        on_progress: Called with the fraction of the work that is done.

    Returns:
        The scores and winning rates.

    Raises:
        FileError: A set does not exist, or the directory cannot be written.
        SpecError: The file of a set is invalid.
        ValueError: A protocol is unknown, two contenders have the same name, or `draws` is not the
            name of a half.
        TypeError: A contender has another type.
    """
    items = contenders if isinstance(contenders, list) else [contenders]
    chosen = Draws(Half(draws), draw_seed)
    leagues = read_sets(Path(sets), only)
    temporary = TemporaryFolder()
    target = temporary.path if directory is None else Path(directory)
    entrants = [_entrant(each, target / _TABLES) for each in items]
    names = [each.name for each in entrants]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]!r} is the name of two contenders; use Table.renamed")
    make_folder(target)
    with local_evaluator(threads) as evaluator, closing(CellStore(target / CELL_DATABASE)) as store:
        runner = CellRunner(evaluator.evaluate, store, threads=threads or allowed_cpus())
        run = LeagueRun(
            leagues, entrants, [] if alone else rivals(), runner, draws=chosen, quick=quick
        )
        total = run.weight or 1.0
        return run.run(lambda _: None, lambda done: on_progress(done / total))


def _entrant(contender: Table | Design | str, folder: Path) -> Entrant:
    if isinstance(contender, str):
        return parse_entrant(contender)
    table = contender.table if isinstance(contender, Design) else contender
    if not isinstance(table, Table):
        raise TypeError(f"{contender!r} must be a table, a design, or the name of a protocol")
    path = folder / f"{re.sub('[^A-Za-z0-9._-]+', '-', table.name)}-{table.digest[:8]}.json"
    make_folder(folder)
    table.save(path)
    return Entrant(table.name, parse_sender(f"{REMYCC}{path}=1"))
