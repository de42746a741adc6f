"""Reads YAML or JSON text into messages: parses the text, expands short forms, fills in fields."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NoReturn, TypeAlias

import yaml
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from remy_farm.specification.schema import (
    Bounds,
    SpecError,
    Violation,
    child_path,
    descriptor_of,
    entries_problem,
    enum_names,
    enum_of,
    is_submessage,
    oneofs_of,
    show,
)
from remy_farm.specification.senders import parse_sender
from remy_proto.completion import constraint_of
from remy_proto.v1 import constraints_pb2, spec_pb2

# Part 1: parses YAML and JSON text, also from untrusted users, into plain trees.
#
# Scalars follow YAML 1.2's core schema, so `1e9` is a number and `on` is text. Aliases, tags,
# several documents, duplicate keys and deep nesting are refused, because they make a text ambiguous
# or let a small text grow large.


Scalar: TypeAlias = bool | int | float | str | None
Tree: TypeAlias = "Scalar | list[Tree] | dict[str, Tree]"

_MAXIMUM_DEPTH = 32
# Integers with more digits become floating-point numbers, because int() takes quadratic time.
_LONGEST_INTEGER = 40

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOLEAN = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = {
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


def plain_scalar(text: str) -> Scalar:
    """Converts an unquoted scalar to its value."""
    if _NULL.fullmatch(text):
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if _INTEGER.fullmatch(text):
        return integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return _NOT_FINITE.get(text, text)


def read_yaml(text: str, source: str) -> Tree:
    """Parses a YAML document; errors call it `source`. Raises SpecError."""
    try:
        return _YamlReader(text, source).document()
    except yaml.YAMLError as error:
        _fail(source, f"is not YAML ({_yaml_problem(error)})")
    except (OverflowError, ValueError):
        # PyYAML converts the numbers in escapes and directives without checking their size.
        _fail(source, "is not YAML (an escape or a directive has a number that is too large)")


def read_json(text: str, source: str) -> Tree:
    """Parses a JSON document; errors call it `source`. Raises SpecError."""

    def unique(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
        result: dict[str, Tree] = {}
        for key, value in pairs:
            if key in result:
                _fail(source, f"names the key {show(key)} twice in one mapping")
            result[key] = value
        return result

    try:
        tree: Tree = json.loads(
            text, object_pairs_hook=unique, parse_int=integer, parse_constant=float
        )
    except json.JSONDecodeError as error:
        _fail(source, f"is not JSON ({error.msg}, line {error.lineno}, column {error.colno})")
    except RecursionError:
        _fail(source, f"is nested too deeply; at most {_MAXIMUM_DEPTH} levels are allowed")
    return tree


class _YamlReader:
    """Builds the tree from the parser's events, which takes time linear in the text's length."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.SafeLoader)

    def document(self) -> Tree:
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        tree = self._node(self._next(), "", 0)
        self._next()
        if not isinstance(self._next(), yaml.StreamEndEvent):
            _fail(self._source, "holds several documents, but must be one")
        return tree

    def _next(self) -> Any:
        return next(self._events)

    def _node(self, event: Any, path: str, depth: int) -> Tree:
        if isinstance(event, yaml.AliasEvent):
            self._refuse(
                event, path, f"is an alias of {show(event.anchor)}, and aliases are not allowed"
            )
        if event.tag is not None:
            self._refuse(event, path, f"has the tag {show(event.tag)}, and tags are not allowed")
        if depth > _MAXIMUM_DEPTH:
            _fail(
                self._source, f"is nested too deeply; at most {_MAXIMUM_DEPTH} levels are allowed"
            )
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth)
        text: str = event.value
        return plain_scalar(text) if event.implicit[0] else text

    def _sequence(self, path: str, depth: int) -> list[Tree]:
        items: list[Tree] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, f"{path}[{len(items)}]", depth + 1))
        return items

    def _mapping(self, path: str, depth: int) -> dict[str, Tree]:
        result: dict[str, Tree] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
                self._refuse(event, path, "has a key that is not plain text")
            key: str = event.value
            if key in result:
                self._refuse(event, child_path(path, key), "is given twice")
            result[key] = self._node(self._next(), child_path(path, key), depth + 1)
        return result

    def _refuse(self, event: Any, path: str, problem: str) -> NoReturn:
        _fail(self._source, f"{problem} (line {event.start_mark.line + 1})", path)


def integer(text: str) -> int | float:
    """Converts a whole number of any length; a long one becomes a floating-point number."""
    return int(text) if len(text) <= _LONGEST_INTEGER else float(text)


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem}, line {mark.line + 1}, column {mark.column + 1}"
    return " ".join(str(error).split())


def _fail(source: str, problem: str, path: str = "") -> NoReturn:
    raise SpecError(source, [Violation(path, problem)])


# Part 2: short forms, which YAML files may use instead of a message's full mapping, such as a bare
# number for a distribution.
#
# `expand` and `shorten` are inverse to each other. Paths in error messages omit the keys that a
# short form omits, so that a value has the same path in either form.


_DISTRIBUTION = descriptor_of(spec_pb2.Distribution)
_VALUE_LIST = descriptor_of(spec_pb2.Distribution.ValueList)
_RANGES = frozenset(
    descriptor_of(kind).full_name
    for kind in (
        spec_pb2.Distribution.Uniform,
        spec_pb2.Distribution.LogUniform,
        spec_pb2.Distribution.IntegerUniform,
    )
)
_BUFFER = descriptor_of(spec_pb2.Buffer)
_FIXED_TABLE = descriptor_of(spec_pb2.FixedTable)
_GROUP = descriptor_of(spec_pb2.GroupModel).full_name

_ELIDED = frozenset(
    field.full_name
    for field in (_DISTRIBUTION.fields_by_name["exact"], _VALUE_LIST.fields_by_name["values"])
)

_FORMS = {
    _DISTRIBUTION.full_name: "a number, a list of numbers or a mapping",
    _VALUE_LIST.full_name: "a list of numbers",
    _BUFFER.full_name: "infinite, a number or a mapping",
    _GROUP: "text such as cubic=2 or a mapping",
    _FIXED_TABLE.full_name: "a file's name or a mapping",
    descriptor_of(spec_pb2.MeasurementModel).full_name: "realistic or a mapping",
    **dict.fromkeys(_RANGES, "[low, high] or a mapping"),
}


NETWORK = descriptor_of(spec_pb2.NetworkModel).full_name
_LINK = descriptor_of(spec_pb2.LinkModel).full_name
_TRAFFIC = descriptor_of(spec_pb2.TrafficModel).full_name
_MEASUREMENT = descriptor_of(spec_pb2.MeasurementModel).full_name

#: Current keys by message and former key. A former key is refused, and the error names the new one.
RENAMED_KEYS: Final = {
    (descriptor_of(spec_pb2.DesignSpec).full_name, "traffic"): "network.traffic",
    (descriptor_of(spec_pb2.WeightedModel).full_name, "traffic"): "network.traffic",
    (NETWORK, "link_rate_mbps"): "rate_mbps",
    (NETWORK, "link_mbps"): "rate_mbps",
    (NETWORK, "groups"): "senders",
    (NETWORK, "loss"): "loss_probability",
    (NETWORK, "buffer_packets"): "buffer.packets",
    (NETWORK, "on_ms"): "traffic.exponential_time.mean_ms",
    (NETWORK, "on_bytes"): "traffic.exponential_bytes.mean_bytes",
    (NETWORK, "on_icsi_extra_bytes"): "traffic.empirical_bytes.extra_bytes",
    (NETWORK, "off_ms"): "traffic.mean_off_ms",
    (_LINK, "buffer_packets"): "buffer.packets",
    (_GROUP, "body"): "transport",
    (_GROUP, "sender"): "protocol or table",
    (_TRAFFIC, "pareto_bytes"): "flow_lengths",
    (_MEASUREMENT, "exponential_jitter_mean_ms"): "jitter.exponential_mean_ms",
    (_MEASUREMENT, "uniform_jitter_maximum_ms"): "jitter.uniform_maximum_ms",
    (_MEASUREMENT, "log_normal_jitter"): "jitter.log_normal",
    (_MEASUREMENT, "reordering_probability"): "reordering.probability",
    (_MEASUREMENT, "reordering_delay_ms"): "reordering.delay_ms",
}

#: A sender option has one of these characters after the name of the protocol.
_OPTION_CHARACTERS: Final = frozenset(",=:")
#: The command that runs a network file.
_NETWORK_COMMAND: Final = "remy-farm simulate --network FILE"
#: Key that names a preset in a mapping. The mapping's other keys override those of the preset.
_PRESET: Final = "preset"


@cache
def presets_of(message: Descriptor) -> dict[str, Tree]:
    """The trees of the presets that a message declares, by name."""
    options: Any = message.GetOptions()
    presets = options.Extensions[constraints_pb2.preset]
    return {each.name: read_yaml(each.value, each.name) for each in presets}


def expand(tree: Tree, message: Descriptor) -> Tree:
    """Expands a short form of a message to its mapping; returns other trees unchanged.

    Raises ValueError if the tree is a sender option that cannot be parsed.
    """
    if isinstance(tree, str) and message.full_name == _FIXED_TABLE.full_name:
        return {"path": tree}
    if isinstance(tree, str) and message.full_name == _GROUP:
        return _sender_keys(tree)
    if isinstance(tree, str):
        return presets_of(message).get(tree, tree)
    if isinstance(tree, dict) and message.full_name == _GROUP:
        return _with_protocol_settings(tree)
    if isinstance(tree, dict) and _PRESET in tree:
        preset = presets_of(message).get(str(tree[_PRESET]))
        rest = {key: value for key, value in tree.items() if key != _PRESET}
        return {**preset, **rest} if isinstance(preset, dict) else tree
    number_or_list = isinstance(tree, int | float | list) and not isinstance(tree, bool)
    match message.full_name:
        case _DISTRIBUTION.full_name if number_or_list:
            return {"list" if isinstance(tree, list) else "exact": tree}
        case _VALUE_LIST.full_name if isinstance(tree, list):
            return {"values": tree}
        case _BUFFER.full_name if number_or_list:
            return {"packets": tree}
        case name if name in _RANGES and isinstance(tree, list) and len(tree) == 2:
            return {"low": tree[0], "high": tree[1]}
    return tree


def _with_protocol_settings(tree: dict[str, Tree]) -> dict[str, Tree]:
    """Moves transport settings from a group's `protocol` to the keys `transport` and `rtt_ms`.

    `protocol: newreno,minimum_rto_ms=200` has such a setting.
    """
    text = tree.get("protocol")
    if not isinstance(text, str) or not _OPTION_CHARACTERS.intersection(text):
        return tree
    try:
        parsed = _sender_keys(text)
    except ValueError:
        # The check of the protocol reports what is wrong with it.
        return tree
    if "table" in parsed:
        raise ValueError(f"has the protocol {show(text)}; the key of a RemyCC's file is table")
    if parsed["count"] != 1:
        raise ValueError(
            f"has the protocol {show(text)}; the key for the number of senders is count"
        )
    moved = parsed.keys() & {"transport", "rtt_ms"}
    if twice := sorted(moved & tree.keys()):
        raise ValueError(
            f"has the protocol {show(text)} and {twice[0]}, but must give it only once"
        )
    if not moved:
        return tree
    return {**parsed, **tree, "protocol": parsed["protocol"]}


def _sender_keys(text: str) -> dict[str, Tree]:
    """The keys that a sender option such as `cubic,rtt_ms=20=2` stands for."""
    sender = parse_sender(text)
    return {**sender.network_keys(), "count": sender.count, "name": sender.name}


def shorten(tree: dict[str, Tree], message: Descriptor) -> Tree:
    """The short form of a complete mapping, or the mapping itself if it has none."""
    match message.full_name:
        case _DISTRIBUTION.full_name if "exact" in tree:
            return tree["exact"]
        case _VALUE_LIST.full_name:
            return tree["values"]
        case _BUFFER.full_name if "infinite" in tree:
            return "infinite"
        case name if name in _RANGES:
            return [tree["low"], tree["high"]]
    return tree


def short_forms(message: Descriptor) -> set[str]:
    """The short forms of a message, except presets: "number", "numbers", "pair" (of ends), "text".

    JSON schemas are generated from them.
    """
    name = message.full_name
    messages_by_form = {
        "number": (_DISTRIBUTION.full_name, _BUFFER.full_name),
        "numbers": (_DISTRIBUTION.full_name, _VALUE_LIST.full_name),
        "pair": _RANGES,
        "text": (_FIXED_TABLE.full_name, _GROUP),
    }
    return {form for form, names in messages_by_form.items() if name in names}


def fields_by_key(message: Descriptor) -> dict[str, list[FieldDescriptor]]:
    """The fields of a message by key, in proto order; two fields may share a key."""
    by_key: dict[str, list[FieldDescriptor]] = {}
    for field in message.fields:
        by_key.setdefault(key_of(field), []).append(field)
    return by_key


def forms(message: Descriptor) -> str:
    """Describes the forms in which a message may be written, for error messages."""
    return f"{_FORMS.get(message.full_name, 'a mapping')} with the keys {_keys(message)}"


def field_path(path: str, field: FieldDescriptor) -> str:
    """The path of a field of the message at `path`."""
    return path if field.full_name in _ELIDED else child_path(path, key_of(field))


def key_of(field: FieldDescriptor) -> str:
    """The key of a field in a tree."""
    return constraint_of(field).list_of or str(field.name)


def _keys(message: Descriptor) -> str:
    return ", ".join(keys(message))


def keys(message: Descriptor) -> list[str]:
    """The keys that a message's mapping may have, in the order of the proto file."""
    return list(dict.fromkeys(map(key_of, message.fields)))


def _by_field(mapping: dict[str, Tree], message: Descriptor) -> dict[str, Tree]:
    """The mapping with field names as its keys.

    Where two fields share a key, a list of anything but numbers belongs to the repeated field.
    """
    by_field = dict(mapping)
    for field in message.fields:
        key = constraint_of(field).list_of
        given = mapping.get(key) if key else None
        if isinstance(given, list) and not all(_is_number(item) for item in given):
            by_field[field.name] = by_field.pop(key)
    return by_field


def _is_number(tree: Tree) -> bool:
    return isinstance(tree, int | float) and not isinstance(tree, bool)


# Part 3: fills a message from a tree, without adding defaults, in one walk over the descriptors.


def fill(message: Message, tree: Tree, *, needs_alternatives: bool = True) -> list[Violation]:
    """Fills an empty message from a tree, and returns the violations it finds.

    Violations are unknown keys, wrong types and numbers out of range and, with
    `needs_alternatives`, a oneof without a value. Everything else is filled in, so that the caller
    can check it as well.
    """
    reader = _Reader(needs_alternatives)
    reader.message(message, tree, "", Bounds())
    return reader.violations


class _Reader:
    def __init__(self, needs_alternatives: bool) -> None:
        self.violations: list[Violation] = []
        self._needs_alternatives = needs_alternatives

    def message(self, message: Message, tree: Tree, path: str, bounds: Bounds) -> None:
        descriptor = descriptor_of(message)
        try:
            mapping = expand(tree, descriptor)
        except ValueError as error:
            self._refuse(
                path, str(error) if isinstance(tree, dict) else f"is {show(tree)}: {error}"
            )
            return
        if not isinstance(mapping, dict):
            self._refuse(path, f"is {show(tree)}, but must be {forms(descriptor)}")
            return
        known = keys(descriptor)
        unknown = [key for key in mapping if key not in {*known, *descriptor.fields_by_name}]
        mapping = _by_field(mapping, descriptor)
        for key in unknown:
            problem = f"is not a known key; {suggest_key(descriptor, key)}"
            if key == _PRESET and (presets := presets_of(descriptor)):
                problem = f"is {show(mapping[key])}, but must be {' or '.join(presets)}"
            self._refuse(child_path(path, key), problem)
        for field in descriptor.fields:
            self._field(message, field, mapping, path, bounds)
        for names in oneofs_of(message):
            given = [name for name in names if name in mapping]
            if len(given) > 1:
                self._refuse(path, f"has {' and '.join(given)}, but must have one of them")
            elif not given and not unknown and self._needs_alternatives:
                self._refuse(path, f"must have one of the keys {', '.join(names)}")

    def _field(
        self,
        message: Message,
        field: FieldDescriptor,
        mapping: dict[str, Tree],
        path: str,
        outer: Bounds,
    ) -> None:
        if field.name not in mapping:
            return
        tree = mapping[field.name]
        own_path, bounds = field_path(path, field), outer.within(field)
        if tree is None:
            self._refuse(own_path, "is empty; give it a value or leave the key out")
        elif field.is_repeated:
            self._repeated(message, field, tree, own_path, bounds)
        elif is_submessage(field):
            submessage = getattr(message, field.name)
            submessage.SetInParent()
            self.message(submessage, tree, own_path, bounds)
        elif (value := self._scalar(field, tree, own_path, bounds)) is not None:
            setattr(message, field.name, value)

    def _repeated(
        self, message: Message, field: FieldDescriptor, tree: Tree, path: str, bounds: Bounds
    ) -> None:
        if not isinstance(tree, list):
            self._refuse(path, f"is {show(tree)}, but must be a list")
            return
        problem = entries_problem(field, len(tree))
        if problem is not None and not tree:
            # A message cannot tell an empty list from a missing one, which would take the default.
            self._refuse(path, problem)
        values = getattr(message, field.name)
        for index, item in enumerate(tree):
            item_path = f"{path}[{index}]"
            if is_submessage(field):
                self.message(values.add(), item, item_path, bounds)
                continue
            if field.cpp_type == FieldDescriptor.CPPTYPE_STRING and type(item) is int:
                # A route may name a link by its number.
                item = str(item)
            if (value := self._scalar(field, item, item_path, bounds)) is not None:
                values.append(value)

    def _scalar(self, field: FieldDescriptor, tree: Tree, path: str, bounds: Bounds) -> Any:
        """The field's value; None if the tree holds no such value."""
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_ENUM:
                return self._enum(field, tree, path)
            case FieldDescriptor.CPPTYPE_STRING:
                return self._string(tree, path)
            case FieldDescriptor.CPPTYPE_BOOL:
                if isinstance(tree, bool):
                    return tree
                self._refuse(path, f"is {show(tree)}, but must be true or false")
                return None
            case _:
                return self._number(field, tree, path, bounds)

    def _number(
        self, field: FieldDescriptor, tree: Tree, path: str, bounds: Bounds
    ) -> float | None:
        problem = bounds.problem(tree)
        if problem is not None:
            self._refuse(path, problem)
            return None
        assert isinstance(tree, int | float)
        if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
            # Adding zero turns -0.0 into 0.0, because YAML writes both as 0.
            return float(tree) + 0.0
        return int(tree)

    def _enum(self, field: FieldDescriptor, tree: Tree, path: str) -> int | None:
        enum = enum_of(field)
        names = enum_names(enum)
        full = {value.name: value.number for value in enum.values if value.number != 0}
        number = {**names, **full}.get(tree) if isinstance(tree, str) else None
        if number is None:
            self._refuse(path, f"is {show(tree)}, but must be one of {', '.join(names)}")
        return number

    def _string(self, tree: Tree, path: str) -> str | None:
        if isinstance(tree, str) and tree.isprintable():
            return tree
        self._refuse(path, f"is {show(tree)}, but must be text")
        return None

    def _refuse(self, path: str, problem: str) -> None:
        self.violations.append(Violation(path, problem))


def suggest_key(message: Descriptor, key: str) -> str:
    """Suggests a replacement for an unknown key of a message."""
    current = RENAMED_KEYS.get((message.full_name, key))
    if current:
        return f"it is {current} now"
    if "network" in message.fields_by_name and key in keys(descriptor_of(spec_pb2.NetworkModel)):
        return f"it belongs under network, or in a network file ({_NETWORK_COMMAND})"
    return suggest(key, keys(message))


def suggest(key: str, known: list[str]) -> str:
    """Suggests the most similar known key, or lists all of them."""
    match difflib.get_close_matches(key, known, n=1):
        case [name]:
            return f"did you mean {name}?"
        case _:
            return f"allowed are {', '.join(known)}" if known else "no key is allowed here"
