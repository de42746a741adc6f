"""Protocol Buffers messages as --json prints them."""

from __future__ import annotations

import math
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.v1 import job_pb2
from remy_services.spec import to_yaml
from remy_services.spec.descriptors import enum_of, fields_of
from remy_services.spec.text import read_yaml


def message_tree(message: Message) -> Any:
    """Fields by name, in the order of their declaration, every one of them.

    Numbers are numbers, names of enums are in lower case without the enum's name in front, times
    are RFC 3339 in UTC, and what is not set is None.
    """
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    return {field.name: _field(message, field) for field in fields_of(message)}


def job_tree(job: job_pb2.Job) -> dict[str, Any]:
    """A job; its specification as docs/spec.md has it, and None where it was not sent."""
    tree = {field.name: _field(job, field) for field in fields_of(job) if field.name != "spec"}
    has_spec = job.HasField("spec")
    tree["spec"] = read_yaml(to_yaml(job.spec), "the specification") if has_spec else None
    return tree


def enum_name(kind: EnumDescriptor, number: int) -> str | None:
    """As in "running"; None for the value that stands for none."""
    if number == 0:
        return None
    value = kind.values_by_number.get(number)
    if value is None:
        return f"unknown_{number}"
    prefix = kind.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return str(value.name).removeprefix(prefix).lower()


def _field(message: Message, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        return [_value(field, item) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(field, value)


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return message_tree(value)
    if field.enum_type is not None:
        return enum_name(enum_of(field), value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
