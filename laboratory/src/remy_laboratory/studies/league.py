"""The league: sets of networks on which entrants are compared, and who wins how often.

A set is a file as a study's figures are; an entrant has won on a network where its score is within
a margin of the best entrant's.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from matplotlib.figure import Figure

from remy_farm.analysis import wording
from remy_farm.analysis.plots import INK, new_figure
from remy_farm.files import read_file
from remy_farm.specification.reading import read_yaml
from remy_farm.specification.schema import show
from remy_farm.specification.senders import SenderSpec, parse_sender
from remy_laboratory.studies.cells import (
    Cell,
    CellBatch,
    CellRunner,
    OnCells,
    Tables,
    cells_on,
    read_tables,
)
from remy_laboratory.studies.networks import (
    SEED,
    layered,
    network_of,
    network_tree,
    paths_in,
    sender_counts,
    value_at,
    varied,
    varied_field,
)
from remy_laboratory.studies.reading import (
    PER_CENT,
    RUNS,
    Amount,
    Fields,
    amount_of,
)
from remy_laboratory.studies.study import Measure, StudyRow, check_network
from remy_laboratory.studies.verdicts import CellSamples, samples_of

_LARGEST_FILE = 1_000_000


class Score(StrEnum):
    """What makes an entrant better; more is better."""

    #: Mean throughput squared over mean delay.
    SQUARED_THROUGHPUT_OVER_DELAY = "squared_throughput_over_delay"
    #: Summed throughput over mean delay.
    POWER = "power"
    #: How near the entrant is to half of what it and its rival have: the smaller over the larger.
    CLOSENESS_TO_FAIR = "closeness_to_fair"
    #: Smallest throughput of its senders over the largest.
    EQUALITY = "equality"
    #: One over the median completion time of flows.
    SHORT_COMPLETION = "short_completion"
    #: The entrant's throughput over half of what it and its rival have.
    SHARE_OF_FAIR = "share_of_fair"
    #: What all that it got is of what the link could carry.
    UTILIZATION = "utilization"


@dataclass(frozen=True)
class LeagueSet:
    """Networks, who else is on them, and what counts."""

    name: str
    title: str
    source: str
    about: str
    network: Mapping[str, Any]
    grid: Mapping[str, Amount]
    places: tuple[tuple[str, Mapping[str, Any]], ...]
    """Networks by name, in place of a grid's or with each of its."""
    rival: SenderSpec | None
    """Who is there before the entrant."""
    senders: int
    """Of the entrant."""
    score: Score
    margin: float
    seconds: float
    runs: Amount
    at_least: float | None
    """The score that a table must have on each network to be robust; none: nothing is asked."""

    def networks(self, *, quick: bool) -> list[tuple[str, dict[str, Any]]]:
        """By name."""
        found = []
        axes = [
            [(field, value) for value in values.of(quick=quick)]
            for field, values in self.grid.items()
        ]
        for place, network in self.places or (("", {}),):
            for point in itertools.product(*axes):
                words = [place] if place else []
                words += [f"{value:g} {_unit(field)}" for field, value in point]
                whole = layered(self.network, network)
                for field, value in point:
                    whole = varied(whole, field, value)
                found.append((", ".join(words), whole))
        return found


def _unit(field: str) -> str:
    """Of a grid's field; of one within a link its last part."""
    return _UNITS.get(field, field.rpartition(".")[2])


_UNITS = {
    "rate_mbps": "Mbit/s",
    "rtt_ms": "ms",
    "buffer.bdp": "BDP",
    "buffer.packets": "packets",
    "loss_probability": "loss",
    "senders": "senders",
    "links[1].jitter_box.periodic.period_ms": "ms between releases",
    "links[2].jitter_box.random.longest_hold_ms": "ms late",
    "first_rtt_offset_ms": "ms too long",
}


def read_set(path: Path) -> LeagueSet:
    """One file. Raises SpecError or FileError with one sentence."""
    source = str(path)
    text = read_file(path, limit=_LARGEST_FILE).decode("utf-8", "replace")
    fields = Fields(read_yaml(text, source), source, "")
    rival = fields.text("rival")
    margin = PER_CENT.fullmatch(fields.text("won_within", "10 %"))
    if margin is None:
        fields.fail("won_within", "must be as 10 %")
    grid = fields.part("grid")
    points = {}
    for field in grid.left() if grid is not None else ():
        check = varied_field(field)
        if grid is not None and check is not None:
            points[field] = amount_of(grid, field, check, many=True)
    if grid is not None:
        grid.end()
    places = []
    for part in fields.parts("places"):
        places.append((part.text("name", None), network_of(part.part("network"))))
        part.end()
    try:
        words = parse_sender(rival) if rival else None
    except ValueError as problem:
        fields.fail("rival", f"is {show(rival)}: {problem}")
    found = LeagueSet(
        name=path.stem,
        title=fields.text("title", None),
        source=fields.text("source", None),
        about=fields.text("about"),
        network=network_of(fields.part("network")),
        grid=points,
        places=tuple(places),
        rival=words,
        senders=int(fields.number("senders", RUNS) or 1),
        score=fields.word("score", Score, Score.POWER),
        margin=float(margin[1]) / 100,
        seconds=fields.number("seconds") or 30.0,
        runs=amount_of(fields, "runs", RUNS, many=False),
        at_least=fields.number("at_least"),
    )
    entrant = parse_sender(_ANYBODY)
    for name, network in found.networks(quick=False):
        check_network(fields, network, name, Entrant(_ANYBODY, entrant).row(found).senders)
    fields.end()
    return found


# Who is on a set's networks when they are checked.
_ANYBODY = "newreno"


@dataclass(frozen=True)
class Entrant:
    """Who takes part, and by which name."""

    name: str
    words: SenderSpec
    time_unit_ms: float = 1.0
    """Of a .dna file."""

    def row(self, league: LeagueSet) -> StudyRow:
        """The entrant's senders, behind its rival if there is one."""
        own = replace(self.words, count=league.senders)
        return StudyRow(
            name=self.name,
            senders=(own,) if league.rival is None else (league.rival, own),
            network={},
            time_unit_ms=self.time_unit_ms,
            design_range=None,
        )


@dataclass(frozen=True)
class Place:
    """How entrants did on one network."""

    name: str
    network: Mapping[str, Any]
    scores: Mapping[str, float]

    def relative(self, entrant: str) -> float:
        """The score over the best one's; 0 for who got nothing."""
        best = max(self.scores.values(), default=0.0)
        return self.scores.get(entrant, 0.0) / best if best > 0 else 0.0


@dataclass(frozen=True)
class SetResult:
    """How entrants did on a set."""

    league: LeagueSet
    entrants: Sequence[Entrant]
    runs: int
    places: Sequence[Place]

    def winning_rate(self, entrant: str) -> float:
        """Share of the networks on which nobody is better by more than the margin."""
        least = 1 - self.league.margin
        won = sum(place.relative(entrant) >= least for place in self.places)
        return won / len(self.places)

    def worst(self, entrant: str, most: int) -> list[Place]:
        """Where it is farthest behind, the worst first."""
        return sorted(self.places, key=lambda place: place.relative(entrant))[:most]


def score_of(league: LeagueSet, cell: CellSamples) -> float:
    """Of all runs on one network; 0 where nothing arrived."""
    own = None if league.rival is None else 1
    rates = cell.values(Measure.THROUGHPUT_MBPS, own)
    rtts_ms = cell.values(Measure.RTT_MS, own)
    if not rates or not rtts_ms:
        return 0.0
    rate, rtt_ms = _mean(rates), _mean(rtts_ms)
    match league.score:
        case Score.SQUARED_THROUGHPUT_OVER_DELAY:
            # Half of the path is on the way back, where nothing waits.
            return rate * rate / (rtt_ms - float(cell.network["rtt_ms"]) / 2)
        case Score.POWER:
            return rate / rtt_ms
        case Score.CLOSENESS_TO_FAIR:
            other = _mean(cell.values(Measure.THROUGHPUT_MBPS, 0))
            return min(rate, other) / max(rate, other) if max(rate, other) > 0 else 0.0
        case Score.SHARE_OF_FAIR:
            both = rate + _mean(cell.values(Measure.THROUGHPUT_MBPS, 0))
            return 2 * rate / both if both > 0 else 0.0
        case Score.UTILIZATION:
            return _mean(cell.values(Measure.UTILIZATION, own))
        case Score.EQUALITY:
            return _mean(cell.values(Measure.SMALLEST_OVER_LARGEST, own))
        case Score.SHORT_COMPLETION:
            times = sorted(cell.values(Measure.COMPLETION_MS, own))
            return 1.0 / times[len(times) // 2] if times else 0.0


def _mean(values: Sequence[float]) -> float:
    """0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0


@dataclass(frozen=True)
class LeaguePlan:
    """What a set is going to simulate: for each entrant its tables and cells by network."""

    league: LeagueSet
    runs: int
    networks: Sequence[tuple[str, Mapping[str, Any]]]
    entries: Sequence[tuple[Entrant, Tables, list[Cell]]]

    @property
    def batches(self) -> list[CellBatch]:
        """The cells of each entrant."""
        return [CellBatch(tables, cells, self.league.seconds) for _, tables, cells in self.entries]


def plan_set(league: LeagueSet, entrants: Sequence[Entrant], *, quick: bool) -> LeaguePlan:
    """Raises FileError for a table that cannot be read."""
    (runs,) = league.runs.of(quick=quick)
    networks = league.networks(quick=quick)
    entries = []
    for entrant in entrants:
        row = entrant.row(league)
        tables = read_tables(row, Path())
        cells = [
            cell
            for _, network in networks
            for cell in cells_on(row, tables, network, range(int(runs)), league.seconds)
        ]
        entries.append((entrant, tables, cells))
    return LeaguePlan(league, int(runs), networks, entries)


def play_set(plan: LeaguePlan, runner: CellRunner, on_cells: OnCells) -> SetResult:
    """Simulates what is missing, and scores."""
    league = plan.league
    scores: list[dict[str, float]] = [{} for _ in plan.networks]
    for entrant, tables, cells in plan.entries:
        outcomes = runner.run(tables, cells, league.seconds, on_cells)
        for place, (_, network) in enumerate(plan.networks):
            part = slice(place * plan.runs, (place + 1) * plan.runs)
            samples = [
                sample
                for cell, outcome in zip(cells[part], outcomes[part], strict=True)
                for sample in samples_of(cell, outcome, league.seconds)
            ]
            first = cells[part.start]
            senders = sum(sender_counts(first.row.senders, network))
            cell = CellSamples(None, first.network, senders, league.seconds, tuple(samples))
            scores[place][entrant.name] = score_of(league, cell)
    return SetResult(
        league,
        [entrant for entrant, _, _ in plan.entries],
        plan.runs,
        [
            Place(name, network, found)
            for (name, network), found in zip(plan.networks, scores, strict=True)
        ],
    )


def simulate_words(league: LeagueSet, entrant: Entrant, place: Place) -> str:
    """The command that shows a network with this entrant, as its first run was."""
    network = place.network
    words = ["remy-farm", "simulate"]
    length = ["--seconds", f"{league.seconds:g}", "--seed", str(SEED)]
    if "links" in network:
        return shlex.join([*words, "--network", network_file(league, entrant, place), *length])
    for each in entrant.row(league).senders:
        words += ["--sender", f"{each.name}={each.count}"]
    for path in paths_in({key: value for key, value in network.items() if key != "senders"}):
        value = value_at(network, path)
        if path == "starts_apart_ms":
            words += ["--starts-apart-ms", f"{value:g}"]
        else:
            number = isinstance(value, int | float)
            said = f"{value:.15g}" if number else value if isinstance(value, str) else "{}"
            words += ["--set", f"{path}={said}"]
    return shlex.join([*words, *length])


def network_file(league: LeagueSet, entrant: Entrant, place: Place) -> str:
    """Where a network of links is written, beside the page."""
    words = re.sub("[^a-z0-9.]+", "-", f"{entrant.name} {place.name}".lower()).strip("-")
    return f"networks/{league.name}/{words}.yaml"


def network_files(results: Sequence[SetResult], own: Sequence[str]) -> dict[str, str]:
    """The networks of links that a page names, by path, as simulate --network reads them."""
    files = {}
    for result in results:
        for entrant in result.entrants:
            worst = result.worst(entrant.name, WORST) if entrant.name in own else []
            for place in worst:
                if "links" in place.network:
                    row = entrant.row(result.league)
                    tree = network_tree(row.senders, place.network)
                    name = network_file(result.league, entrant, place)
                    files[name] = yaml.safe_dump(tree, sort_keys=False)
    return files


# What is written.


def league_csv(result: SetResult) -> str:
    """A line for each network and entrant."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["set", "network", "entrant", "score", "over_best", "runs"])
    for place in result.places:
        for entrant in result.entrants:
            score, over_best = place.scores[entrant.name], place.relative(entrant.name)
            writer.writerow(
                [
                    result.league.name,
                    place.name,
                    entrant.name,
                    repr(score),
                    repr(over_best),
                    result.runs,
                ]
            )
    return buffer.getvalue()


def draw_set(result: SetResult) -> Figure:
    """A heat map: entrants, the most successful above; networks in their order."""
    order = sorted(result.entrants, key=lambda each: -result.winning_rate(each.name))
    scores = np.array([[place.relative(each.name) for place in result.places] for each in order])
    count = len(result.places)
    step = max(1, math.ceil(count / 24))
    names = [place.name for place in result.places[::step]]
    # Names stand below, at a slant.
    figure, axes = new_figure(9.6, 1.1 + 0.32 * len(order) + 0.055 * max(map(len, names)))
    axes.grid(visible=False)
    image = axes.imshow(scores, aspect="auto", cmap="cividis", vmin=0, vmax=1)
    axes.set_yticks(
        range(len(order)),
        [f"{each.name}  {result.winning_rate(each.name):.0%}" for each in order],
        fontsize=9.5,
    )
    axes.set_xticks(range(0, count, step), names, rotation=60, ha="right", fontsize=7.5)
    axes.set_title(
        f"{result.league.title}\nScore over the best's, and winning rate",
        loc="left",
        fontsize=12,
        color=INK,
        pad=10,
    )
    bar = figure.colorbar(image, ax=axes, fraction=0.025, pad=0.01)
    bar.ax.tick_params(labelsize=8.5)
    return figure


WORST = 3
#: RFC 9743's list: what a proposal shall be evaluated on, and which set here does so.
_RFC_9743 = (
    ("congestion collapse and high loss", "pantheon"),
    ("standing queues", "ccbench-1"),
    ("fairness to itself", "dumbbells"),
    ("fairness to others", "ccbench-2"),
    ("short flows", "completion-times"),
    ("high delay", "ccbench-1"),
    ("tail drop", "ccbench-1"),
    ("wired paths", "ccbench-1"),
    ("policers and shallow buffers", "shallow-buffers"),
    ("transient events", "ccbench-1-steps"),
    ("varying delay", "jitter"),
    ("path change", "responsiveness"),
)
_NOT_CLAIMED = (
    "real-time flows",
    "wireless paths",
    "reordering",
    "misbehaving peers",
    "multipath",
    "data centres",
    "circuit breakers",
    "Internet of things",
    "tunnels",
)


def league_page(
    results: Sequence[SetResult], own: Sequence[str], pictures: Mapping[str, bytes]
) -> str:
    """One page that loads nothing else; `own` are the names that were asked for."""
    entrants = [each.name for each in results[0].entrants]
    sections = [
        "<h1>The league</h1>",
        wording.paragraph(
            "How often each entrant's score is within a margin of the best one's. RemyCCs are on a "
            "TCP like the protocols' unless they say otherwise.",
            "lead",
        ),
        wording.table(
            "Winning rates",
            ("entrant", *(result.league.name for result in results)),
            [
                (name, *(f"{result.winning_rate(name):.0%}" for result in results))
                for name in entrants
            ],
        ),
    ]
    for result in results:
        league = result.league
        sections.append(f'<h2 id="{league.name}">{league.title}</h2>')
        for text in (league.about, f"Source: {league.source}."):
            if text:
                sections.append(wording.paragraph(text))
        sections.append(
            wording.paragraph(
                f"{wording.several(len(result.places), 'network')}, "
                f"{wording.several(result.runs, 'run')} of {league.seconds:g} s each; won within "
                f"{league.margin:.0%}; score: {league.score.replace('_', ' ')}.",
                "soft",
            )
        )
        sections.append(
            wording.figure(
                pictures[league.name], description=league.title, caption="Light is better."
            )
        )
        for entrant in result.entrants:
            if entrant.name in own:
                worst = result.worst(entrant.name, WORST)
                sections.append(
                    wording.table(
                        f"Where {entrant.name} is farthest behind",
                        ("network", "score over the best's"),
                        [(place.name, f"{place.relative(entrant.name):.2f}") for place in worst],
                    )
                )
                commands = "\n".join(simulate_words(league, entrant, place) for place in worst)
                sections.append(wording.preformatted(commands))
    here = {result.league.name for result in results}
    sections += [
        "<h2>RFC 9743</h2>",
        wording.table(
            "What the RFC asks to be evaluated, and where that is done",
            ("what", "set"),
            [
                *(
                    (what, name if name in here else f"{name}, not asked for")
                    for what, name in _RFC_9743
                ),
                *((what, "not claimed") for what in _NOT_CLAIMED),
            ],
            text=2,
        ),
    ]
    return wording.document(title="The league", sections=sections)
