"""Writing specifications: as text, as a digest of their content, and with one value changed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import yaml
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from remy_farm.v1 import spec_pb2
from remy_services.specification.reading import Tree, expand, nearest, plain_scalar, shorten
from remy_services.specification.schema import (
    SpecError,
    Violation,
    descriptor_of,
    enum_of,
    fields_of,
    int_or_none,
    is_submessage,
    short_name,
    show,
)

# A complete specification as text, and as a name for its content.


_LINE_WIDTH = 100
# A section (network, objective, ...) has a line for each of its keys.
_INLINE_DEPTH = 2
# Above this a double may stand for several integers.
_LARGEST_EXACT_INTEGER = 2**53


def to_yaml(spec: spec_pb2.DesignSpec) -> str:
    """The specification as a file that reads back as this message, every default written out."""
    text: str = yaml.dump(_tree(spec), Dumper=_Dumper, sort_keys=False, width=_LINE_WIDTH)
    return text


def content_digest(spec: spec_pb2.DesignSpec) -> str:
    """The SHA-256, in hexadecimal, of what a specification says.

    It depends on field names and values alone: not on the order of assignment, nor on how (or in
    which version) the Protocol Buffers library encodes them.
    """
    canonical = json.dumps(
        [descriptor_of(spec).full_name, _canonical(spec)],
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


class _Inline(dict[str, "Tree"]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes what read_yaml reads back: scalars by YAML 1.2, lists on one line."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if plain_scalar(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


def _represent_inline(dumper: yaml.SafeDumper, mapping: _Inline) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping, flow_style=True)


def _represent_list(dumper: yaml.SafeDumper, items: list[Tree]) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Inline, _represent_inline)
_Dumper.add_representer(list, _represent_list)


def _tree(message: Message, depth: int = 0) -> Tree:
    """A message as the tree that is read as this message."""
    tree: dict[str, Tree] = {}
    for field in fields_of(message):
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.is_repeated:
            tree[field.name] = [_value_tree(item, field, depth) for item in value]
        else:
            tree[field.name] = _value_tree(value, field, depth)
    short = shorten(tree, descriptor_of(message))
    inline = depth >= _INLINE_DEPTH and all(_is_small(value) for value in tree.values())
    return _Inline(tree) if short is tree and inline else short


def _is_small(tree: Tree) -> bool:
    return not isinstance(tree, dict) or (isinstance(tree, _Inline) and len(tree) == 1)


def _value_tree(value: Any, field: FieldDescriptor, depth: int) -> Tree:
    if is_submessage(field):
        return _tree(value, depth + 1)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return short_name(enum_of(field).values_by_number[value])
    if isinstance(value, float) and abs(value) <= _LARGEST_EXACT_INTEGER:
        whole = int_or_none(value)
        return value if whole is None else whole
    scalar: str | bool | int | float = value
    return scalar


def _canonical(message: Message) -> dict[str, Any]:
    """Every field that has a value, by name; doubles stay doubles, enums are their numbers."""
    result: dict[str, Any] = {}
    for field in fields_of(message):
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.is_repeated:
            result[field.name] = [_canonical_value(item, field) for item in value]
        else:
            result[field.name] = _canonical_value(value, field)
    return result


def _canonical_value(value: Any, field: FieldDescriptor) -> Any:
    if is_submessage(field):
        return _canonical(value)
    # Adding zero turns -0.0 into 0.0, which is equal to it.
    return value + 0.0 if isinstance(value, float) else value


# A specification with one of its values changed.


_SPEC = descriptor_of(spec_pb2.DesignSpec)


def vary(tree: Tree, path: str, value: Tree, *, source: str = "the specification") -> Tree:
    """The tree of a specification with `value` at `path`, as in "objective.delta".

    Everything else stays as it is, but for alternatives that the path excludes: a value for
    "network.rtt_ms.uniform" takes the place of any other distribution. Whether the value may be
    there shows when the tree is read. Raises SpecError, naming path and value, if the path leads
    nowhere.
    """
    keys = path.split(".")
    return _with(tree, _SPEC, keys, value, _Place(source, path, value))


class _Place:
    """What is to be said of a path that leads nowhere."""

    def __init__(self, source: str, path: str, value: Tree) -> None:
        self._source = source
        self._path = path
        self._value = value

    def error(self, problem: str) -> SpecError:
        shown = f"cannot be set to {show(self._value)}: {problem}"
        return SpecError(self._source, [Violation(self._path or show(""), shown)])


def _with(tree: Tree, descriptor: Descriptor, keys: list[str], value: Tree, place: _Place) -> Tree:
    key, *rest = keys
    field = descriptor.fields_by_name.get(key)
    if field is None:
        known = [each.name for each in descriptor.fields]
        raise place.error(f"{show(key)} is not a known key; {nearest(key, known)}")
    mapping = {} if tree is None else expand(tree, descriptor)
    if not isinstance(mapping, dict):
        raise place.error(f"what is above {show(key)} is {show(tree)}, which has no keys")
    if not rest:
        changed = value
    elif field.message_type is None or field.is_repeated:
        raise place.error(f"{show(key)} holds a value and has no keys")
    else:
        changed = _with(mapping.get(key), field.message_type, rest, value, place)
    oneof = field.containing_oneof
    excluded = {each.name for each in oneof.fields} - {key} if oneof is not None else set()
    return {**{name: old for name, old in mapping.items() if name not in excluded}, key: changed}
