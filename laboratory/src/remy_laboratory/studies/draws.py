"""Draws a set's networks from distributions, so that no table can be tuned to a list of networks.

The networks of a set come in two halves with different random numbers: one to tune tables on, and
one to judge them. A network depends only on the set's name, the half, the seed and its number, so
that a set has the same first networks however many are drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from remy_farm.specification import SpecError, Tree, Violation, extent, fill
from remy_farm.specification.distributions import is_varied, quantile, quantities_of
from remy_farm.specification.schema import Bounds, child_path, show
from remy_laboratory.studies.networks import STUDY_KEYS, with_value
from remy_laboratory.studies.reading import Fields
from remy_proto.v1 import spec_pb2
from remy_simulator import uniform

#: Seed of the installed sets' draws.
DRAW_SEED: Final = 1
_DIGITS = 4
_MS = Bounds(unit="ms", minimum=0)
_POSITIVE_MS = Bounds(unit="ms", minimum=0, exclusive_minimum=True)
_RATIO = Bounds(minimum=0, exclusive_minimum=True, maximum=1000)


class Half(StrEnum):
    """The halves of a set's draws."""

    #: Networks on which tables may be tuned.
    TUNING = "tuning"
    #: Networks that only judge finished tables.
    JUDGING = "judging"


# Random-stream keys of the halves.
_HALF_KEYS: Final = {Half.TUNING: 1, Half.JUDGING: 2}


@dataclass(frozen=True)
class Draws:
    """Selects the random numbers of a set's networks."""

    half: Half = Half.TUNING
    seed: int = DRAW_SEED

    def __str__(self) -> str:
        text = f"{self.half} half"
        return text if self.seed == DRAW_SEED else f"{text} of seed {self.seed}"


@dataclass(frozen=True)
class DrawStream:
    """The random numbers of one network."""

    draws: Draws
    set_name: str
    place: str
    number: int

    def value(self, distribution: spec_pb2.Distribution, quantity: str, index: int = 0) -> float:
        """Draws a value of a quantity, rounded to 4 digits; `index` counts repeated draws."""
        probability = uniform(
            self.draws.seed,
            _HALF_KEYS[self.draws.half],
            _text_key(f"{self.set_name}/{self.place}/{quantity}"),
            self.number,
            index,
        )
        low, high = extent(distribution)
        value = float(f"{quantile(distribution, probability):.{_DIGITS}g}")
        return min(max(value, low), high)


def _text_key(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def read_distribution(fields: Fields, key: str, bounds: Bounds) -> spec_pb2.Distribution | None:
    """Takes a number or a distribution whose values are within bounds; None if it is absent."""
    tree = fields.take(key)
    return None if tree is None else _distribution(fields, key, tree, bounds)


def _distribution(fields: Fields, key: str, tree: Tree, bounds: Bounds) -> spec_pb2.Distribution:
    distribution = spec_pb2.Distribution()
    for violation in fill(distribution, tree):
        fields.fail(".".join(filter(None, (key, violation.path))), violation.problem)
    path = child_path(fields.path, key) if fields.path else key
    _check_order(fields, path, distribution)
    for value in extent(distribution):
        if not bounds.allow(value):
            problem = f"has the value {show(value)}, but must be {bounds.describe()}"
            raise SpecError(fields.source, [Violation(path, problem)])
    return distribution


def _check_order(fields: Fields, path: str, distribution: spec_pb2.Distribution) -> None:
    low, high = extent(distribution)
    if low > high:
        problem = f"goes from {low:g} to {high:g}, but low must be at most high"
        raise SpecError(fields.source, [Violation(path, problem)])


# The quantities of a network.


@dataclass(frozen=True)
class DrawnQuantities:
    """The distributions in a network's keys, by key path."""

    network: Mapping[str, Any]
    distributions: Mapping[str, spec_pb2.Distribution]

    def draw(self, stream: DrawStream) -> tuple[dict[str, Any], dict[str, float]]:
        """Returns a network with drawn values, and these values by key path."""
        network = dict(self.network)
        values = {}
        for path, distribution in self.distributions.items():
            values[path] = stream.value(distribution, path)
            network = with_value(network, path, values[path])
        return network, values


def drawn_quantities(network: Mapping[str, Any]) -> DrawnQuantities:
    """Finds the distributions in a network that `check_distributions` has accepted."""
    message = spec_pb2.NetworkModel()
    described = {
        key: value for key, value in network.items() if key not in STUDY_KEYS and key != "routes"
    }
    fill(message, described, needs_alternatives=False)
    distributions = {path: each for path, each in quantities_of(message) if is_varied(each)}
    for key in STUDY_KEYS:
        if isinstance(network.get(key), Mapping):
            distributions[key] = spec_pb2.Distribution()
            fill(distributions[key], network[key])
    return DrawnQuantities(network, distributions)


def check_distributions(fields: Fields, network: Mapping[str, Any]) -> None:
    """Raises SpecError for a distribution without values, or with values that are not allowed."""
    for key, bounds in STUDY_KEYS.items():
        if isinstance(network.get(key), Mapping):
            _distribution(fields, f"network.{key}", network[key], bounds)
    for path, distribution in drawn_quantities(network).distributions.items():
        _check_order(fields, f"network.{path}", distribution)


# Changes of the path.


@dataclass(frozen=True)
class PathChange:
    """A change of the bottleneck's rate or of the RTT, once or repeatedly.

    Quantities that are None do not change. The ratios are relative to the values at the start.
    """

    at_ms: spec_pb2.Distribution | None
    every_ms: spec_pb2.Distribution | None
    """The time until the next change, drawn anew each time. Excludes `at_ms`."""
    rate_mbps: spec_pb2.Distribution | None
    rate_ratio: spec_pb2.Distribution | None
    rtt_ms: spec_pb2.Distribution | None
    rtt_ratio: spec_pb2.Distribution | None
    outage_ms: spec_pb2.Distribution | None
    """The time for which the bottleneck delivers nothing at first."""
    outage_probability: float

    def times_ms(self, stream: DrawStream, name: str, duration_ms: float) -> Iterator[float]:
        """Yields the times of the change."""
        if self.at_ms is not None:
            yield stream.value(self.at_ms, f"{name}.at_ms")
        if self.every_ms is not None:
            time_ms, index = 0.0, 0
            while (
                time_ms := round(time_ms + stream.value(self.every_ms, f"{name}.every_ms", index))
            ) < duration_ms:
                yield time_ms
                index += 1


def read_changes(fields: Fields) -> tuple[PathChange, ...]:
    """Takes the key `changes`, a list of changes of the path. Raises SpecError."""
    changes = []
    for each in fields.mappings("changes"):
        change = PathChange(
            at_ms=read_distribution(each, "at_ms", _MS),
            every_ms=read_distribution(each, "every_ms", _POSITIVE_MS),
            rate_mbps=read_distribution(
                each, "rate_mbps", Bounds(unit="Mbit/s", minimum=0, exclusive_minimum=True)
            ),
            rate_ratio=read_distribution(each, "rate_ratio", _RATIO),
            rtt_ms=read_distribution(each, "rtt_ms", _POSITIVE_MS),
            rtt_ratio=read_distribution(each, "rtt_ratio", _RATIO),
            outage_ms=read_distribution(each, "outage_ms", _MS),
            outage_probability=each.number("outage_probability", _PROBABILITY) or 0.0,
        )
        each.reject_remaining()
        if (change.at_ms is None) == (change.every_ms is None):
            each.fail("at_ms", "and every_ms exclude each other, and one of them is required")
        for absolute, ratio in (("rate_mbps", "rate_ratio"), ("rtt_ms", "rtt_ratio")):
            if getattr(change, absolute) is not None and getattr(change, ratio) is not None:
                each.fail(absolute, f"and {ratio} exclude each other")
        if change.outage_ms is not None:
            longest_ms = extent(change.outage_ms)[1]
            if change.every_ms is not None and longest_ms >= extent(change.every_ms)[0]:
                each.fail("outage_ms", f"reaches {longest_ms:g}, but must be shorter than every_ms")
        changes.append(change)
    return tuple(changes)


_PROBABILITY = (lambda value: 0 <= value <= 1, "at least 0 and at most 1")
_ALWAYS = spec_pb2.Distribution(uniform=spec_pb2.Distribution.Uniform(low=0, high=1))


def with_changes(
    network: Mapping[str, Any],
    changes: Sequence[PathChange],
    stream: DrawStream,
    duration_ms: float,
) -> dict[str, Any]:
    """Returns the network with one link whose schedule has the drawn changes.

    The network has `rate_mbps` and `rtt_ms` and no links. The part of the RTT that changes becomes
    the link's delay.
    """
    times = sorted(
        (time_ms, order, index)
        for order, change in enumerate(changes)
        for index, time_ms in enumerate(change.times_ms(stream, f"changes[{order}]", duration_ms))
    )
    first_rate_mbps, first_rtt_ms = float(network["rate_mbps"]), float(network["rtt_ms"])
    rate_mbps, rtt_ms = first_rate_mbps, first_rtt_ms
    states: list[tuple[float, float, float, float]] = []
    for time_ms, order, index in times:
        change, name = changes[order], f"changes[{order}]"
        if change.rate_mbps is not None:
            rate_mbps = stream.value(change.rate_mbps, f"{name}.rate_mbps", index)
        if change.rate_ratio is not None:
            ratio = stream.value(change.rate_ratio, f"{name}.rate_ratio", index)
            rate_mbps = first_rate_mbps * ratio
        if change.rtt_ms is not None:
            rtt_ms = stream.value(change.rtt_ms, f"{name}.rtt_ms", index)
        if change.rtt_ratio is not None:
            rtt_ms = first_rtt_ms * stream.value(change.rtt_ratio, f"{name}.rtt_ratio", index)
        outage_ms = 0.0
        if change.outage_ms is not None:
            draw = stream.value(_ALWAYS, f"{name}.outage_probability", index)
            if draw < change.outage_probability:
                outage_ms = stream.value(change.outage_ms, f"{name}.outage_ms", index)
        states.append((time_ms, rate_mbps, rtt_ms, outage_ms))
    least_rtt_ms = min([first_rtt_ms, *(rtt_ms for _, _, rtt_ms, _ in states)])
    steps: list[dict[str, float]] = []
    for time_ms, rate_mbps, rtt_ms, outage_ms in states:
        path = {"rate_mbps": _rounded(rate_mbps), "delay_ms": _rounded(rtt_ms - least_rtt_ms)}
        if outage_ms > 0:
            steps.append({"at_ms": time_ms, **path, "rate_mbps": 0})
        steps.append({"at_ms": _rounded(time_ms + outage_ms), **path})
    link: dict[str, Any] = {
        "name": "bottleneck",
        "delay_ms": _rounded(first_rtt_ms - least_rtt_ms),
    }
    if steps:
        link["schedule"] = {"steps": steps}
    return {**network, "rtt_ms": least_rtt_ms, "links": [link]}


def _rounded(value: float) -> float:
    """Returns a value without the digits that only rounding errors have."""
    return float(f"{value:.9g}")


def check_changeable(fields: Fields, network: Mapping[str, Any]) -> None:
    """Raises SpecError if changes cannot be applied to the network."""
    if "links" in network:
        fields.fail("changes", "excludes links, because the changes are those of the only link")
    for key in ("rate_mbps", "rtt_ms"):
        if key not in network:
            fields.fail("network", f"lacks {key}, which changes need")
