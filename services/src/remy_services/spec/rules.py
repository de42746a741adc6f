"""Rules that involve several fields, by the message that they hold in."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from remy_farm.v1 import spec_pb2
from remy_services.spec.constraints import Bounds
from remy_services.spec.descriptors import descriptor_of, fields_of
from remy_services.spec.errors import Violation, child_path, format_number, show

_Range: TypeAlias = (
    spec_pb2.Distribution.Uniform
    | spec_pb2.Distribution.LogUniform
    | spec_pb2.Distribution.IntegerUniform
)

_MODES_WITH_MAXIMUM_RULES: Final = {
    spec_pb2.SEARCH_MODE_JOINT: "joint",
    spec_pb2.SEARCH_MODE_PATTERN: "pattern",
}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def broken_rules(message: Message, path: str, bounds: Bounds) -> Iterator[Violation]:
    """The violations, in the message at `path`, of the rules below."""
    rule = _RULES.get(descriptor_of(message).full_name)
    if rule is not None:
        yield from rule(message, path, bounds)


def _limits_are_ascending(distribution: _Range, path: str, _: Bounds) -> Iterator[Violation]:
    if distribution.low > distribution.high:
        ends = f"{format_number(distribution.low)} to {format_number(distribution.high)}"
        yield Violation(path, f"goes from {ends}, but low must be at most high")


def _limits_are_continuous(
    distribution: _Range,
    path: str,
    bounds: Bounds,
) -> Iterator[Violation]:
    if bounds.integral:
        yield Violation(
            path, "draws fractions, but must draw whole numbers; use integer_uniform or a list"
        )
    yield from _limits_are_ascending(distribution, path, bounds)


def _grid_is_complete(grid: spec_pb2.ActionGrid, path: str, _: Bounds) -> Iterator[Violation]:
    missing = [field.name for field in fields_of(grid) if not grid.HasField(field.name)]
    for name in missing:
        yield Violation(child_path(path, name), "is missing")
    if missing:
        return
    limits = f"{format_number(grid.minimum)} to {format_number(grid.maximum)}"
    if grid.minimum > grid.maximum:
        yield Violation(path, f"goes from {limits}, but minimum must be at most maximum")
    elif not grid.minimum <= grid.initial <= grid.maximum:
        initial = format_number(grid.initial)
        yield Violation(path, f"starts at {initial}, but initial must be in the range {limits}")


def _range_is_complete(
    component: spec_pb2.ComponentRange, path: str, _: Bounds
) -> Iterator[Violation]:
    missing = [field.name for field in fields_of(component) if not component.HasField(field.name)]
    for name in missing:
        yield Violation(child_path(path, name), "is missing")
    if not missing and component.minimum > component.maximum:
        limits = f"{format_number(component.minimum)} to {format_number(component.maximum)}"
        yield Violation(path, f"goes from {limits}, but minimum must be at most maximum")


def _search_is_complete(search: spec_pb2.Search, path: str, _: Bounds) -> Iterator[Violation]:
    if not search.HasField("simulated_seconds"):
        yield Violation(child_path(path, "simulated_seconds"), "is missing")


def _length_is_given_once(joint: spec_pb2.JointSearch, path: str, _: Bounds) -> Iterator[Violation]:
    if joint.HasField("cpu_seconds") and joint.HasField("simulated_packets"):
        yield Violation(
            child_path(path, "simulated_packets"),
            f"is {joint.simulated_packets}, but must be left out where cpu_seconds is given; "
            "either is a budget for the whole design",
        )


def _specification_is_sound(spec: spec_pb2.DesignSpec, path: str, _: Bounds) -> Iterator[Violation]:
    yield from _name_is_plain(spec, path)
    yield from _something_counts(spec, path)
    yield from _design_ends(spec, child_path(path, "stop"))


def _name_is_plain(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    if spec.name and not _NAME.fullmatch(spec.name):
        yield Violation(
            child_path(path, "name"),
            f"is {show(spec.name)}, but must consist of letters, digits, dots, dashes and "
            "underscores, with a letter or digit first",
        )


def _something_counts(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    simulated_ms = spec.search.simulated_seconds * 1000
    if 0 < simulated_ms <= spec.objective.minimum_on_ms:
        yield Violation(
            child_path(child_path(path, "objective"), "minimum_on_ms"),
            f"is {format_number(spec.objective.minimum_on_ms)}, but must be below "
            f"search.simulated_seconds, which is {format_number(simulated_ms)} ms",
        )


def _design_ends(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    stop, mode = spec.stop, spec.search.mode
    names = [field.name for field in fields_of(stop)]
    is_empty = spec.HasField("stop") and not any(stop.HasField(name) for name in names)
    if mode == spec_pb2.SEARCH_MODE_PAPER and is_empty:
        keys = ", ".join(names)
        yield Violation(
            path, f"must have at least one of the keys {keys} where search.mode is paper"
        )
    own_limit = _MODES_WITH_MAXIMUM_RULES.get(mode)
    if own_limit is not None and stop.HasField("rules"):
        yield Violation(
            child_path(path, "rules"),
            f"is {stop.rules}, but must be left out where search.mode is {own_limit}; "
            f"use search.{own_limit}.maximum_rules",
        )


def _workers_are_ascending(workers: spec_pb2.Workers, path: str, _: Bounds) -> Iterator[Violation]:
    if workers.HasField("minimum") and workers.HasField("maximum"):
        fewest, most = workers.minimum, workers.maximum
        if fewest > most:
            yield Violation(
                path, f"goes from {fewest} to {most}, but minimum must be at most maximum"
            )


def _full_name(message: type[Message]) -> str:
    return str(descriptor_of(message).full_name)


_RULES: Final[dict[str, Callable[[Any, str, Bounds], Iterator[Violation]]]] = {
    _full_name(spec_pb2.Distribution.Uniform): _limits_are_continuous,
    _full_name(spec_pb2.Distribution.LogUniform): _limits_are_continuous,
    _full_name(spec_pb2.Distribution.IntegerUniform): _limits_are_ascending,
    _full_name(spec_pb2.ActionGrid): _grid_is_complete,
    _full_name(spec_pb2.ComponentRange): _range_is_complete,
    _full_name(spec_pb2.JointSearch): _length_is_given_once,
    _full_name(spec_pb2.Search): _search_is_complete,
    _full_name(spec_pb2.Workers): _workers_are_ascending,
    _full_name(spec_pb2.DesignSpec): _specification_is_sound,
}
