"""The bytes of every message kind: what is on the wire, in stores and in files.

For each message of `proto/remy_farm/v1` there is a line for each of its fields, with its number and
type and the bytes of the message that has this field only, and a digest of the one that has all of
them. Values depend on nothing but a field's number and type.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import Message

import remy_proto.v1
from tests.pinned.records import Record, digest

_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: -70,
    FieldDescriptor.CPPTYPE_INT64: -(2**40) - 7,
    FieldDescriptor.CPPTYPE_UINT32: 70_000,
    FieldDescriptor.CPPTYPE_UINT64: 2**63 + 7,
}
_TYPES: Final = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}
#: How deep messages within messages are filled; some hold themselves.
_DEEPEST: Final = 3


def _files() -> Iterator[FileDescriptor]:
    for module in sorted(pkgutil.iter_modules(remy_proto.v1.__path__), key=lambda each: each.name):
        if module.name.endswith("_pb2"):
            yield importlib.import_module(f"remy_proto.v1.{module.name}").DESCRIPTOR


def _messages(file: FileDescriptor) -> Iterator[Descriptor]:
    """Those of the file with those within them, but for what stands for a map's entry."""
    waiting = list(file.message_types_by_name.values())
    while waiting:
        found = waiting.pop(0)
        waiting += found.nested_types
        if not found.GetOptions().map_entry:
            yield found


def _fixed_value(field: FieldDescriptor, depth: int) -> Any:
    """Told from the value of the field's neighbours, and never its type's default."""
    if field.cpp_type in _INTEGERS:
        return _INTEGERS[field.cpp_type] - field.number
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        assert field.enum_type is not None
        return max(field.enum_type.values_by_number)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return True
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return field.number + 0.1
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes([0, 255, field.number % 256])
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return f"{field.name} \u00e4"
    assert field.message_type is not None
    return _filled(field.message_type, depth + 1)


def _set(message: Message, field: FieldDescriptor, depth: int) -> None:
    """Sets one field, a repeated one to two elements."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        key, value = (_fixed_value(entry[name], depth) for name in ("key", "value"))
        if isinstance(value, Message):
            getattr(message, field.name)[key].CopyFrom(value)
        else:
            getattr(message, field.name)[key] = value
        return
    value = _fixed_value(field, depth)
    if field.is_repeated:
        getattr(message, field.name).extend([value, value])
    elif isinstance(value, Message):
        getattr(message, field.name).CopyFrom(value)
    else:
        setattr(message, field.name, value)


def _filled(kind: Descriptor, depth: int) -> Message:
    """Every field set; of those that exclude each other the last one stays."""
    message = message_factory.GetMessageClass(kind)()
    if depth < _DEEPEST:
        for field in kind.fields:
            _set(message, field, depth)
    return message


def _encoded(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def _declaration(field: FieldDescriptor) -> str:
    label = "repeated " if field.is_repeated else ""
    where = ""
    if (union := field.containing_oneof) is not None:
        # What protoc makes of `optional` is a union of one, named for it.
        is_optional = union.name == f"_{field.name}"
        label, where = ("optional ", "") if is_optional else ("", f" in {union.name}")
    of = field.message_type or field.enum_type
    return f"{label}{of.full_name if of is not None else _TYPES[field.type]}{where}"


def _field(kind: Descriptor, field: FieldDescriptor) -> str:
    message = message_factory.GetMessageClass(kind)()
    _set(message, field, depth=1)
    data = _encoded(message)
    shown = data.hex() if len(data) <= 24 else f"sha256 {digest(data)[:32]}"
    return f"{field.number}: {_declaration(field)} = {shown}"


def _check_round_trip(message: Message) -> None:
    again = type(message)()
    again.ParseFromString(_encoded(message))
    assert again == message


def _all_messages(_: Path) -> Any:
    found: dict[str, Any] = {}
    for file in _files():
        for kind in _messages(file):
            full = _filled(kind, depth=0)
            _check_round_trip(full)
            found[kind.full_name] = {
                **{field.name: _field(kind, field) for field in kind.fields},
                "(all)": digest(_encoded(full)),
            }
        enums = [*file.enum_types_by_name.values()]
        enums += [each for kind in _messages(file) for each in kind.enum_types]
        for enum in enums:
            found[enum.full_name] = {value.name: value.number for value in enum.values}
        for service in file.services_by_name.values():
            found[service.full_name] = {
                method.name: f"{'stream ' * method.client_streaming}{method.input_type.name}"
                f" -> {'stream ' * method.server_streaming}{method.output_type.name}"
                for method in service.methods
            }
    return found


RECORDS: Final = (Record("messages", _all_messages),)
