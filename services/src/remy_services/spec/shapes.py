"""Where YAML may be shorter than the messages: a bare number for a distribution, and the like.

`expand` and `shorten` are inverse to each other. Keys that may be left out are left out of the
paths in error messages, too, so that a path reads the same however the value was written.
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from remy_farm.v1 import spec_pb2
from remy_services.spec.descriptors import descriptor_of
from remy_services.spec.errors import child_path
from remy_services.spec.text import Tree

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

_ELIDED = frozenset(
    field.full_name
    for field in (_DISTRIBUTION.fields_by_name["exact"], _VALUE_LIST.fields_by_name["values"])
)

_FORMS = {
    _DISTRIBUTION.full_name: "a number, a list of numbers or a mapping",
    _VALUE_LIST.full_name: "a list of numbers",
    _BUFFER.full_name: "infinite, a number or a mapping",
    **dict.fromkeys(_RANGES, "[low, high] or a mapping"),
}


def expand(tree: Tree, message: Descriptor) -> Tree:
    """The mapping that a shorthand for a message stands for; anything else as it is."""
    number_or_list = isinstance(tree, int | float | list) and not isinstance(tree, bool)
    match message.full_name:
        case _DISTRIBUTION.full_name if number_or_list:
            return {"list" if isinstance(tree, list) else "exact": tree}
        case _VALUE_LIST.full_name if isinstance(tree, list):
            return {"values": tree}
        case _BUFFER.full_name if tree == "infinite":
            return {"infinite": {}}
        case _BUFFER.full_name if number_or_list:
            return {"packets": tree}
        case name if name in _RANGES and isinstance(tree, list) and len(tree) == 2:
            return {"low": tree[0], "high": tree[1]}
    return tree


def shorten(tree: dict[str, Tree], message: Descriptor) -> Tree:
    """The shorthand for a complete mapping, where there is one."""
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


def forms(message: Descriptor) -> str:
    """How a message may be written, for error messages and the reference."""
    return f"{_FORMS.get(message.full_name, 'a mapping')} with the keys {_keys(message)}"


def field_path(path: str, field: FieldDescriptor) -> str:
    """The path of a field of the message at `path`."""
    return path if field.full_name in _ELIDED else child_path(path, field.name)


def _keys(message: Descriptor) -> str:
    return ", ".join(field.name for field in message.fields)
