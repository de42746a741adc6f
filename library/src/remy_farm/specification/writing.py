"""Writing specifications: as text, as a digest of their content, and with one value changed."""

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
    meant,
    plain_scalar,
    read_yaml,
    shorten,
)
from remy_farm.specification.schema import (
    Bounds,
    SpecError,
    Violation,
    alternatives,
    converted,
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
# A section (network, objective, ...) has a line for each of its keys.
_INLINE_DEPTH = 2
# Above this a double may stand for several integers.
_LARGEST_EXACT_INTEGER = 2**53


def to_yaml(spec: spec_pb2.DesignSpec) -> str:
    """The specification as a file that reads back as this message, every default written out.

    The options of other modes and rules than its own are left out where they stand at their
    defaults.
    """
    tree: Any = message_tree(spec)
    for mode in MODES:
        settings = mode.settings(spec.search)
        if mode.number != spec.search.mode and not _essence(settings, spec.edition, {}):
            del tree["search"][mode.name]
        elif not mode.needs_absolute_rules:
            _leave_out_other_ranges(tree["search"].get(mode.name, {}), spec, mode.name)
    return as_yaml(tree)


def as_yaml(tree: Tree) -> str:
    """A tree as a file that is read as this tree."""
    text: str = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=_LINE_WIDTH)
    return text


# The ranges of a search's actions by whether they are for scale-free rules.
_RANGES = {
    False: ("window_increment", "intersend_ms"),
    True: ("window_increment_percent", "intersend_ratio"),
}


def _leave_out_other_ranges(tree: dict[str, Any], spec: spec_pb2.DesignSpec, mode: str) -> None:
    search = getattr(spec.search, mode)
    changed = _essence(search, spec.edition, {})
    fields = search.DESCRIPTOR.fields_by_name
    for kind, names in _RANGES.items():
        for name in names:
            if kind != is_scale_free(spec.rules) and _key(fields[name]) not in changed:
                tree.pop(name, None)


#: Version of the defaults and of the searches, which every digest of a specification holds. Every
#: change of a default or of a search raises it, so that no checkpoint of before goes on in another
#: search.
DEFAULTS_AND_SEARCH_VERSION = 1


def content_digest(spec: spec_pb2.DesignSpec) -> str:
    """The SHA-256, in hexadecimal, of what a complete specification says.

    It depends on the numbers of fields, on the values that differ from their defaults, and on
    DEFAULTS_AND_SEARCH_VERSION alone: not on the names of fields, on the order of assignment, nor
    on how (or in which version) the Protocol Buffers library encodes them.
    """
    canonical = json.dumps(
        [DEFAULTS_AND_SEARCH_VERSION, _deviations(spec)],
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
    has_mappings = any(isinstance(item, dict) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=not has_mappings)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Inline, _represent_inline)
_Dumper.add_representer(list, _represent_list)


def message_tree(message: Message, depth: int = 0) -> Tree:
    """A message as the tree that is read as this message."""
    tree: dict[str, Tree] = {}
    for field in fields_of(message):
        if getattr(message, field.name) if field.is_repeated else message.HasField(field.name):
            tree[key_of(field)] = converted(message, field, partial(_value_tree, depth))
    short = shorten(tree, descriptor_of(message))
    inline = depth >= _INLINE_DEPTH and all(_is_small(value) for value in tree.values())
    return _Inline(tree) if short is tree and inline else short


def _is_small(tree: Tree) -> bool:
    return not isinstance(tree, dict) or (isinstance(tree, _Inline) and len(tree) == 1)


def _value_tree(depth: int, field: FieldDescriptor, value: Any) -> Tree:
    if is_submessage(field):
        return message_tree(value, depth + 1)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return short_name(enum_of(field).values_by_number[value])
    if isinstance(value, float) and abs(value) <= _LARGEST_EXACT_INTEGER:
        whole = int_or_none(value)
        return value if whole is None else whole
    scalar: str | bool | int | float = value
    return scalar


def _deviations(spec: spec_pb2.DesignSpec) -> dict[str, Any]:
    """The essence of a specification, whose rules have a default that depends on the mode."""
    content = _essence(spec, spec.edition, {})
    if spec.rules == rules(spec, spec.edition):
        content.pop(_key(_SPEC.fields_by_name["rules"]), None)
    return content


def _key(field: FieldDescriptor) -> str:
    """What a field is called in a digest: JSON has texts alone as keys."""
    return str(field.number)


def _essence(message: Message, edition: int, inherited: Mapping[str, str]) -> dict[str, Any]:
    """Every field that does not stand at its default, by number; doubles stay doubles, enums are
    their numbers. `inherited` are defaults that the field which holds the message declares."""
    result: dict[str, Any] = {}
    for field in fields_of(message):
        key = _key(field)
        default = inherited.get(field.name) or default_of(field, edition)
        value = getattr(message, field.name)
        if field.is_repeated:
            if isinstance(message, spec_pb2.DesignSpec) and field.name == "signals":
                usual = signals(message.rules, edition)
            else:
                usual = [scalar(field, word) for word in default or ()]
            if is_submessage(field):
                if value:
                    result[key] = [_essence(item, edition, {}) for item in value]
            elif list(value) != usual:
                result[key] = [_plain(item) for item in value]
        elif not message.HasField(field.name):
            continue
        elif not is_submessage(field):
            if value != _usual(message, field, default):
                result[key] = _plain(value)
        elif isinstance(default, dict):
            if content := _essence(value, edition, default):
                result[key] = content
        elif default is None or value != default_message(field, edition):
            result[key] = _essence(value, edition, {})
    return result


def _usual(message: Message, field: FieldDescriptor, default: Default | None) -> Any:
    """What a number or word is if it is left out; None if it is absent then."""
    if isinstance(message, spec_pb2.Search) and field.name == "simulated_seconds":
        return simulated_seconds(message.mode)
    return scalar(field, default) if isinstance(default, str) else None


def _plain(value: Any) -> Any:
    # Adding zero turns -0.0 into 0.0, which is equal to it.
    return value + 0.0 if isinstance(value, float) else value


_SPEC = descriptor_of(spec_pb2.DesignSpec)
_DISTRIBUTION = descriptor_of(spec_pb2.Distribution)
#: An entry of a list in a path, as links[0].
_PLACE = re.compile(r"([a-z_]+)\[([0-9]{1,4})\]")
_NUMBERS = frozenset(
    {
        FieldDescriptor.CPPTYPE_DOUBLE,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)


def parse_setting(text: str, name: str, *, source: str) -> tuple[str, Tree]:
    """Path and value of a setting such as "objective.delta=0.1", whose value is YAML.

    Raises SpecError, which calls the text `name`.
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
    """The tree of a message with `value` at `path`, as in "objective.delta" or "links[0].delay_ms".

    Everything else stays as it is, but for alternatives that the path excludes: a value for
    "network.rtt_ms.uniform" takes the place of any other distribution. Whether the value may be
    there shows when the tree is read. Raises SpecError, naming path and value, if the path leads
    nowhere.
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
    place = _PLACE.fullmatch(step)
    key = place[1] if place else step
    field = _field_of(descriptor, key, in_list=place is not None)
    if field is None:
        refuse(f"{show(key)} is not a known key; {meant(descriptor, key)}")
    mapping = {} if tree is None else expand(tree, descriptor)
    if not isinstance(mapping, dict):
        refuse(f"what is above {show(key)} is {show(tree)}, which has no keys")
    inner = mapping.get(key)
    if place is not None:
        items = inner if isinstance(inner, list) else []
        number = int(place[2])
        if number >= len(items):
            refuse(f"{show(key)} has {len(items)} entries, counted from 0")
        one = _with(items[number], submessage_of(field), rest, value, refuse) if rest else value
        changed: Tree = [*items[:number], one, *items[number + 1 :]]
    elif not rest:
        changed = value
    elif field.message_type is None or field.is_repeated:
        refuse(f"{show(key)} holds a value and has no keys")
    else:
        changed = _with(inner, field.message_type, rest, value, refuse)
    return {**_without_alternatives(mapping, field), key: changed}


def _field_of(descriptor: Descriptor, key: str, *, in_list: bool = False) -> FieldDescriptor | None:
    """The field that a key means; where two share it the list's, if one is asked for."""
    found = [each for each in descriptor.fields if key_of(each) == key]
    return next((each for each in found if bool(each.is_repeated) == in_list), None) or (
        found[0] if found and not in_list else None
    )


def _without_alternatives(mapping: Mapping[str, Tree], field: FieldDescriptor) -> dict[str, Tree]:
    excluded = alternatives(field)
    return {name: old for name, old in mapping.items() if name not in excluded}


def laid_over(below: Tree, above: Tree, message: Descriptor) -> Tree:
    """One description of a message with what another says in place of it, key by key.

    Keys that no field has are laid over likewise, as they are. Lists and quantities are replaced
    whole.
    """
    lower, upper = expand(below, message), expand(above, message)
    if not isinstance(lower, dict) or not isinstance(upper, dict):
        return above
    whole = dict(lower)
    for key, value in upper.items():
        field = _field_of(message, key)
        if field is None:
            whole[key] = value
            continue
        whole = _without_alternatives(whole, field)
        is_section = is_submessage(field) and not field.is_repeated
        if key in whole and is_section and submessage_of(field) != _DISTRIBUTION:
            value = laid_over(whole[key], value, submessage_of(field))
        whole[key] = value
    return whole


def quantity_of(path: str, message: Descriptor) -> Bounds | None:
    """The bounds of the number at a path of a message, as "traffic.load" or "links[0].delay_ms".

    None where the path holds no number.
    """
    bounds, at = Bounds(), message
    *sections, last = path.split(".")
    for step in sections:
        place = _PLACE.fullmatch(step)
        field = _field_of(at, place[1] if place else step, in_list=place is not None)
        if field is None or field.message_type is None or field.is_repeated != (place is not None):
            return None
        bounds, at = bounds.within(field), field.message_type
    field = _field_of(at, last)
    if field is None or field.is_repeated:
        return None
    is_number = field.cpp_type in _NUMBERS or field.message_type == _DISTRIBUTION
    return bounds.within(field) if is_number else None
