"""Writes specifications as YAML, computes their digests, and changes single values in them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import yaml
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from remy_farm.specification.modes import MODES
from remy_farm.specification.reading import (
    Tree,
    expand,
    key_of,
    plain_scalar,
    read_yaml,
    shorten,
    suggest_key,
)
from remy_farm.specification.schema import (
    Bounds,
    SpecError,
    Violation,
    alternatives,
    convert_value,
    descriptor_of,
    enum_of,
    fields_of,
    int_or_none,
    is_submessage,
    short_name,
    show,
    submessage_of,
)
from remy_proto.completion import (
    Default,
    default_message,
    default_of,
    rules,
    scalar,
    signals,
    simulated_seconds,
)
from remy_proto.v1 import spec_pb2
from remy_simulator.messages import is_scale_free

_LINE_WIDTH = 100
# Mappings below this depth may be on one line; a section such as `network` has a line per key.
_INLINE_DEPTH = 2
# Larger integers are not all exact as doubles.
_LARGEST_EXACT_INTEGER = 2**53


def to_yaml(spec: spec_pb2.DesignSpec) -> str:
    """Writes the specification as YAML that reads back as the same message, defaults included.

    The settings of search modes and rules that the specification does not use are left out if they
    have their defaults.
    """
    tree: Any = message_dict(spec)
    for mode in MODES:
        settings = mode.settings(spec.search)
        if mode.number != spec.search.mode and not _differences(settings, spec.edition, {}):
            del tree["search"][mode.name]
        elif not mode.needs_absolute_rules:
            _leave_out_unused_ranges(tree["search"].get(mode.name, {}), spec, mode.name)
    return as_yaml(tree)


def as_yaml(tree: Tree) -> str:
    """Writes a tree as YAML that reads back as the same tree."""
    text: str = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=_LINE_WIDTH)
    return text


# The keys of a search that bound the actions of absolute rules (False) and scale-free rules (True).
_RANGES = {
    False: ("window_increment", "intersend_ms"),
    True: ("window_increment_percent", "intersend_ratio"),
}


def _leave_out_unused_ranges(tree: dict[str, Any], spec: spec_pb2.DesignSpec, mode: str) -> None:
    search = getattr(spec.search, mode)
    changed = _differences(search, spec.edition, {})
    fields = search.DESCRIPTOR.fields_by_name
    for kind, names in _RANGES.items():
        for name in names:
            if kind != is_scale_free(spec.rules) and _key(fields[name]) not in changed:
                tree.pop(name, None)


#: Version of the defaults and of the searches, a part of every digest. Each change of a default or
#: of a search increments it, so that an older checkpoint is not continued by a different search.
DEFAULTS_AND_SEARCH_VERSION = 1


def content_digest(spec: spec_pb2.DesignSpec) -> str:
    """The SHA-256, in hexadecimal, of the content of a complete specification.

    It depends only on field numbers, on the values that differ from their defaults, and on
    DEFAULTS_AND_SEARCH_VERSION. It does not depend on field names, on the order of assignment, or
    on the encoding of the Protocol Buffers library.
    """
    canonical = json.dumps(
        [DEFAULTS_AND_SEARCH_VERSION, _differences_of_spec(spec)],
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


class _Inline(dict[str, "Tree"]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes YAML for `read_yaml`: YAML 1.2 scalars, and lists without mappings on one line."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if plain_scalar(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


def _represent_inline(dumper: yaml.SafeDumper, mapping: _Inline) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping, flow_style=True)


def _represent_list(dumper: yaml.SafeDumper, items: list[Tree]) -> yaml.SequenceNode:
    has_mappings = any(isinstance(item, dict) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=not has_mappings)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Inline, _represent_inline)
_Dumper.add_representer(list, _represent_list)


def message_dict(message: Message, depth: int = 0) -> Tree:
    """Converts a message to a tree that reads back as the same message."""
    tree: dict[str, Tree] = {}
    for field in fields_of(message):
        if getattr(message, field.name) if field.is_repeated else message.HasField(field.name):
            tree[key_of(field)] = convert_value(message, field, partial(_value_tree, depth))
    short = shorten(tree, descriptor_of(message))
    inline = depth >= _INLINE_DEPTH and all(_is_small(value) for value in tree.values())
    return _Inline(tree) if short is tree and inline else short


def _is_small(tree: Tree) -> bool:
    return not isinstance(tree, dict) or (isinstance(tree, _Inline) and len(tree) == 1)


def _value_tree(depth: int, field: FieldDescriptor, value: Any) -> Tree:
    if is_submessage(field):
        return message_dict(value, depth + 1)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return short_name(enum_of(field).values_by_number[value])
    if isinstance(value, float) and abs(value) <= _LARGEST_EXACT_INTEGER:
        whole = int_or_none(value)
        return value if whole is None else whole
    scalar: str | bool | int | float = value
    return scalar


def _differences_of_spec(spec: spec_pb2.DesignSpec) -> dict[str, Any]:
    """The specification's differences from its defaults.

    The default of `rules` depends on the mode.
    """
    content = _differences(spec, spec.edition, {})
    if spec.rules == rules(spec, spec.edition):
        content.pop(_key(_SPEC.fields_by_name["rules"]), None)
    return content


def _key(field: FieldDescriptor) -> str:
    """The key of a field in a digest: its number, as text because JSON keys are texts."""
    return str(field.number)


def _differences(message: Message, edition: int, inherited: Mapping[str, str]) -> dict[str, Any]:
    """The fields that differ from their defaults, by number, with enums as numbers.

    `inherited` holds the defaults that the field which contains the message declares.
    """
    result: dict[str, Any] = {}
    for field in fields_of(message):
        key = _key(field)
        default = inherited.get(field.name) or default_of(field, edition)
        value = getattr(message, field.name)
        if field.is_repeated:
            if isinstance(message, spec_pb2.DesignSpec) and field.name == "signals":
                default_values = signals(message.rules, edition)
            else:
                default_values = [scalar(field, text) for text in default or ()]
            if is_submessage(field):
                if value:
                    result[key] = [_differences(item, edition, {}) for item in value]
            elif list(value) != default_values:
                result[key] = [_plain(item) for item in value]
        elif not message.HasField(field.name):
            continue
        elif not is_submessage(field):
            if value != _default_scalar(message, field, default):
                result[key] = _plain(value)
        elif isinstance(default, dict):
            if content := _differences(value, edition, default):
                result[key] = content
        elif default is None or value != default_message(field, edition):
            result[key] = _differences(value, edition, {})
    return result


def _default_scalar(message: Message, field: FieldDescriptor, default: Default | None) -> Any:
    """The default of a scalar field; None if a missing field stays absent."""
    if isinstance(message, spec_pb2.Search) and field.name == "simulated_seconds":
        return simulated_seconds(message.mode)
    return scalar(field, default) if isinstance(default, str) else None


def _plain(value: Any) -> Any:
    # Adding zero turns -0.0 into the equal 0.0, so that equal values have equal digests.
    return value + 0.0 if isinstance(value, float) else value


_SPEC = descriptor_of(spec_pb2.DesignSpec)
_DISTRIBUTION = descriptor_of(spec_pb2.Distribution)
#: An entry of a list in a path, such as links[0].
_LIST_ENTRY = re.compile(r"([a-z_]+)\[([0-9]{1,4})\]")
_NUMBERS = frozenset(
    {
        FieldDescriptor.CPPTYPE_DOUBLE,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)


def parse_setting(text: str, name: str, *, source: str) -> tuple[str, Tree]:
    """Splits a setting such as "objective.delta=0.1" into its path and its value, which is YAML.

    Errors call the text `name`. Raises SpecError.
    """
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise SpecError(source, [Violation(name, f"is {show(text)}, but must be PATH=VALUE")])
    return path.strip(), read_yaml(value, name)


def vary(
    tree: Tree,
    path: str,
    value: Tree,
    *,
    source: str = "the specification",
    message: type[Message] = spec_pb2.DesignSpec,
) -> Tree:
    """A copy of a message's tree with `value` at a path such as "links[0].delay_ms".

    Alternatives that the path excludes are removed: a value for "network.rtt_ms.uniform" replaces
    any other distribution. The value is not checked; reading the tree does that. Raises SpecError,
    which names path and value, if the path does not exist in the schema.
    """

    def refuse(problem: str) -> NoReturn:
        shown = f"cannot be set to {show(value)}: {problem}"
        raise SpecError(source, [Violation(path or show(""), shown)])

    return _with(tree, descriptor_of(message), path.split("."), value, refuse)


def _with(
    tree: Tree,
    descriptor: Descriptor,
    keys: list[str],
    value: Tree,
    refuse: Callable[[str], NoReturn],
) -> Tree:
    step, *rest = keys
    entry = _LIST_ENTRY.fullmatch(step)
    key = entry[1] if entry else step
    field = _field_of(descriptor, key, in_list=entry is not None)
    if field is None:
        refuse(f"{show(key)} is not a known key; {suggest_key(descriptor, key)}")
    mapping = {} if tree is None else expand(tree, descriptor)
    if not isinstance(mapping, dict):
        refuse(f"the value above {show(key)} is {show(tree)}, which has no keys")
    inner = mapping.get(key)
    if entry is not None:
        items = inner if isinstance(inner, list) else []
        index = int(entry[2])
        if index >= len(items):
            refuse(f"{show(key)} has {len(items)} entries, counted from 0")
        item = _with(items[index], submessage_of(field), rest, value, refuse) if rest else value
        changed: Tree = [*items[:index], item, *items[index + 1 :]]
    elif not rest:
        changed = value
    elif field.message_type is None or field.is_repeated:
        refuse(f"{show(key)} holds a value and has no keys")
    else:
        changed = _with(inner, field.message_type, rest, value, refuse)
    return {**_without_alternatives(mapping, field), key: changed}


def _field_of(descriptor: Descriptor, key: str, *, in_list: bool = False) -> FieldDescriptor | None:
    """The field with a key. If two fields share it, `in_list` selects the repeated one."""
    fields = [each for each in descriptor.fields if key_of(each) == key]
    return next((each for each in fields if bool(each.is_repeated) == in_list), None) or (
        fields[0] if fields and not in_list else None
    )


def _without_alternatives(mapping: Mapping[str, Tree], field: FieldDescriptor) -> dict[str, Tree]:
    excluded = alternatives(field)
    return {name: old for name, old in mapping.items() if name not in excluded}


def merge_trees(base: Tree, override: Tree, message: Descriptor) -> Tree:
    """Merges two trees of a message; the keys of `override` replace those of `base`, recursively.

    Lists and quantities are replaced as a whole. Unknown keys are merged without a check.
    """
    lower, upper = expand(base, message), expand(override, message)
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return override
    merged = dict(lower)
    for key, value in upper.items():
        field = _field_of(message, key)
        if field is None:
            merged[key] = value
            continue
        merged = _without_alternatives(merged, field)
        is_section = is_submessage(field) and not field.is_repeated
        if key in merged and is_section and submessage_of(field) != _DISTRIBUTION:
            value = merge_trees(merged[key], value, submessage_of(field))
        merged[key] = value
    return merged


def bounds_at(path: str, message: Descriptor) -> Bounds | None:
    """The bounds of the number at a path such as "traffic.load" or "links[0].delay_ms".

    Returns None if the path does not lead to a number.
    """
    bounds, at = Bounds(), message
    *sections, last = path.split(".")
    for step in sections:
        entry = _LIST_ENTRY.fullmatch(step)
        field = _field_of(at, entry[1] if entry else step, in_list=entry is not None)
        if field is None or field.message_type is None or field.is_repeated != (entry is not None):
            return None
        bounds, at = bounds.within(field), field.message_type
    field = _field_of(at, last)
    if field is None or field.is_repeated:
        return None
    is_number = field.cpp_type in _NUMBERS or field.message_type == _DISTRIBUTION
    return bounds.within(field) if is_number else None
