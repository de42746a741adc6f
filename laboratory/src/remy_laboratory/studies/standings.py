"""The league as a call: who takes part, the sets of networks, and how often each has won."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from remy_farm.analysis import wording
from remy_farm.api.designing import Design, PassingFolder
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Plot, Rows, Tabular, rows_of
from remy_farm.api.table import Table
from remy_farm.files import FileError, make_folder, write_file
from remy_farm.shipped import DATA
from remy_farm.specification.senders import REMYCC, parse_sender
from remy_laboratory.studies.cells import CellBatch, CellRunner, CellStore, OnCells
from remy_laboratory.studies.league import (
    WORST,
    Entrant,
    LeagueSet,
    SetResult,
    draw_set,
    league_csv,
    league_page,
    network_files,
    plan_set,
    play_set,
    read_set,
    simulate_words,
)
from remy_laboratory.studies.networks import reference_folder
from remy_laboratory.studies.pictures import pictures_of
from remy_laboratory.studies.reproduction import CELLS

#: The sets that are installed.
SETS: Final = DATA / "league"
#: The protocols that everybody is compared with.
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


def entrant_of(text: str, time_unit_ms: float = 1.0) -> Entrant:
    """The entrant in a table's file, or a protocol in words. Raises ValueError."""
    is_table = text.startswith(REMYCC)
    if not is_table and text.partition(",")[0].endswith((".dna", ".json")):
        is_table, text = True, f"{REMYCC}{text}"
    words = parse_sender(text)
    if words.count != 1:
        raise ValueError(f"{text} counts senders; a set says how many there are")
    if words.remycc is None:
        return Entrant(words.name, words)
    path = Path(words.remycc)
    # A design's folder says more than the name that all tables have.
    name = path.parent.name if path.stem == "remycc" and path.parent.name else path.stem
    return Entrant(name, words, time_unit_ms)


def rival_protocols() -> list[Entrant]:
    """The protocols that every table is compared with."""
    return [Entrant(name, parse_sender(words)) for name, words in _RIVALS.items()]


def rivals() -> list[Entrant]:
    """These protocols, and a published table where REMY_REFERENCE_DIR names a folder of them."""
    found, folder = rival_protocols(), reference_folder()
    if folder is not None:
        name, file = _PUBLISHED
        found.append(replace(entrant_of(str(folder / "remyccs" / file)), name=name))
    return found


def read_sets(folder: Path, only: Sequence[str] = ()) -> list[LeagueSet]:
    """The sets in a folder, or those of them that are named. Raises FileError and SpecError."""
    found = [read_set(path) for path in sorted(folder.glob("*.yaml"))]
    if not found:
        raise FileError(f"{folder} has no sets: files that end in .yaml")
    names = [each.name for each in found]
    for name in only:
        if name not in names:
            raise FileError(f"set {name} is not among {', '.join(names)}")
    return [each for each in found if not only or each.name in only]


class League(Tabular):
    """The results of the league: scores by set, network and entrant, and who has won how often."""

    def __init__(self, results: Sequence[SetResult], asked: Sequence[str], *, quick: bool) -> None:
        """Wraps the results; call `league` to get them. `asked` are the entrants to tell of."""
        self.results = results
        #: Names of those that were asked for; the others are their rivals.
        self.asked = [*asked]
        self.quick = quick

    @property
    def entrants(self) -> list[str]:
        """Names of all that took part."""
        return [each.name for each in self.results[0].entrants]

    @property
    def sets(self) -> list[str]:
        """Names of the sets of networks."""
        return [each.league.name for each in self.results]

    def __getitem__(self, name: str) -> SetResult:
        """The results of one set by its name. Raises KeyError."""
        return {each.league.name: each for each in self.results}[name]

    def winning_rates(self) -> Rows:
        """A row for each entrant: in each set the share of the networks on which its score is
        within a margin of the best one's."""
        rows: list[dict[str, Any]] = [
            {
                "entrant": name,
                **{each.league.name: each.winning_rate(name) for each in self.results},
            }
            for name in self.entrants
        ]
        return rows_of({"entrant": str, **dict.fromkeys(self.sets, float)}, rows)

    def rows(self) -> Rows:
        """A row for each entrant on each network of each set; a higher score is better, and
        `over_best` is the score over the best one's."""
        kinds = {
            "set": str,
            "network": str,
            "entrant": str,
            "score": float,
            "over_best": float,
            "runs": int,
        }
        rows: list[dict[str, Any]] = [
            {
                "set": result.league.name,
                "network": place.name,
                "entrant": entrant.name,
                "score": place.scores[entrant.name],
                "over_best": place.relative(entrant.name),
                "runs": result.runs,
            }
            for result in self.results
            for place in result.places
            for entrant in result.entrants
        ]
        return rows_of(kinds, rows)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `remy-farm league --json` prints it; with the networks where those that
        were asked for are farthest behind, and commands that simulate these."""
        return {"quick": self.quick, "sets": [self._set_tree(each) for each in self.results]}

    def _set_tree(self, result: SetResult) -> dict[str, Any]:
        return {
            "set": result.league.name,
            "networks": len(result.places),
            "runs": result.runs,
            "winning_rates": {
                each.name: result.winning_rate(each.name) for each in result.entrants
            },
            "worst": {
                each.name: [
                    {
                        "network": place.name,
                        "over_best": place.relative(each.name),
                        "simulate": simulate_words(result.league, each, place),
                    }
                    for place in result.worst(each.name, WORST)
                ]
                for each in result.entrants
                if each.name in self.asked
            },
        }

    def plot(self, name: str | None = None) -> Plot:
        """Draws a set as a heat map of entrants and networks, the first set unless named. Raises
        KeyError."""
        return Plot(draw_set(self.results[0] if name is None else self[name]))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes a page, index.html, and beside it each set's scores and pictures, and the networks
        of links that the page names. Raises FileError."""
        place = Path(directory)
        make_folder(place)
        pictures: dict[str, bytes] = {}
        for result in self.results:
            name = result.league.name
            write_file(place / f"{name}.csv", league_csv(result))
            for suffix, content in pictures_of(draw_set(result)).items():
                write_file(place / f"{name}{suffix}", content)
                if suffix == ".png":
                    pictures[name] = content
        for file, text in network_files(self.results, self.asked).items():
            make_folder((place / file).parent)
            write_file(place / file, text)
        write_file(place / "index.html", league_page(self.results, self.asked, pictures))

    def _head_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        cells = [
            (name, *(f"{each.winning_rate(name):.0%}" for each in self.results))
            for name in self.entrants
        ]
        return ("", *self.sets), cells

    def __repr__(self) -> str:
        return "\n".join([self._title(), *wording.aligned(*self._head_and_cells())])

    def _repr_html_(self) -> str:
        return wording.table(self._title(), *self._head_and_cells())

    def _title(self) -> str:
        places = sum(len(each.places) for each in self.results)
        return f"winning rates on {wording.several(places, 'network')}, by set"


class LeagueRun:
    """What the league is going to simulate, and what has been simulated already."""

    def __init__(
        self,
        leagues: Sequence[LeagueSet],
        own: Sequence[Entrant],
        beside: Sequence[Entrant],
        runner: CellRunner,
        *,
        quick: bool,
    ) -> None:
        """Plans for `own`, which the results tell of, and for their rivals `beside`. Raises
        FileError for a table that cannot be read."""
        entrants = list({each.name: each for each in (*own, *beside)}.values())
        self._plans = [plan_set(each, entrants, quick=quick) for each in leagues]
        self._asked = [each.name for each in own]
        self._quick = quick
        self.runner = runner

    @property
    def batches(self) -> list[CellBatch]:
        """All cells, by set and entrant."""
        return [batch for plan in self._plans for batch in plan.batches]

    @property
    def weight(self) -> float:
        """The last that `on_cells` is told, unless nothing is missing."""
        return self.runner.weight(self.batches)

    def play(self, on_set: Callable[[str], None], on_cells: OnCells) -> League:
        """Simulates what is missing. `on_set` hears the name of each set that begins."""
        results = []
        for plan in self._plans:
            on_set(plan.league.name)
            results.append(play_set(plan, self.runner, on_cells))
        return League(results, self._asked, quick=self._quick)


def league(
    contenders: Table | Design | str | list[Table | Design | str],
    *,
    quick: bool = False,
    alone: bool = False,
    only: Sequence[str] = (),
    directory: str | os.PathLike[str] | None = None,
    sets: str | os.PathLike[str] = SETS,
    threads: int | None = None,
    on_done: Callable[[float], None] = lambda _: None,
) -> League:
    """Compares tables and protocols on the sets of networks that congestion control is asked for.

    Args:
        contenders: One, or a list: tables, designs of one table, protocols in words ("bbr").
        quick: Fewer networks and runs.
        alone: Without Cubic, NewReno, BBR, Copa, Vivace and a published table.
        only: Names of sets; all unless given.
        directory: Where tables and simulated cells are kept, and not simulated again; nowhere
            unless given.
        sets: The folder of sets, a file each; those that are installed unless given.
        threads: Threads to simulate with; the CPUs allowed unless given.
        on_done: Is called with the share of all that is done so far.

    Returns:
        The scores, and how often each entrant has won.

    Raises:
        FileError: There is no such set, or the directory cannot be written.
        SpecError: A set has a mistake.
        ValueError: A protocol is unknown, or two tables have one name.
        TypeError: A contender is something else.
    """
    given = contenders if isinstance(contenders, list) else [contenders]
    leagues = read_sets(Path(sets), only)
    kept = PassingFolder()
    place = kept.path if directory is None else Path(directory)
    own = [_entrant(each, place / _TABLES) for each in given]
    names = [each.name for each in own]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]!r} is the name of two contenders; Table.renamed gives another")
    make_folder(place)
    with local_evaluator(threads) as evaluator, closing(CellStore(place / CELLS)) as store:
        runner = CellRunner(evaluator.evaluate, store)
        run = LeagueRun(leagues, own, [] if alone else rivals(), runner, quick=quick)
        total = run.weight or 1.0
        return run.play(lambda _: None, lambda done: on_done(done / total))


def _entrant(contender: Table | Design | str, folder: Path) -> Entrant:
    if isinstance(contender, str):
        return entrant_of(contender)
    table = contender.table if isinstance(contender, Design) else contender
    if not isinstance(table, Table):
        raise TypeError(f"{contender!r} must be a table, a design, or a protocol in words")
    path = folder / f"{re.sub('[^A-Za-z0-9._-]+', '-', table.name)}-{table.digest[:8]}.json"
    make_folder(folder)
    table.save(path)
    return Entrant(table.name, parse_sender(f"{REMYCC}{path}=1"))
