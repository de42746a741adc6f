"""Searches the networks of a specification for those where a table loses most against a rival.

The quantities that vary in the specification are the coordinates of a unit cube, through the
quantile functions of their distributions. The first round spreads points over the cube. Each later
round searches around the worst networks so far, within half the width of the round before. The
networks found are measured again with fresh random draws. The seed determines everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from remy_farm.specification.distributions import is_varied, quantile, quantities_of
from remy_farm.specification.models import fixed_tables
from remy_farm.specification.reading import Tree, read_yaml
from remy_farm.specification.senders import SenderSpec
from remy_farm.specification.writing import as_yaml, message_dict
from remy_laboratory.studies.reading import Fields
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import columns
from remy_simulator.objective import specimen_score

_MS_PER_SECOND = 1000.0
_MAX_FILE_BYTES = 1_000_000
# Last elements of the random streams' keys.
_SPREAD, _ORDER, _STEP, _IS_MOVED, _DRAWS, _SIMULATION, _FRESH = range(7)
#: Number of the worst networks so far around which a round searches.
_PARENTS = 8
#: Maximum change of a coordinate in the second round.
_WIDTH = 0.25
#: Minimum distance of reported networks, in the coordinate in which they differ most.
_MIN_DISTANCE = 0.1
_BELOW_ONE = 1 - 2**-53
_DIGITS = 4


Point = tuple[float, ...]
"""A network: a number in [0, 1) for each quantity that varies."""


class AttackSpace:
    """The networks of a specification with a single model. Raises SpecError for several models."""

    def __init__(self, spec: spec_pb2.DesignSpec, source: str) -> None:
        if spec.models:
            _refuse(source, "models", "is given, but an attack needs a single network model")
        if any(link.HasField("trace") for link in spec.network.links):
            _refuse(source, "network.links", "follow a trace, but an attack needs drawn networks")
        self.spec = spec
        #: The quantities that vary, as (path, distribution), in the order of a point's numbers.
        self.quantities = [
            (path, each) for path, each in quantities_of(spec.network, "network") if is_varied(each)
        ]
        if not self.quantities:
            _refuse(source, "network", "has no quantity that varies, so there is nothing to search")

    def values(self, point: Point) -> list[float]:
        """Returns the values of the quantities at a point, rounded to 4 digits."""
        values = []
        for (_, distribution), coordinate in zip(self.quantities, point, strict=True):
            low, high = extent(distribution)
            value = float(f"{quantile(distribution, coordinate):.{_DIGITS}g}")
            values.append(min(max(value, low), high))
        return values

    def spec_at(self, point: Point) -> spec_pb2.DesignSpec:
        """Returns the specification of the network at a point."""
        spec = spec_pb2.DesignSpec()
        spec.CopyFrom(self.spec)
        varied = [each for _, each in quantities_of(spec.network, "network") if is_varied(each)]
        for distribution, value in zip(varied, self.values(point), strict=True):
            distribution.exact = value
        return spec

    def network_name(self, point: Point) -> str:
        """Returns a name that lists the values of the varied quantities."""
        return ", ".join(
            f"{path.rpartition('.')[2]} {value:g}"
            for (path, _), value in zip(self.quantities, self.values(point), strict=True)
        )


def _refuse(source: str, path: str, problem: str) -> None:
    raise SpecError(source, [Violation(path, problem)])


@dataclass(frozen=True)
class AttackEffort:
    """The effort of an attack."""

    networks: int
    """Number of networks over all rounds."""
    rounds: int
    runs: int
    """Runs per network during the search."""
    reported: int
    """Number of networks to report."""
    fresh_runs: int
    """Runs per reported network."""


@dataclass(frozen=True)
class FoundNetwork:
    """A network, and the table's scores on it with fresh random draws."""

    name: str
    network: spec_pb2.NetworkModel
    score: Estimate | None
    rival_score: Estimate | None
    loss: Estimate | None
    """The rival's score minus the table's; None if no run was scored for both."""


@dataclass(frozen=True)
class AttackResult:
    """The result of an attack."""

    spread: Estimate | None
    """Mean loss over the networks of the first round; None without a search."""
    networks: Sequence[FoundNetwork]
    """The networks found, worst first."""


class Attack:
    """A table and its rival, which are evaluated on every network with the same random draws."""

    def __init__(
        self,
        space: AttackSpace,
        table: rule_table_pb2.RuleTable,
        senders: evaluation_pb2.SenderGroup,
        rival: SenderSpec,
        evaluate: Evaluate,
        *,
        seed: int,
    ) -> None:
        """Creates an attack. `senders` overrides the transport of the table's senders."""
        self._space = space
        self._tables = [table, *fixed_tables(space.spec)]
        self._senders = senders
        self._rival = rival.sender_group(None)
        self._evaluate = evaluate
        self._seed = seed

    def run(self, effort: AttackEffort, on_round: Callable[[int, float], None]) -> AttackResult:
        """Searches for the worst networks. `on_round` gets a round's number and the worst loss."""
        networks_per_round = max(1, effort.networks // effort.rounds)
        losses_by_point: dict[Point, float] = {}
        spread: list[float | None] = []
        for number in range(effort.rounds):
            points = (
                self._spread(networks_per_round)
                if number == 0
                else self._around(losses_by_point, number, networks_per_round)
            )
            draws = remy_simulator.mix(self._seed, _DRAWS)
            specs = [self._space.spec_at(point) for point in points]
            losses = [_loss(pairs) for pairs in self._score_pairs(specs, draws, effort.runs)]
            if number == 0:
                spread = [None if each is None else each.mean for each in losses]
            for point, loss in zip(points, losses, strict=True):
                losses_by_point[point] = -math.inf if loss is None else loss.mean
            on_round(number + 1, max(losses_by_point.values()))
        chosen = [
            (self._space.network_name(point), self._space.spec_at(point))
            for point in _worst_apart(losses_by_point, effort.reported)
        ]
        networks = self.measure(chosen, effort.fresh_runs)
        networks.sort(key=lambda each: -(each.loss.mean if each.loss else -math.inf))
        return AttackResult(estimate(spread), networks)

    def measure(
        self, networks: Sequence[tuple[str, spec_pb2.DesignSpec]], runs: int
    ) -> list[FoundNetwork]:
        """Measures the table on named networks, with draws that no search uses."""
        draws = remy_simulator.mix(self._seed, _FRESH)
        pairs_by_network = self._score_pairs([spec for _, spec in networks], draws, runs)
        return [
            FoundNetwork(
                name,
                spec.network,
                score=estimate([of_table for of_table, _ in pairs]),
                rival_score=estimate([rival for _, rival in pairs]),
                loss=_loss(pairs),
            )
            for (name, spec), pairs in zip(networks, pairs_by_network, strict=True)
        ]

    def _spread(self, count: int) -> list[Point]:
        """Returns a Latin hypercube: each axis has one point in each of `count` equal intervals."""
        axes = []
        for axis in range(len(self._space.quantities)):
            order = remy_simulator.shuffled(count, self._seed, _ORDER, axis)
            axes.append(
                [
                    min((interval + self._uniform(_SPREAD, axis, number)) / count, _BELOW_ONE)
                    for number, interval in enumerate(order)
                ]
            )
        return list(zip(*axes, strict=True))

    def _around(self, losses: Mapping[Point, float], number: int, count: int) -> list[Point]:
        """Returns points near the worst ones. Each coordinate moves with p = 0.5, one always."""
        parents = _worst_apart(losses, _PARENTS)
        width = _WIDTH * 0.5 ** (number - 1)
        points = []
        for child in range(count):
            parent = parents[child % len(parents)]
            always = int(self._uniform(_IS_MOVED, number, child) * len(parent))
            points.append(
                tuple(
                    _reflect(each + width * (2 * self._uniform(_STEP, number, child, axis) - 1))
                    if axis == always or self._uniform(_IS_MOVED, number, child, axis) < 0.5
                    else each
                    for axis, each in enumerate(parent)
                )
            )
        return points

    def _uniform(self, *path: int) -> float:
        return remy_simulator.uniform(self._seed, *path)

    def _score_pairs(
        self, specs: Sequence[spec_pb2.DesignSpec], seed: int, runs: int
    ) -> list[_Pairs]:
        """Returns, for each network, the scores of table and rival as a pair per run."""
        specimens = [
            specimen
            for spec in specs
            for specimen in columns.unpack_specimens(Networks(spec).draw(seed=seed, count=runs))
        ]
        table_scores = self._scores(specimens, seed, self._senders)
        rival_scores = self._scores(specimens, seed, self._rival)
        pairs = list(zip(table_scores, rival_scores, strict=True))
        return [pairs[start : start + runs] for start in range(0, len(pairs), runs)]

    def _scores(
        self,
        specimens: Sequence[evaluation_pb2.Specimen],
        seed: int,
        senders: evaluation_pb2.SenderGroup,
    ) -> list[float | None]:
        """Scores the specimens with these senders in place of those that run the designed table."""
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
    """Estimates the rival's score minus the table's over the runs that are scored for both."""
    return estimate(
        present(None if table is None or rival is None else rival - table for table, rival in pairs)
    )


def _reflect(coordinate: float) -> float:
    """Reflects a coordinate at the ends of [0, 1)."""
    return min(abs(coordinate) if coordinate < 1 else 2 - coordinate, _BELOW_ONE)


def _worst_apart(losses: Mapping[Point, float], count: int) -> list[Point]:
    """Returns up to `count` points with the largest losses that are not close to a worse one."""
    chosen: list[Point] = []
    for point in sorted(losses, key=lambda each: (-losses[each], each)):
        is_close = any(
            max(abs(a - b) for a, b in zip(point, other, strict=True)) < _MIN_DISTANCE
            for other in chosen
        )
        if not is_close:
            chosen.append(point)
        if len(chosen) == count:
            break
    return chosen


# Files of found networks.


def attack_yaml(
    result: AttackResult,
    space: AttackSpace,
    *,
    table: str,
    table_sha256: str,
    rival: str,
    seed: int,
) -> str:
    """Returns the networks as specifications describe them, with the loss of each."""
    tree: Tree = {
        "table": table,
        "table_sha256": table_sha256,
        "space_sha256": content_digest(space.spec),
        "against": rival,
        "seed": seed,
        "networks": [
            {
                "name": each.name,
                "loss": None if each.loss is None else each.loss.mean,
                "network": message_dict(each.network),
            }
            for each in result.networks
        ],
    }
    return as_yaml(tree)


def read_attack_file(path: Path) -> list[dict[str, Any]]:
    """Returns `name` and `network` of each network in a file. Raises SpecError or FileError."""
    source = str(path)
    text = read_file(path, limit=_MAX_FILE_BYTES).decode("utf-8", "replace")
    fields = Fields(read_yaml(text, source), source, "")
    networks = [
        {"name": each.text("name"), "network": each.take("network")}
        for each in fields.mappings("networks")
    ]
    if not networks or any(None in each.values() for each in networks):
        fields.fail("networks", "must be a list of networks, each with name and network")
    return networks


def add_attack_networks(tree: Tree, path: Path, share: float) -> Tree:
    """Adds the networks of an attack's file to a specification as models.

    `share` is the fraction of each step's networks that they get together, in equal parts. Raises
    SpecError or FileError.
    """
    networks = read_attack_file(path)
    if not isinstance(tree, dict) or not ("network" in tree or "models" in tree):
        return tree
    models: Any = tree.get("models") or [{"network": tree["network"]}]
    if not isinstance(models, list) or not all(isinstance(each, dict) for each in models):
        return tree
    weights = [each.get("weight", 1) for each in models]
    if not all(isinstance(weight, int | float) for weight in weights):
        return tree
    total = math.fsum(weights)
    hardened: list[Tree] = [
        {**each, "weight": weight / total * (1 - share)}
        for each, weight in zip(models, weights, strict=True)
    ]
    hardened += [{"weight": share / len(networks), "network": each["network"]} for each in networks]
    return {**{key: value for key, value in tree.items() if key != "network"}, "models": hardened}
