"""Checks complete specifications: each field by itself, and rules that involve several fields."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from remy_farm.files import read_file
from remy_farm.specification.consistency import (
    link_violations,
    mixture_violations,
    network_violations,
    signals_told_by,
    traffic_violations,
)
from remy_farm.specification.distributions import extent
from remy_farm.specification.models import designed_tables
from remy_farm.specification.modes import MODES, mode_of
from remy_farm.specification.reading import Tree, field_path, fill, read_json, read_yaml
from remy_farm.specification.referenced_files import Files, keep_trace, resolve_files
from remy_farm.specification.schema import (
    Bounds,
    SpecError,
    Violation,
    child_path,
    descriptor_of,
    entries_problem,
    enum_names,
    enum_of,
    fields_of,
    format_number,
    is_submessage,
    oneofs_of,
    short_name,
    show,
)
from remy_farm.specification.traces import LinkTrace
from remy_proto.completion import NEWEST_EDITION, complete, constraint_of, is_alternative
from remy_proto.v1 import rule_table_pb2, spec_pb2
from remy_simulator.messages import (
    AXES,
    is_scale_free,
    signal_of,
    signals_zero_until_measured,
)
from remy_simulator.signals import ToldBy
from remy_simulator.throughput import counts_flows


def validation_specimens(spec: spec_pb2.DesignSpec) -> int:
    """The number of validation specimens of the specification's search mode."""
    mode = mode_of(spec)
    if mode is None:
        names = ", ".join(each.name for each in MODES)
        raise ValueError(f"search.mode is number {spec.search.mode}, but must be one of {names}")
    specimens: int = mode.settings(spec.search).validation_specimens
    return specimens


_Rule: TypeAlias = Callable[[Any, str, Bounds], Iterator[Violation]]

# By kind of rules: the signals that they may use.
_SIGNALS: Final = {
    rules: [signal_of(axis, rules) for axis in range(AXES)]
    for rules in rule_table_pb2.Rules.values()[1:]
}

_SIMPLE_TRAFFIC: Final = {"exponential_time", "exponential_bytes", "flow_lengths", "mean_off_ms"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def broken_rules(message: Message, path: str, bounds: Bounds) -> Iterator[Violation]:
    """Violations, in the message at `path`, of the rules that involve several fields."""
    rule = _RULES.get(descriptor_of(message).full_name)
    if rule is not None:
        yield from rule(message, path, bounds)


def _ascending(message: Message, path: str, low: str, high: str) -> Iterator[Violation]:
    """A violation if both fields are given and `low` is above `high`."""
    if message.HasField(low) and message.HasField(high):
        first, last = getattr(message, low), getattr(message, high)
        if first > last:
            ends = f"{format_number(first)} to {format_number(last)}"
            yield Violation(path, f"goes from {ends}, but {low} must be at most {high}")


def _missing_fields(message: Message, path: str) -> Iterator[Violation]:
    """A violation for each field that is not given."""
    for field in fields_of(message):
        if not message.HasField(field.name):
            yield Violation(child_path(path, field.name), "is missing")


def _ascending_rule(low: str, high: str) -> _Rule:
    return lambda message, path, _: _ascending(message, path, low, high)


def _continuous_range_violations(
    distribution: Message, path: str, bounds: Bounds
) -> Iterator[Violation]:
    if bounds.integral:
        yield Violation(
            path, "draws fractions, but must draw whole numbers; use integer_uniform or a list"
        )
    yield from _ascending(distribution, path, "low", "high")


def _log_normal_violations(
    jitter: spec_pb2.MeasurementModel.Jitter.LogNormal, path: str, _: Bounds
) -> Iterator[Violation]:
    median, percentile = extent(jitter.median_ms)[1], extent(jitter.percentile_99_ms)[0]
    if 0 < percentile < median:
        yield Violation(
            child_path(path, "percentile_99_ms"),
            f"may be {format_number(percentile)}, but must be at least median_ms, "
            f"which may be {format_number(median)}",
        )


def _action_grid_violations(grid: spec_pb2.ActionGrid, path: str, _: Bounds) -> Iterator[Violation]:
    found = [*_missing_fields(grid, path)] or [*_ascending(grid, path, "minimum", "maximum")]
    yield from found
    if not found and not grid.minimum <= grid.initial <= grid.maximum:
        initial = format_number(grid.initial)
        limits = f"{format_number(grid.minimum)} to {format_number(grid.maximum)}"
        yield Violation(path, f"starts at {initial}, but initial must be in the range {limits}")


def _component_range_violations(
    component: spec_pb2.ComponentRange, path: str, _: Bounds
) -> Iterator[Violation]:
    yield from _missing_fields(component, path)
    yield from _ascending(component, path, "minimum", "maximum")


def _joint_search_violations(
    joint: spec_pb2.JointSearch, path: str, _: Bounds
) -> Iterator[Violation]:
    if joint.HasField("cpu_seconds") and joint.HasField("simulated_packets"):
        yield Violation(
            child_path(path, "simulated_packets"),
            f"is {joint.simulated_packets}, but must be left out if cpu_seconds is given, "
            "because each is a budget for the whole design",
        )


def _worker_schedule_violations(
    search: spec_pb2.Search, path: str, _: Bounds
) -> Iterator[Violation]:
    if search.follow_workers and search.mode != spec_pb2.SEARCH_MODE_JOINT:
        problem = "is true, but must be left out unless search.mode is joint"
        yield Violation(child_path(path, "follow_workers"), problem)
    schedule = search.worker_schedule
    steps = schedule[::2]
    ascends = all(before < after for before, after in pairwise(steps))
    if schedule and not (
        search.follow_workers and len(schedule) % 2 == 0 and steps[0] == 0 and ascends
    ):
        yield Violation(
            child_path(path, "worker_schedule"),
            "must be pairs of a step, ascending from 0, and the threads from that step on, where "
            "follow_workers is true",
        )


def _steps_in_flight_violations(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    in_flight = spec.search.joint.steps_in_flight
    if in_flight <= 1:
        return
    if spec.search.follow_workers:
        why = "search.follow_workers is true, because a step's width is known only when it begins"
    elif len(designed_tables(spec)) > 1:
        why = "several tables are designed together, because they take turns"
    else:
        return
    field = child_path(child_path(child_path(path, "search"), "joint"), "steps_in_flight")
    yield Violation(field, f"is {in_flight}, but must be 1 if {why}")


def _specification_violations(
    spec: spec_pb2.DesignSpec, path: str, _: Bounds
) -> Iterator[Violation]:
    yield from _name_violations(spec, path)
    yield from _rules_violations(spec, path)
    yield from _minimum_on_violations(spec, path)
    yield from _steps_in_flight_violations(spec, path)
    if _needs_mixture_check(spec) or signals_told_by(spec, ToldBy.MARKS):
        yield from mixture_violations(spec, path)
    yield from _stop_violations(spec, child_path(path, "stop"))


def _network_rule(network: spec_pb2.NetworkModel, path: str, bounds: Bounds) -> Iterator[Violation]:
    """Skips the costly check for a network that has nothing it could object to."""
    beyond = network.queue or network.links or network.ack_bytes or network.transport
    if network.sender_groups or beyond:
        yield from network_violations(network, path, bounds)


def _traffic_rule(traffic: spec_pb2.TrafficModel, path: str, bounds: Bounds) -> Iterator[Violation]:
    """Skips the costly check for traffic that has nothing it could object to."""
    present = {field.name for field, _ in traffic.ListFields()}
    if not present <= _SIMPLE_TRAFFIC:
        yield from traffic_violations(traffic, path, bounds)


def _needs_mixture_check(spec: spec_pb2.DesignSpec) -> bool:
    """Whether the specification has more than one network model with a number of senders."""
    network = spec.network
    return bool(
        spec.models
        or network.sender_groups
        or network.queue
        or network.links
        or counts_flows(spec.objective)
    )


def problem_with_name(name: str) -> str | None:
    """Describes what is wrong with a name; returns None if it is valid."""
    if _NAME.fullmatch(name):
        return None
    return (
        f"is {show(name)}, but must consist of letters, digits, dots, dashes and underscores, with "
        "a letter or digit first"
    )


def _name_violations(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    problem = problem_with_name(spec.name) if spec.name else None
    if problem is not None:
        yield Violation(child_path(path, "name"), problem)


def _rules_violations(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    scale_free = is_scale_free(spec.rules)
    allowed = _SIGNALS.get(spec.rules, [])
    names = rule_table_pb2.Signal.DESCRIPTOR.values_by_number

    for index, signal in enumerate(spec.signals):
        if signal and allowed and signal not in allowed:
            reason = (
                "because scale-free rules use ratios only"
                if scale_free
                else "because rules is absolute"
            )
            yield Violation(
                f"{child_path(path, 'signals')}[{index}]",
                f"is {short_name(names[signal])}, but must be one of "
                f"{', '.join(short_name(names[each]) for each in allowed)}, {reason}",
            )
    sure = signals_zero_until_measured(spec.rules)
    named = set(spec.signals)
    if allowed and named and named <= set(allowed) and not named.intersection(sure):
        yield Violation(
            child_path(path, "signals"),
            "must include a signal that tells a sender that has measured something from a new one: "
            + ", ".join(short_name(names[each]) for each in sure),
        )
    mode = mode_of(spec)
    if scale_free and mode and mode.needs_absolute_rules:
        kinds = rule_table_pb2.Rules.DESCRIPTOR.values_by_number
        yield Violation(
            child_path(path, "rules"),
            f"is {short_name(kinds[spec.rules])}, but must be absolute if search.mode is "
            f"{mode.name}",
        )


def _minimum_on_violations(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    simulated_ms = spec.search.simulated_seconds * 1000
    if 0 < simulated_ms <= spec.objective.minimum_on_ms:
        yield Violation(
            child_path(child_path(path, "objective"), "minimum_on_ms"),
            f"is {format_number(spec.objective.minimum_on_ms)}, but must be below "
            f"search.simulated_seconds, which is {format_number(simulated_ms)} ms",
        )


def _stop_violations(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    stop, mode = spec.stop, mode_of(spec)
    if mode is None:
        return
    names = [field.name for field in fields_of(stop)]
    is_empty = spec.HasField("stop") and not any(stop.HasField(name) for name in names)
    if not mode.lengths and is_empty:
        keys = ", ".join(names)
        yield Violation(
            path, f"must have at least one of the keys {keys} if search.mode is {mode.name}"
        )
    if mode.has_maximum_rules and stop.HasField("rules"):
        yield Violation(
            child_path(path, "rules"),
            f"is {stop.rules}, but must be left out if search.mode is {mode.name}; "
            "use search.maximum_rules",
        )


def _full_name(message: type[Message]) -> str:
    return str(descriptor_of(message).full_name)


_RULES: Final[dict[str, _Rule]] = {
    _full_name(spec_pb2.Distribution.Uniform): _continuous_range_violations,
    _full_name(spec_pb2.Distribution.LogUniform): _continuous_range_violations,
    _full_name(spec_pb2.Distribution.IntegerUniform): _ascending_rule("low", "high"),
    _full_name(spec_pb2.MeasurementModel.Jitter.LogNormal): _log_normal_violations,
    _full_name(spec_pb2.NetworkModel): _network_rule,
    _full_name(spec_pb2.LinkModel): link_violations,
    _full_name(spec_pb2.TrafficModel): _traffic_rule,
    _full_name(spec_pb2.ActionGrid): _action_grid_violations,
    _full_name(spec_pb2.ComponentRange): _component_range_violations,
    _full_name(spec_pb2.Search): _worker_schedule_violations,
    _full_name(spec_pb2.JointSearch): _joint_search_violations,
    _full_name(spec_pb2.Workers): _ascending_rule("minimum", "maximum"),
    _full_name(spec_pb2.DesignSpec): _specification_violations,
}


def check(message: Message, path: str = "", bounds: Bounds | None = None) -> Iterator[Violation]:
    """All violations in a complete message, which is at `path` of the specification."""
    bounds = bounds or Bounds()
    for field in fields_of(message):
        own_path, inner = field_path(path, field), bounds.within(field)
        if field.is_repeated:
            yield from _check_repeated(getattr(message, field.name), field, own_path, inner)
        elif message.HasField(field.name):
            yield from _check_value(getattr(message, field.name), field, own_path, inner)
        elif _must_be_present(message, field):
            yield Violation(own_path, "is missing")
    for names in oneofs_of(message):
        if not any(message.HasField(name) for name in names):
            yield Violation(path, f"must have one of the keys {', '.join(names)}")
    yield from broken_rules(message, path, bounds)


def _check_repeated(
    values: Any, field: FieldDescriptor, path: str, bounds: Bounds
) -> Iterator[Violation]:
    problem = entries_problem(field, len(values))
    if problem is not None:
        yield Violation(path, problem)
        return
    for index, value in enumerate(values):
        yield from _check_value(value, field, f"{path}[{index}]", bounds)
        if constraint_of(field).unique and value in values[:index]:
            shown = short_name(enum_of(field).values_by_number[value])
            yield Violation(f"{path}[{index}]", f"repeats {shown}, but the entries must differ")


def _check_value(
    value: Any, field: FieldDescriptor, path: str, bounds: Bounds
) -> Iterator[Violation]:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_MESSAGE:
            yield from check(value, path, bounds)
        case FieldDescriptor.CPPTYPE_ENUM:
            names = enum_names(enum_of(field))
            if value not in names.values():
                yield Violation(path, f"is {value}, but must be one of {', '.join(names)}")
        case FieldDescriptor.CPPTYPE_STRING:
            yield from _check_string(value, field, path)
        case FieldDescriptor.CPPTYPE_BOOL:
            pass
        case _:
            problem = bounds.problem(value)
            if problem is not None:
                yield Violation(path, problem)


def _check_string(value: str, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    constraint = constraint_of(field)
    if constraint.required and not value:
        yield Violation(path, "is missing")
    if constraint.max_length and len(value) > constraint.max_length:
        yield Violation(
            path,
            f"is {show(value)} with {len(value)} characters, "
            f"but must have at most {constraint.max_length}",
        )


def _must_be_present(message: Message, field: FieldDescriptor) -> bool:
    constraint = constraint_of(field)
    if constraint.required_unless:
        others = {each.name for each, _ in message.ListFields()}
        return others.isdisjoint(constraint.required_unless.split())
    if is_submessage(field):
        return constraint.required or bool(constraint.default)
    return not constraint.may_be_absent and not is_alternative(field)


MAXIMUM_BYTES = 1 << 20


def load_spec(
    path: str | os.PathLike[str], *, edition: int = NEWEST_EDITION
) -> spec_pb2.DesignSpec:
    """Reads, completes and checks the specification in a YAML file, or in a JSON file (*.json).

    `edition` applies if the file names none. Raises SpecError, or FileError if the file cannot be
    read.
    """
    return spec_from_tree(
        load_tree(path), os.fspath(path), edition=edition, files=Path(path).parent
    )


def load_single_table_spec(path: str | os.PathLike[str]) -> spec_pb2.DesignSpec:
    """Reads a specification as `load_spec` does. Raises SpecError if it designs several tables."""
    spec = load_spec(path)
    check_single_table(spec, source=os.fspath(path))
    return spec


def check_single_table(spec: spec_pb2.DesignSpec, *, source: str) -> None:
    """Raises SpecError if the specification designs several tables together."""
    if len(names := designed_tables(spec)) > 1:
        problem = (
            f"designs {len(names)} tables together ({', '.join(names)}), but must design one here"
        )
        raise SpecError(source, [Violation("", problem)])


def load_tree(path: str | os.PathLike[str]) -> Tree:
    """Parses a YAML or JSON file into a tree, unchecked. Raises SpecError or FileError."""
    source = os.fspath(path)
    text = _decode(read_file(path, limit=MAXIMUM_BYTES), source)
    return (read_json if source.endswith(".json") else read_yaml)(text, source)


def parse_spec(
    text: str | bytes,
    *,
    source: str = "the specification",
    json: bool = False,
    files: Files = None,
    keep: Callable[[LinkTrace], None] = keep_trace,
) -> spec_pb2.DesignSpec:
    """Reads, completes and checks the specification in YAML or JSON text.

    Errors call it `source`. `files` are the files that it may refer to, and `keep` is called with
    each link trace among them. Raises SpecError with all independent violations.
    """
    tree = (read_json if json else read_yaml)(_decode(text, source), source)
    return spec_from_tree(tree, source, files=files, keep=keep)


def spec_from_tree(
    tree: Tree,
    source: str = "the specification",
    *,
    edition: int = NEWEST_EDITION,
    files: Files = None,
    keep: Callable[[LinkTrace], None] = keep_trace,
) -> spec_pb2.DesignSpec:
    """Reads, completes and checks the specification that a tree describes; see `parse_spec`."""
    if tree is None:
        raise SpecError(source, [Violation("", "is empty")])
    spec = spec_pb2.DesignSpec()
    found = fill(spec, tree)
    complete(spec, edition=edition)
    if not found and _may_refer_to_files(spec):
        found = list(resolve_files(spec, files, keep))
    found += unrelated(check(spec), found)
    if found:
        raise SpecError(source, found)
    return spec


def _may_refer_to_files(spec: spec_pb2.DesignSpec) -> bool:
    """Whether there are links, which may have traces, or groups that run fixed tables."""
    return any(
        network.links or any(group.HasField("table") for group in network.sender_groups)
        for network in (spec.network, *(model.network for model in spec.models))
    )


def check_spec(spec: spec_pb2.DesignSpec, *, source: str = "the specification") -> None:
    """Checks a complete specification. Raises SpecError."""
    if found := list(check(spec)):
        raise SpecError(source, found)


def _decode(text: str | bytes, source: str) -> str:
    if len(text) > MAXIMUM_BYTES:
        raise SpecError(
            source, [Violation("", f"is too large; at most {MAXIMUM_BYTES} bytes are allowed")]
        )
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start})"
        raise SpecError(source, [Violation("", problem)]) from error


def unrelated(violations: Iterable[Violation], found: Iterable[Violation]) -> list[Violation]:
    """The violations that cannot be consequences of those already found."""
    known = [violation.path for violation in found]
    return [each for each in violations if not any(_related(each.path, path) for path in known)]


def _related(path: str, other: str) -> bool:
    """Whether one path is a prefix of the other, so that one error may cause the other."""
    shorter, longer = sorted((path, other), key=len)
    return not shorter or (longer + ".").startswith((f"{shorter}.", f"{shorter}["))
