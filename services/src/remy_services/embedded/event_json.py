"""Progress events as lines of JSON."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from remy_farm.v1 import progress_pb2


def to_line(event: progress_pb2.ProgressEvent) -> str:
    """One line, with the newline: fields by name, in the order of their declaration.

    Numbers are numbers, also those of 64 bits; zeros are written; what is absent is left out.
    """
    return json.dumps(_tree(event), allow_nan=False) + "\n"


def from_line(line: str | bytes) -> progress_pb2.ProgressEvent:
    """The inverse. Raises ValueError."""
    tree = json.loads(line)
    if not isinstance(tree, dict):
        raise ValueError("an event is a JSON object")
    try:
        return json_format.ParseDict(tree, progress_pb2.ProgressEvent())
    except json_format.ParseError as error:
        raise ValueError(str(error)) from error


def _tree(message: Message) -> dict[str, Any]:
    tree = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.is_repeated:
            tree[field.name] = [_value(field, item) for item in value]
        else:
            tree[field.name] = _value(field, value)
    return tree


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _tree(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value
