"""Search for counter-examples: networks of a space on which a table loses most against a rival.

The space is a specification: what varies in it are the coordinates of a unit cube, by the quantiles
of its distributions. A first round spreads over the cube; each later one looks around the worst
networks so far, in half the width of the round before. What was chosen by its loss is measured
again on draws of its own. All is decided by the seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

import remy_simulator
from remy_farm.evaluation.measures import Estimate, Evaluate, estimate, present
from remy_farm.files import read_file
from remy_farm.specification import (
    Networks,
    SpecError,
    Violation,
    content_digest,
    extent,
)
from remy_farm.specification.distributions import is_varied, quantile
from remy_farm.specification.models import fixed_tables
from remy_farm.specification.reading import Tree, read_yaml
from remy_farm.specification.senders import SenderSpec
from remy_farm.specification.writing import as_yaml, message_tree
from remy_laboratory.studies.reading import Fields
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import columns
from remy_simulator.objective import specimen_score

_MS_PER_SECOND = 1000.0
_LARGEST_FILE = 1_000_000
# The last elements of streams' paths.
_SPREAD, _ORDER, _STEP, _IS_MOVED, _DRAWS, _SIMULATION, _FRESH = range(7)
#: How many of the worst so far a round looks around.
_PARENTS = 8
#: How far a coordinate moves at most in the second round.
_WIDTH = 0.25
#: Networks that are reported are so far apart, in the coordinate that tells them apart most.
_APART = 0.1
_BELOW_ONE = 1 - 2**-53
_DIGITS = 4


Point = tuple[float, ...]
"""A network: a number of [0, 1) for each quantity that varies."""


class Space:
    """The networks of a specification. Raises SpecError where they are of several models."""

    def __init__(self, spec: spec_pb2.DesignSpec, source: str) -> None:
        if spec.models:
            _refuse(source, "models", "is given, but an attack is on networks of one model")
        if any(link.HasField("trace") for link in spec.network.links):
            _refuse(source, "network.links", "follow a recording, but an attack draws networks")
        self.spec = spec
        #: What varies, by path, in the order of a point's numbers.
        self.quantities = [
            (path, each)
            for path, each in _distributions(spec.network, "network")
            if is_varied(each)
        ]
        if not self.quantities:
            _refuse(source, "network", "has nothing that varies, so that there is nothing to find")

    def values(self, point: Point) -> list[float]:
        """Of what varies, to a few digits and never outside of its ends."""
        found = []
        for (_, distribution), coordinate in zip(self.quantities, point, strict=True):
            low, high = extent(distribution)
            value = float(f"{quantile(distribution, coordinate):.{_DIGITS}g}")
            found.append(min(max(value, low), high))
        return found

    def at(self, point: Point) -> spec_pb2.DesignSpec:
        """The specification of one network."""
        spec = spec_pb2.DesignSpec()
        spec.CopyFrom(self.spec)
        varied = [each for _, each in _distributions(spec.network, "network") if is_varied(each)]
        for distribution, value in zip(varied, self.values(point), strict=True):
            distribution.exact = value
        return spec

    def words(self, point: Point) -> str:
        """What tells the network from others."""
        return ", ".join(
            f"{path.rpartition('.')[2]} {value:g}"
            for (path, _), value in zip(self.quantities, self.values(point), strict=True)
        )


def _refuse(source: str, path: str, problem: str) -> None:
    raise SpecError(source, [Violation(path, problem)])


def _distributions(message: Message, path: str) -> Iterator[tuple[str, spec_pb2.Distribution]]:
    """Those in a message, in the order of fields."""
    if isinstance(message, spec_pb2.Distribution):
        yield path, message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        parts = enumerate(value) if field.is_repeated else ((None, value),)
        for place, part in parts:
            where = field.name if place is None else f"{field.name}[{place}]"
            yield from _distributions(part, f"{path}.{where}")


@dataclass(frozen=True)
class Effort:
    """How long an attack is."""

    networks: int
    """In all rounds."""
    rounds: int
    runs: int
    """Of each network while it is searched for."""
    found: int
    """Networks to report."""
    fresh_runs: int
    """Of each of these."""


@dataclass(frozen=True)
class FoundNetwork:
    """A network, and how the table did there on draws that it was not chosen by."""

    words: str
    network: spec_pb2.NetworkModel
    score: Estimate | None
    rival_score: Estimate | None
    loss: Estimate | None
    """The rival's score less the table's; None where neither could be scored."""


@dataclass(frozen=True)
class AttackResult:
    """What an attack came to."""

    spread: Estimate | None
    """Mean loss over the networks of the first round, which nothing chose; None of no search."""
    found: Sequence[FoundNetwork]
    """The worst first."""


class Attack:
    """A table, its rival, and who simulates. Both have the same draws on every network."""

    def __init__(
        self,
        space: Space,
        table: rule_table_pb2.RuleTable,
        senders: evaluation_pb2.SenderGroup,
        rival: SenderSpec,
        evaluate: Evaluate,
        *,
        seed: int,
    ) -> None:
        """`senders` has what carries the table, if that is other than the specification says."""
        self._space = space
        self._tables = [table, *fixed_tables(space.spec)]
        self._senders = senders
        self._rival = rival.sender_group(None)
        self._evaluate = evaluate
        self._seed = seed

    def run(self, effort: Effort, on_round: Callable[[int, float], None]) -> AttackResult:
        """Searches. `on_round` hears the number of each round that is done and the worst loss."""
        a_round = max(1, effort.networks // effort.rounds)
        tried: dict[Point, float] = {}
        spread: list[float | None] = []
        for number in range(effort.rounds):
            points = self._spread(a_round) if number == 0 else self._around(tried, number, a_round)
            draws = remy_simulator.mix(self._seed, _DRAWS)
            specs = [self._space.at(point) for point in points]
            losses = [_loss(pairs) for pairs in self._measured(specs, draws, effort.runs)]
            if number == 0:
                spread = [None if each is None else each.mean for each in losses]
            for point, loss in zip(points, losses, strict=True):
                tried[point] = -math.inf if loss is None else loss.mean
            on_round(number + 1, max(tried.values()))
        chosen = [
            (self._space.words(point), self._space.at(point))
            for point in _apart(tried, effort.found)
        ]
        found = self.measure(chosen, effort.fresh_runs)
        found.sort(key=lambda each: -(each.loss.mean if each.loss else -math.inf))
        return AttackResult(estimate(spread), found)

    def measure(
        self, networks: Sequence[tuple[str, spec_pb2.DesignSpec]], runs: int
    ) -> list[FoundNetwork]:
        """How the table does on networks by name, on draws that no search has."""
        draws = remy_simulator.mix(self._seed, _FRESH)
        measured = self._measured([spec for _, spec in networks], draws, runs)
        return [
            FoundNetwork(
                words,
                spec.network,
                score=estimate([own for own, _ in pairs]),
                rival_score=estimate([rival for _, rival in pairs]),
                loss=_loss(pairs),
            )
            for (words, spec), pairs in zip(networks, measured, strict=True)
        ]

    def _spread(self, count: int) -> list[Point]:
        """Each coordinate once in each of so many equal parts."""
        axes = []
        for axis in range(len(self._space.quantities)):
            order = remy_simulator.shuffled(count, self._seed, _ORDER, axis)
            axes.append(
                [
                    min((place + self._uniform(_SPREAD, axis, number)) / count, _BELOW_ONE)
                    for number, place in enumerate(order)
                ]
            )
        return list(zip(*axes, strict=True))

    def _around(self, tried: Mapping[Point, float], number: int, count: int) -> list[Point]:
        """Steps from the worst; each coordinate moves with an even chance, one of them always."""
        parents = _apart(tried, _PARENTS)
        width = _WIDTH * 0.5 ** (number - 1)
        points = []
        for child in range(count):
            parent = parents[child % len(parents)]
            always = int(self._uniform(_IS_MOVED, number, child) * len(parent))
            points.append(
                tuple(
                    _folded(each + width * (2 * self._uniform(_STEP, number, child, axis) - 1))
                    if axis == always or self._uniform(_IS_MOVED, number, child, axis) < 0.5
                    else each
                    for axis, each in enumerate(parent)
                )
            )
        return points

    def _uniform(self, *path: int) -> float:
        return remy_simulator.uniform(self._seed, *path)

    def _measured(self, specs: Sequence[spec_pb2.DesignSpec], seed: int, runs: int) -> list[_Pairs]:
        """Of each network the scores of table and rival, a pair for each run."""
        specimens = [
            specimen
            for spec in specs
            for specimen in columns.unpack_specimens(Networks(spec).draw(seed=seed, count=runs))
        ]
        own = self._scores(specimens, seed, self._senders)
        rivals = self._scores(specimens, seed, self._rival)
        pairs = list(zip(own, rivals, strict=True))
        return [pairs[start : start + runs] for start in range(0, len(pairs), runs)]

    def _scores(
        self,
        specimens: Sequence[evaluation_pb2.Specimen],
        seed: int,
        senders: evaluation_pb2.SenderGroup,
    ) -> list[float | None]:
        """With these in place of those that run the table."""
        request = evaluation_pb2.EvaluationRequest(
            tables=self._tables,
            candidates=[evaluation_pb2.Candidate()],
            specimens=specimens,
            duration_ms=self._space.spec.search.simulated_seconds * _MS_PER_SECOND,
            seed=remy_simulator.mix(seed, _SIMULATION),
        )
        for specimen in request.specimens:
            for group in specimen.senders:
                if group.table == 0 and not group.HasField("protocol"):
                    group.MergeFrom(senders)
        packed = columns.packed(request)
        outcomes = columns.specimen_outcomes(packed, self._evaluate(packed))
        return [
            specimen_score(self._space.spec.objective, specimen, outcome, request.duration_ms)
            for specimen, outcome in zip(request.specimens, outcomes, strict=True)
        ]


_Pairs = Sequence[tuple[float | None, float | None]]


def _loss(pairs: _Pairs) -> Estimate | None:
    """The rival's score less the table's, over the runs in which both could be scored."""
    return estimate(
        present(None if own is None or rival is None else rival - own for own, rival in pairs)
    )


def _folded(coordinate: float) -> float:
    """Back into [0, 1) at its ends."""
    return min(abs(coordinate) if coordinate < 1 else 2 - coordinate, _BELOW_ONE)


def _apart(tried: Mapping[Point, float], most: int) -> list[Point]:
    """The worst, none of them near one that is worse."""
    found: list[Point] = []
    for point in sorted(tried, key=lambda each: (-tried[each], each)):
        near = any(
            max(abs(here - there) for here, there in zip(point, other, strict=True)) < _APART
            for other in found
        )
        if not near:
            found.append(point)
        if len(found) == most:
            break
    return found


# Files of found networks.


def attack_yaml(
    result: AttackResult, space: Space, *, table: str, table_sha256: str, rival: str, seed: int
) -> str:
    """The networks as specifications have them, with what was found there."""
    tree: Tree = {
        "table": table,
        "table_sha256": table_sha256,
        "space_sha256": content_digest(space.spec),
        "against": rival,
        "seed": seed,
        "networks": [
            {
                "name": each.words,
                "loss": None if each.loss is None else each.loss.mean,
                "network": message_tree(each.network),
            }
            for each in result.found
        ],
    }
    return as_yaml(tree)


def read_found(path: Path) -> list[dict[str, Any]]:
    """`name` and `network` of each network of a file. Raises SpecError or FileError."""
    source = str(path)
    text = read_file(path, limit=_LARGEST_FILE).decode("utf-8", "replace")
    fields = Fields(read_yaml(text, source), source, "")
    found = [
        {"name": each.text("name"), "network": each.take("network")}
        for each in fields.parts("networks")
    ]
    if not found or any(None in each.values() for each in found):
        fields.fail("networks", "must be a list of networks, each with name and network")
    return found


def hardened(tree: Tree, path: Path, share: float) -> Tree:
    """A specification's tree with the networks of a file as models: so large a part of each step's
    networks, in equal parts. Raises SpecError or FileError."""
    found = read_found(path)
    if not isinstance(tree, dict) or not ("network" in tree or "models" in tree):
        return tree
    given: Any = tree.get("models") or [{"network": tree["network"]}]
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        return tree
    weights = [each.get("weight", 1) for each in given]
    if not all(isinstance(weight, int | float) for weight in weights):
        return tree
    whole = math.fsum(weights)
    models: list[Tree] = [
        {**each, "weight": weight / whole * (1 - share)}
        for each, weight in zip(given, weights, strict=True)
    ]
    models += [{"weight": share / len(found), "network": each["network"]} for each in found]
    return {**{key: value for key, value in tree.items() if key != "network"}, "models": models}
