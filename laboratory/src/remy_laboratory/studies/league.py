"""The league: sets of networks on which RemyCCs and protocols are compared.

A set is a YAML file. Each participant is an entrant; it wins on a network if its score is within a
margin of the best entrant's score.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from matplotlib.figure import Figure

from remy_farm.analysis import wording
from remy_farm.analysis.plots import INK, new_figure
from remy_farm.evaluation.measures import PACKET_MEASURES, mean, present
from remy_farm.files import FileError, read_file
from remy_farm.specification import SpecError, Violation
from remy_farm.specification.reading import Tree, read_yaml
from remy_farm.specification.schema import show
from remy_farm.specification.senders import SenderSpec, parse_sender
from remy_laboratory.studies.cells import (
    Cell,
    CellBatch,
    CellRunner,
    OnCells,
    Tables,
    network_cells,
    read_tables,
)
from remy_laboratory.studies.draws import (
    Draws,
    DrawStream,
    PathChange,
    check_changeable,
    check_distributions,
    drawn_quantities,
    read_changes,
    with_changes,
)
from remy_laboratory.studies.networks import (
    RTT_SPREAD,
    SEED,
    key_paths,
    merge_networks,
    network_dict,
    packet_bytes,
    read_network,
    sender_counts,
    value_at,
    value_check,
    with_value,
)
from remy_laboratory.studies.path_history import (
    RECORDED_NAMES,
    PathHistory,
    RecordedMeasures,
    measure_recording,
    path_history,
)
from remy_laboratory.studies.reading import (
    NOT_NEGATIVE_NUMBER,
    PERCENTAGE,
    POSITIVE_NUMBER,
    RUNS,
    Amount,
    Fields,
    read_amount,
)
from remy_laboratory.studies.study import Measure, StudyRow, check_network
from remy_laboratory.studies.verdicts import CellSamples, packets_by_group, sender_samples

_MAX_FILE_BYTES = 1_000_000
_BITS_PER_BYTE = 8
_MS_PER_SECOND = 1000.0
# Simulated time of sets that do not say it.
_SECONDS = 30.0


class Score(StrEnum):
    """The score of an entrant on a network; higher is better.

    Throughput is goodput: packets delivered in order, on transports that deliver in order. POWER,
    SQUARED_THROUGHPUT_OVER_DELAY and FAIR_POWER have a price of losses (`goodput_less_losses`).
    The others compare shares or times, and results state the loss beside them.
    """

    #: Mean throughput, less losses, squared, divided by mean one-way delay.
    SQUARED_THROUGHPUT_OVER_DELAY = "squared_throughput_over_delay"
    #: Mean throughput, less losses, divided by mean RTT.
    POWER = "power"
    #: Utilization, less losses, times Jain's index, divided by the mean RTT over the path's own.
    FAIR_POWER = "fair_power"
    #: Ratio of the smaller to the larger throughput of the entrant and its rival.
    CLOSENESS_TO_FAIR = "closeness_to_fair"
    #: Ratio of the smallest to the largest throughput of the entrant's senders.
    EQUALITY = "equality"
    #: Inverse of the median flow completion time.
    SHORT_COMPLETION = "short_completion"
    #: The entrant's throughput divided by half of its and its rival's total.
    SHARE_OF_FAIR = "share_of_fair"
    #: The entrant's total throughput divided by the link's capacity.
    UTILIZATION = "utilization"


def goodput_less_losses(goodput: float, loss: float) -> float:
    """Returns the goodput times the fraction of transmissions that arrive.

    This is the price of losses in all scores: of two protocols with the same goodput and delay, one
    that loses half of what it transmits has half of the score, because it takes twice as much of
    what the links before the bottleneck can carry.
    """
    return goodput * (1.0 - loss)


#: Measures of the entrant's senders on a network, which results have beside the score: means over
#: runs. Those of recordings are only in sets with `record_every_ms`.
MEASURES: Final = (
    "goodput_mbps",
    "utilization",
    "jain",
    "rtt_mean_ms",
    *PACKET_MEASURES,
    *(name for name in RECORDED_NAMES if name != "utilization"),
)


#: The name of the score among the quantities that have bounds.
SCORE: Final = "score"


# Column heads of the score and of measures.
_HEADS: Final = {
    SCORE: "score",
    "goodput_mbps": "Mbit/s",
    "utilization": "utilization",
    "jain": "Jain",
    "loss": "loss",
    "rtt_mean_ms": "mean RTT ms",
    "rtt_p95_ms": "RTT p95 ms",
    "rtt_over_path_mean": "mean RTT / path",
    "rtt_over_path_p95": "p95 RTT / path",
    "queue_growth": "queue growth",
    "first_second_mbps": "1st second Mbit/s",
    "second_second_mbps": "2nd second Mbit/s",
}
# The measures in tables of sets that do not say it.
_SHOWN: Final = ("goodput_mbps", "loss", "rtt_mean_ms", "rtt_p95_ms")


def quantity_head(name: str) -> str:
    """Returns the column head of the score or of a measure."""
    return _HEADS[name]


@dataclass(frozen=True)
class Bound:
    """Least or largest allowed value of the score or of a measure."""

    quantity: str
    """SCORE or one of MEASURES."""
    value: float
    is_maximum: bool = False

    def allows(self, value: float | None) -> bool:
        """Returns whether a value is within the bound; a missing one is not."""
        if value is None:
            return False
        return value <= self.value if self.is_maximum else value >= self.value

    def shortfall(self, value: float | None) -> float:
        """Returns how far a value is beyond the bound; negative within it."""
        if value is None:
            return math.inf
        return value - self.value if self.is_maximum else self.value - value

    @property
    def words(self) -> str:
        """The bound, such as "at least 0.25"."""
        return f"at {'most' if self.is_maximum else 'least'} {self.value:g}"


@dataclass(frozen=True)
class Place:
    """Named keys of networks, and who is on them; None for what the set says."""

    name: str
    network: Mapping[str, Any]
    rival: SenderSpec | None = None
    senders: int | None = None


@dataclass(frozen=True)
class SetNetwork:
    """One network of a set, and who is on it besides the entrant."""

    name: str
    network: Mapping[str, Any]
    rival: SenderSpec | None
    """Senders on the network besides the entrant's; None for no rival."""
    senders: int
    """Number of the entrant's senders."""


@dataclass(frozen=True)
class LeagueSet:
    """A set of networks, the rival on them, and the score.

    The networks are fixed (a grid, places, or both), or drawn from the distributions in `network`.
    """

    name: str
    title: str
    source: str
    about: str
    network: Mapping[str, Any]
    grid: Mapping[str, Amount]
    places: tuple[Place, ...]
    """Named networks that replace the grid's, or are combined with each of the grid's networks."""
    rival: SenderSpec | None
    """Senders on the networks besides the entrant's; None for no rival."""
    senders: int
    """Number of the entrant's senders."""
    score: Score
    margin: float
    seconds: Amount
    runs: Amount
    bounds: tuple[Bound, ...]
    """Bounds that a robust table meets on each network; empty for a set that requires nothing."""

    draws: Amount | None = None
    """Number of networks to draw at each place; None for fixed networks."""
    changes: tuple[PathChange, ...] = ()
    record_every_ms: float | None = None
    """Time between the samples of recorded runs; None if runs are not recorded."""
    shown: tuple[str, ...] = ()
    """The measures that tables of results have, or the score."""
    measured_from_s: float = 0.0
    """Time from which on recorded runs are measured, except for their growth and first seconds."""

    def length_s(self, *, quick: bool) -> float:
        """Returns the simulated time."""
        return self.seconds.select(quick=quick)[0]

    def networks(self, draws: Draws, *, quick: bool) -> list[SetNetwork]:
        """Returns the networks; those that are drawn have the random numbers of `draws`."""
        places = self.places or (Place("", {}),)
        networks = self._drawn if self.draws is not None else self._fixed
        return [each for place in places for each in networks(place, draws, quick=quick)]

    def _fixed(self, place: Place, _: Draws, *, quick: bool) -> Iterator[SetNetwork]:
        axes = [
            [(field, value) for value in values.select(quick=quick)]
            for field, values in self.grid.items()
        ]
        for point in itertools.product(*axes):
            names = [place.name] if place.name else []
            names += [_value_name(field, value) for field, value in point]
            network = merge_networks(self.network, place.network)
            for field, value in point:
                network = with_value(network, field, value)
            yield self._network(", ".join(names), network, place)

    def _drawn(self, place: Place, draws: Draws, *, quick: bool) -> Iterator[SetNetwork]:
        assert self.draws is not None
        quantities = drawn_quantities(merge_networks(self.network, place.network))
        for number in range(int(self.draws.select(quick=quick)[0])):
            stream = DrawStream(draws, self.name, place.name, number)
            network, values = quantities.draw(stream)
            names = [_value_name(path, value) for path, value in values.items()]
            if self.changes:
                duration_ms = self.length_s(quick=quick) * _MS_PER_SECOND
                network = with_changes(network, self.changes, stream, duration_ms)
            prefix = f"{place.name} {number + 1}" if place.name else f"{number + 1}"
            yield self._network(f"{prefix}: {', '.join(names)}", network, place)

    def _network(self, name: str, network: dict[str, Any], place: Place) -> SetNetwork:
        senders = int(network.pop("senders", place.senders or self.senders))
        return SetNetwork(name, network, place.rival or self.rival, senders)


def _value_name(field: str, value: float) -> str:
    return f"{value:g} {_unit(field)}"


def _unit(field: str) -> str:
    """Returns the unit or label of a grid's field; by default the last part of its path."""
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
    "links[1].jitter_box.batches.packets": "packets per batch",
    "links[1].jitter_box.batches.longest_wait_ms": "ms late",
    "links[1].jitter_box.random.longest_hold_ms": "ms late",
    "links[0].policer.rate_mbps": "Mbit/s policed",
    "links[0].policer.burst_packets": "packets of burst",
    "measurement.reordering.probability": "of packets",
    "measurement.reordering.delay_ms": "ms late",
    "starts_apart_ms": "ms between starts",
    "rtt_spread": "times the shortest RTT",
}


def read_set(path: Path) -> LeagueSet:
    """Reads a set from a file. Raises SpecError or FileError."""
    fields = Fields(_set_tree(path), str(path), "")
    margin = PERCENTAGE.fullmatch(fields.text("won_within", "10 %"))
    if margin is None:
        fields.fail("won_within", "must be a percentage, e.g. 10 %")
    draws = None
    if "draws" in fields.remaining():
        draws = read_amount(fields, "draws", RUNS, many=False)
    is_drawn = draws is not None
    places = []
    for mapping in fields.mappings("places"):
        place = Place(
            name=mapping.text("name", None),
            network=read_network(mapping.mapping("network"), is_drawn=is_drawn),
            rival=_read_rival(mapping),
            senders=int(mapping.number("senders", RUNS) or 0) or None,
        )
        places.append(place)
        mapping.reject_remaining()
    league = LeagueSet(
        name=path.stem,
        title=fields.text("title", None),
        source=fields.text("source", None),
        about=fields.text("about"),
        network=read_network(fields.mapping("network"), is_drawn=is_drawn),
        grid=_read_grid(fields.mapping("grid")),
        places=tuple(places),
        rival=_read_rival(fields),
        senders=int(fields.number("senders", RUNS) or 1),
        score=fields.choice("score", Score, Score.POWER),
        margin=float(margin[1]) / 100,
        seconds=_read_seconds(fields),
        runs=read_amount(fields, "runs", RUNS, many=False),
        bounds=(*_read_bounds(fields, "at_least"), *_read_bounds(fields, "at_most")),
        draws=draws,
        changes=read_changes(fields),
        record_every_ms=fields.number("record_every_ms"),
        shown=_read_shown(fields),
        measured_from_s=fields.number("measured_from_s", NOT_NEGATIVE_NUMBER) or 0.0,
    )
    fields.reject_remaining()
    if is_drawn and league.grid:
        fields.fail("grid", "excludes draws; the network's distributions say what is drawn")
    if league.changes and not is_drawn:
        fields.fail("changes", "requires draws")
    if league.record_every_ms is None:
        recorded = [each.quantity for each in league.bounds if each.quantity in RECORDED_NAMES]
        if league.score == Score.FAIR_POWER:
            recorded.append(league.score)
        if recorded := [name for name in recorded if name != "utilization"]:
            fields.fail("record_every_ms", f"is missing, but {recorded[0]} needs recorded runs")
    if league.measured_from_s >= min(league.length_s(quick=quick) for quick in (True, False)):
        fields.fail("measured_from_s", f"is {league.measured_from_s:g}, but must be below seconds")
    for place in league.places or (Place("", {}),):
        network = merge_networks(league.network, place.network)
        if is_drawn:
            check_distributions(fields, network)
        if league.changes:
            check_changeable(fields, network)
    entrant = Entrant(_PLACEHOLDER, parse_sender(_PLACEHOLDER))
    # The networks of --quick are the first of those that are drawn.
    for each in league.networks(Draws(), quick=is_drawn):
        check_network(fields, each.network, each.name, entrant.row(each).senders)
    return league


def set_files(path: Path) -> list[Path]:
    """Returns the files that describe a set: its own, and the one that it is like.

    Raises SpecError or FileError.
    """
    tree = _tree(path)
    base = tree.get(_LIKE) if isinstance(tree, dict) else None
    return [path] if base is None else [path, path.parent / str(base)]


# Key of a set for the file of another one, whose keys it has unless it replaces them.
_LIKE: Final = "like"


def _set_tree(path: Path) -> Tree:
    own, *bases = [_tree(each) for each in set_files(path)]
    if not bases:
        return own
    (base,) = bases
    if not isinstance(own, dict) or not isinstance(base, dict) or _LIKE in base:
        problem = f"is {show(own)}, but must name a set that is like no other"
        raise SpecError(str(path), [Violation(_LIKE, problem)])
    return {key: value for key, value in {**base, **own}.items() if key != _LIKE}


def _tree(path: Path) -> Tree:
    text = read_file(path, limit=_MAX_FILE_BYTES).decode("utf-8", "replace")
    return read_yaml(text, str(path))


def _read_shown(fields: Fields) -> tuple[str, ...]:
    names = fields.take("shown")
    if names is None:
        return _SHOWN
    if not isinstance(names, list) or any(name not in _HEADS for name in names):
        fields.fail("shown", f"is {show(names)}, but must be a list of {', '.join(_HEADS)}")
    return tuple(map(str, names))


def _read_grid(fields: Fields | None) -> dict[str, Amount]:
    points: dict[str, Amount] = {}
    if fields is None:
        return points
    for field in fields.remaining():
        check = value_check(field)
        if check is not None:
            points[field] = read_amount(fields, field, check, many=True)
    fields.reject_remaining()
    return points


def _read_rival(fields: Fields) -> SenderSpec | None:
    rival = fields.text("rival")
    try:
        return parse_sender(rival) if rival else None
    except ValueError as problem:
        fields.fail("rival", f"is {show(rival)}: {problem}")


def _read_bounds(fields: Fields, key: str) -> list[Bound]:
    """Takes bounds: one of the score as a number, or several by the names of quantities."""
    tree = fields.take(key)
    if tree is None:
        return []
    is_maximum = key == "at_most"
    if not isinstance(tree, dict):
        return [Bound(SCORE, fields.check_number(key, tree, _BOUND), is_maximum)]
    for name in tree:
        if name not in (SCORE, *MEASURES):
            fields.fail(key, f"names {show(name)}, but must name {', '.join((SCORE, *MEASURES))}")
    return [
        Bound(name, fields.check_number(f"{key}.{name}", value, _BOUND), is_maximum)
        for name, value in tree.items()
    ]


_BOUND = NOT_NEGATIVE_NUMBER


def _read_seconds(fields: Fields) -> Amount:
    if "seconds" not in fields.remaining():
        return Amount((_SECONDS,), (_SECONDS,))
    return read_amount(fields, "seconds", POSITIVE_NUMBER, many=False)


# Protocol of the entrant when a set is checked.
_PLACEHOLDER = "newreno"


@dataclass(frozen=True)
class Entrant:
    """A RemyCC or protocol that takes part, and its name."""

    name: str
    sender: SenderSpec
    time_unit_ms: float = 1.0
    """Time unit of a .dna file."""

    def row(self, on: SetNetwork) -> StudyRow:
        """Returns the entrant's senders on a network, after its rival's if there is one."""
        senders = replace(self.sender, count=on.senders)
        return StudyRow(
            name=self.name,
            senders=(senders,) if on.rival is None else (on.rival, senders),
            network={},
            time_unit_ms=self.time_unit_ms,
            design_range=None,
        )


@dataclass(frozen=True)
class NetworkResult:
    """The entrants' scores on one network."""

    on: SetNetwork
    scores: Mapping[str, float]
    measures: Mapping[str, Mapping[str, float | None]]
    """By entrant: means over runs, by the names in MEASURES; None if a measure has no value."""

    @property
    def name(self) -> str:
        """The network's name."""
        return self.on.name

    def value(self, entrant: str, quantity: str) -> float | None:
        """Returns the entrant's score or one of its measures."""
        if quantity == SCORE:
            return self.scores[entrant]
        return self.measures[entrant][quantity]

    def relative_score(self, entrant: str) -> float:
        """Returns the entrant's score divided by the best one; 0 without a score."""
        best = max(self.scores.values(), default=0.0)
        return self.scores.get(entrant, 0.0) / best if best > 0 else 0.0


@dataclass(frozen=True)
class SetResult:
    """The results of a set."""

    league: LeagueSet
    draws: Draws
    seconds: float
    entrants: Sequence[Entrant]
    runs: int
    networks: Sequence[NetworkResult]

    @property
    def drawn_from(self) -> str:
        """The half of the draws, and the seed if it is not the installed one; or "fixed"."""
        return "fixed" if self.league.draws is None else str(self.draws)

    def winning_rate(self, entrant: str) -> float:
        """Returns the fraction of networks on which no entrant is better beyond the margin."""
        minimum = 1 - self.league.margin
        won = sum(network.relative_score(entrant) >= minimum for network in self.networks)
        return won / len(self.networks)

    def mean(self, entrant: str, quantity: str) -> float | None:
        """Returns the mean over the networks of the entrant's score or of a measure."""
        return mean(present(network.value(entrant, quantity) for network in self.networks))

    def means(self, entrant: str) -> dict[str, float | None]:
        """Returns the means over the networks of the entrant's measures."""
        return {name: self.mean(entrant, name) for name in MEASURES}

    def worst_networks(self, entrant: str, count: int) -> list[NetworkResult]:
        """Returns the networks where the entrant is farthest behind, worst first."""
        return sorted(self.networks, key=lambda network: network.relative_score(entrant))[:count]


def cell_score(
    score: Score, on: SetNetwork, cell: CellSamples, measures: Mapping[str, float | None]
) -> float:
    """Returns the score over all runs on one network; 0 if nothing was received."""
    kind = _entrants_kind(on)
    goodput, rtt_ms = measures["goodput_mbps"], measures["rtt_mean_ms"]
    if goodput is None or rtt_ms is None:
        return 0.0
    priced = goodput_less_losses(goodput, measures["loss"] or 0.0)
    match score:
        case Score.SQUARED_THROUGHPUT_OVER_DELAY:
            # Half of the RTT is the return path, which has no queue.
            return priced * priced / (rtt_ms - float(cell.network["rtt_ms"]) / 2)
        case Score.POWER:
            return priced / rtt_ms
        case Score.FAIR_POWER:
            utilization, ratio = measures["utilization"], measures["rtt_over_path_mean"]
            if utilization is None or ratio is None:
                return 0.0
            fairness = measures["jain"] or 0.0
            return fairness * goodput_less_losses(utilization, measures["loss"] or 0.0) / ratio
        case Score.CLOSENESS_TO_FAIR:
            other = _mean(cell.values(Measure.THROUGHPUT_MBPS, 0))
            return min(goodput, other) / max(goodput, other) if max(goodput, other) > 0 else 0.0
        case Score.SHARE_OF_FAIR:
            both = goodput + _mean(cell.values(Measure.THROUGHPUT_MBPS, 0))
            return 2 * goodput / both if both > 0 else 0.0
        case Score.UTILIZATION:
            return measures["utilization"] or 0.0
        case Score.EQUALITY:
            return _mean(cell.values(Measure.SMALLEST_OVER_LARGEST, kind))
        case Score.SHORT_COMPLETION:
            times = sorted(cell.values(Measure.COMPLETION_MS, kind))
            return 1.0 / times[len(times) // 2] if times else 0.0


def _entrants_kind(on: SetNetwork) -> int | None:
    """Returns the index of the entrant's kind of senders; None for all senders."""
    return None if on.rival is None else 1


def entrant_measures(
    on: SetNetwork,
    cell: CellSamples,
    history: PathHistory | None,
    recorded: Sequence[RecordedMeasures],
) -> dict[str, float | None]:
    """Returns means over all runs of the measures of the entrant's senders."""
    kind = _entrants_kind(on)
    utilization = None
    if history is not None:
        runs = len(cell.packets)
        capacity = runs * history.capacity_packets(0, cell.seconds * _MS_PER_SECOND)
        utilization = sum(each.packets for each in cell.of_group(kind)) / capacity
    measures = {
        "goodput_mbps": mean(cell.values(Measure.THROUGHPUT_MBPS, kind)),
        "utilization": utilization,
        "jain": mean(cell.values(Measure.JAIN, kind)),
        "rtt_mean_ms": mean(cell.values(Measure.RTT_MS, kind)),
        **{name: mean(cell.values(Measure(name), kind)) for name in PACKET_MEASURES},
        **dict.fromkeys(name for name in RECORDED_NAMES if name != "utilization"),
    }
    if recorded:
        measures |= {
            name: mean(present(getattr(each, name) for each in recorded)) for name in RECORDED_NAMES
        }
    return measures


def _mean(values: Sequence[float]) -> float:
    """Returns the mean; 0 for an empty sequence."""
    return math.fsum(values) / len(values) if values else 0.0


@dataclass(frozen=True)
class LeaguePlan:
    """The simulations of a set: for each entrant its tables and cells, by network."""

    league: LeagueSet
    draws: Draws
    seconds: float
    runs: int
    networks: Sequence[SetNetwork]
    entries: Sequence[tuple[Entrant, Tables, list[Cell]]]

    @property
    def batches(self) -> list[CellBatch]:
        """The cells of each entrant."""
        return [CellBatch(tables, cells, self.seconds) for _, tables, cells in self.entries]


def plan_set(
    league: LeagueSet, entrants: Sequence[Entrant], draws: Draws, *, quick: bool
) -> LeaguePlan:
    """Plans a set's simulations. Raises FileError for a table that cannot be read."""
    (runs,) = league.runs.select(quick=quick)
    networks = league.networks(draws, quick=quick)
    seconds = league.length_s(quick=quick)
    entries = []
    for entrant in entrants:
        tables: Tables | None = None
        cells: list[Cell] = []
        for each in networks:
            row = entrant.row(each)
            if tables is None:
                tables = read_tables(row, Path())
            cells += network_cells(row, tables, each.network, range(int(runs)), seconds)
        assert tables is not None
        entries.append((entrant, tables, cells))
    return LeaguePlan(league, draws, seconds, int(runs), networks, entries)


def run_set(plan: LeaguePlan, runner: CellRunner, on_cells: OnCells) -> SetResult:
    """Simulates the missing cells and scores all of them."""
    scores: list[dict[str, float]] = [{} for _ in plan.networks]
    measures: list[dict[str, Mapping[str, float | None]]] = [{} for _ in plan.networks]
    for entrant, tables, cells in plan.entries:
        recorded = _recorded_measures(plan, runner, tables, cells, on_cells)
        outcomes = runner.run(tables, cells, plan.seconds, on_cells)
        for index, on in enumerate(plan.networks):
            runs = slice(index * plan.runs, (index + 1) * plan.runs)
            pairs = [*zip(cells[runs], outcomes[runs], strict=True)]
            samples = [
                sample
                for cell, outcome in pairs
                for sample in sender_samples(cell, outcome, plan.seconds)
            ]
            first = cells[runs.start]
            senders = sum(sender_counts(first.row.senders, on.network))
            samples_of_network = CellSamples(
                None,
                first.network,
                senders,
                plan.seconds,
                tuple(samples),
                packets=tuple(packets_by_group(*pair) for pair in pairs),
            )
            history = path_history(first.specimen)
            of_entrant = entrant_measures(on, samples_of_network, history, recorded[runs])
            measures[index][entrant.name] = of_entrant
            scores[index][entrant.name] = cell_score(
                plan.league.score, on, samples_of_network, of_entrant
            )
    return SetResult(
        plan.league,
        plan.draws,
        plan.seconds,
        [entrant for entrant, _, _ in plan.entries],
        plan.runs,
        [
            NetworkResult(on, scores_of_network, measures_of_network)
            for on, scores_of_network, measures_of_network in zip(
                plan.networks, scores, measures, strict=True
            )
        ],
    )


def _recorded_measures(
    plan: LeaguePlan,
    runner: CellRunner,
    tables: Tables,
    cells: Sequence[Cell],
    on_cells: OnCells,
) -> list[RecordedMeasures]:
    """Records and measures an entrant's runs; an empty list if the set does not record them."""
    league = plan.league
    if league.record_every_ms is None:
        return []
    recordings = runner.record_all(tables, cells, plan.seconds, league.record_every_ms, on_cells)
    measured = []
    for cell, recording in zip(cells, recordings, strict=True):
        history = path_history(cell.specimen)
        if history is None:
            raise FileError(f"set {league.name} records a path that follows random draws")
        counts = sender_counts(cell.row.senders, cell.network)
        measured.append(
            measure_recording(
                recording,
                history,
                # The entrant's senders are the last ones.
                range(sum(counts[:-1]), sum(counts)),
                from_ms=league.measured_from_s * _MS_PER_SECOND,
                megabits_per_packet=packet_bytes(cell.network) * _BITS_PER_BYTE / 1e6,
            )
        )
    return measured


def simulate_command(result: SetResult, entrant: Entrant, on: SetNetwork) -> str:
    """Returns the command that simulates the first run of an entrant on a network."""
    network = on.network
    arguments = ["remy-farm", "simulate"]
    length = ["--seconds", f"{result.seconds:g}", "--seed", str(SEED)]
    if _needs_file(on):
        file = network_file(result.league, entrant, on)
        return shlex.join([*arguments, "--network", file, *length])
    for each in entrant.row(on).senders:
        arguments += ["--sender", f"{each.name}={each.count}"]
    for path in key_paths(network):
        value = value_at(network, path)
        if path == "starts_apart_ms":
            arguments += ["--starts-apart-ms", f"{value:g}"]
        else:
            is_number = isinstance(value, int | float)
            text = f"{value:.15g}" if is_number else value if isinstance(value, str) else "{}"
            arguments += ["--set", f"{path}={text}"]
    return shlex.join([*arguments, *length])


def _needs_file(on: SetNetwork) -> bool:
    """Returns whether the options of `simulate` cannot describe the network."""
    return "links" in on.network or RTT_SPREAD in on.network


def network_file(league: LeagueSet, entrant: Entrant, on: SetNetwork) -> str:
    """Returns the path, relative to the page, of the file that describes a network."""
    name = re.sub("[^a-z0-9.]+", "-", f"{entrant.name} {on.name}".lower()).strip("-")
    return f"networks/{league.name}/{name}.yaml"


def network_files(chosen: Iterable[tuple[SetResult, Entrant, SetNetwork]]) -> dict[str, str]:
    """Returns the files, by path, of these networks that a page's commands name."""
    files = {}
    for result, entrant, on in chosen:
        if _needs_file(on):
            tree = network_dict(entrant.row(on).senders, on.network)
            name = network_file(result.league, entrant, on)
            files[name] = yaml.safe_dump(tree, sort_keys=False)
    return files


# Output.


def league_csv(result: SetResult) -> str:
    """Returns CSV with a line per network and entrant."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["set", "draws", "network", "entrant", "score", "over_best", "runs", *MEASURES])
    for network in result.networks:
        for entrant in result.entrants:
            score = network.scores[entrant.name]
            over_best = network.relative_score(entrant.name)
            writer.writerow(
                [
                    result.league.name,
                    result.drawn_from,
                    network.name,
                    entrant.name,
                    repr(score),
                    repr(over_best),
                    result.runs,
                    *(
                        "" if value is None else repr(value)
                        for value in network.measures[entrant.name].values()
                    ),
                ]
            )
    return buffer.getvalue()


def plot_set(result: SetResult) -> Figure:
    """Draws a heat map: entrants sorted by winning rate, networks in their order."""
    order = sorted(result.entrants, key=lambda each: -result.winning_rate(each.name))
    scores = np.array(
        [[network.relative_score(each.name) for network in result.networks] for each in order]
    )
    count = len(result.networks)
    step = max(1, math.ceil(count / 24))
    names = [network.name for network in result.networks[::step]]
    # The names are printed below, slanted.
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
        f"{result.league.title} ({result.drawn_from})\n"
        "Score divided by the best score, and winning rate",
        loc="left",
        fontsize=12,
        color=INK,
        pad=10,
    )
    bar = figure.colorbar(image, ax=axes, fraction=0.025, pad=0.01)
    bar.ax.tick_params(labelsize=8.5)
    return figure


#: Number of networks to report per contender and set.
MAX_WORST_NETWORKS = 3
#: The criteria of RFC 9743 for evaluating a proposal, and the set that covers each.
_RFC_9743 = (
    ("congestion collapse and high loss", "pantheon"),
    ("standing queues", "ccbench-1"),
    ("fairness to itself", "dumbbells"),
    ("fairness to others", "ccbench-2"),
    ("short flows", "completion-times"),
    ("high delay", "ccbench-1"),
    ("tail drop", "ccbench-1"),
    ("wired paths", "ccbench-1"),
    ("policers", "policers"),
    ("shallow buffers", "shallow-crowds"),
    ("transient events", "ccbench-1-steps"),
    ("varying delay", "jitter"),
    ("path change", "rtt-steps"),
    ("wireless paths", "satellites"),
    ("reordering", "reordering"),
)
_NOT_COVERED = (
    "real-time flows",
    "misbehaving peers",
    "multipath",
    "data centres",
    "circuit breakers",
    "Internet of things",
    "tunnels",
)


def league_page(
    results: Sequence[SetResult], contenders: Sequence[str], pictures: Mapping[str, bytes]
) -> str:
    """Returns a self-contained HTML page. It reports where the `contenders` are farthest behind."""
    entrants = [each.name for each in results[0].entrants]
    sections = [
        "<h1>The league</h1>",
        wording.paragraph(
            "The percentage of networks on which each entrant's score is within a margin of the "
            "best score. RemyCCs run on the same TCP as the protocols unless their name says "
            "otherwise.",
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
                f"{wording.plural(len(result.networks), 'network')} ({result.drawn_from}), "
                f"{wording.plural(result.runs, 'run')} of {result.seconds:g} s each; margin for "
                f"a win: {league.margin:.0%}; score: {league.score.replace('_', ' ')}.",
                "soft",
            )
        )
        sections.append(
            wording.figure(
                pictures[league.name], description=league.title, caption="Lighter is better."
            )
        )
        shown = league.shown
        heads = tuple(map(quantity_head, shown))
        sections.append(
            wording.table(
                f"Means over the networks ({result.drawn_from})",
                ("entrant", "won", *heads),
                [
                    (
                        each.name,
                        f"{result.winning_rate(each.name):.0%}",
                        *(wording.number(result.mean(each.name, name)) for name in shown),
                    )
                    for each in result.entrants
                ],
            )
        )
        for entrant in result.entrants:
            if entrant.name in contenders:
                worst = result.worst_networks(entrant.name, MAX_WORST_NETWORKS)
                sections.append(
                    wording.table(
                        f"Networks where {entrant.name} is farthest behind",
                        ("network", "score / best score", *heads),
                        [
                            (
                                network.name,
                                f"{network.relative_score(entrant.name):.2f}",
                                *(
                                    wording.number(network.value(entrant.name, name))
                                    for name in shown
                                ),
                            )
                            for network in worst
                        ],
                    )
                )
                commands = "\n".join(simulate_command(result, entrant, each.on) for each in worst)
                sections.append(wording.preformatted(commands))
    included = {result.league.name for result in results}
    sections += [
        "<h2>RFC 9743</h2>",
        wording.table(
            "Criteria of the RFC, and the set that covers each",
            ("criterion", "set"),
            [
                *(
                    (criterion, name if name in included else f"{name}, not run")
                    for criterion, name in _RFC_9743
                ),
                *((criterion, "not covered") for criterion in _NOT_COVERED),
            ],
            text=2,
        ),
    ]
    return wording.document(title="The league", sections=sections)
