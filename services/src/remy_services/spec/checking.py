"""What is wrong with a complete message: one walk over the descriptors and their constraints."""

import math
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from remy_services.spec.constraints import Bounds, constraint_of, enum_names, short_name
from remy_services.spec.descriptors import enum_of, fields_of, is_submessage, oneofs_of
from remy_services.spec.errors import Violation, show
from remy_services.spec.reading import default_tree
from remy_services.spec.rules import broken_rules
from remy_services.spec.shapes import field_path


def check(message: Message, path: str = "", bounds: Bounds | None = None) -> Iterator[Violation]:
    """Everything that is wrong with a message in which the defaults have been filled in.

    A field that may be absent must be present if it is required or has a default.
    """
    bounds = bounds or Bounds()
    for field in fields_of(message):
        own_path, inner = field_path(path, field), bounds.within(field)
        if field.is_repeated:
            yield from _check_repeated(getattr(message, field.name), field, own_path, inner)
        elif not field.has_presence or message.HasField(field.name):
            yield from _check_value(getattr(message, field.name), field, own_path, inner)
        elif _must_be_present(field):
            yield Violation(own_path, "is missing")
    for names in oneofs_of(message):
        if not any(message.HasField(name) for name in names):
            yield Violation(path, f"must have one of the keys {', '.join(names)}")
    yield from broken_rules(message, path, bounds)


def _check_repeated(
    values: Any, field: FieldDescriptor, path: str, bounds: Bounds
) -> Iterator[Violation]:
    constraint = constraint_of(field)
    most = constraint.max_items or math.inf
    if not constraint.min_items <= len(values) <= most:
        limits = Bounds(minimum=constraint.min_items, maximum=most).describe_range()
        yield Violation(path, f"has {len(values)} entries, but must have {limits}")
        return
    for index, value in enumerate(values):
        yield from _check_value(value, field, f"{path}[{index}]", bounds)
        if constraint.unique and value in values[:index]:
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


def _must_be_present(field: FieldDescriptor) -> bool:
    optional_message = is_submessage(field) and field.containing_oneof is None
    return optional_message or constraint_of(field).required or default_tree(field) is not None
