"""The schema of specifications: fields, their bounds, and the violations that checks report."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    EnumValueDescriptor,
    FieldDescriptor,
)
from google.protobuf.message import Message

from remy_proto.completion import constraint_of, is_alternative


def descriptor_of(message: Message | type[Message]) -> Descriptor:
    """The descriptor of a message or of its type."""
    return cast(Descriptor, message.DESCRIPTOR)


def enum_of(field: FieldDescriptor) -> EnumDescriptor:
    """The enum of an enum field."""
    return cast(EnumDescriptor, field.enum_type)


def submessage_of(field: FieldDescriptor) -> Descriptor:
    """The message of a message field."""
    return cast(Descriptor, field.message_type)


def fields_of(message: Message | type[Message]) -> Sequence[FieldDescriptor]:
    """The fields of a message in the order of the proto file."""
    return descriptor_of(message).fields


def is_submessage(field: FieldDescriptor) -> bool:
    """Whether the field holds one or more messages."""
    return bool(field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE)


def oneofs_of(message: Message) -> list[list[str]]:
    """The names of the fields of each oneof, except the synthetic oneofs of `optional` fields."""
    names = [
        (oneof.name, [field.name for field in oneof.fields])
        for oneof in descriptor_of(message).oneofs
    ]
    return [fields for name, fields in names if fields != [name.removeprefix("_")]]


def alternatives(field: FieldDescriptor) -> set[str]:
    """The other fields of the message that exclude this field, because they replace it."""
    oneof = field.containing_oneof
    excluded = {each.name for each in oneof.fields} if oneof is not None else set()
    shared = constraint_of(field).in_place_of or field.name
    message = cast(Descriptor, field.containing_type)
    for each in message.fields:
        if shared in (each.name, constraint_of(each).in_place_of):
            excluded.add(each.name)
    return excluded - {field.name}


# Violations that the text of a SpecError lists.
_SHOWN_VIOLATIONS = 8
# Characters of a value that an error message quotes.
_SHOWN_CHARACTERS = 60
# Larger numbers are shown as powers of ten.
_LARGEST_PLAIN_NUMBER = 1e12
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}")


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong with a specification.

    `path` names the field, such as "network.rtt_ms.uniform.low" or "signals[1]"; it is empty for
    the document as a whole. `problem` completes the sentence that the path begins: "is -5, but must
    be ...".
    """

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path or 'the specification'} {self.problem}"


class SpecError(Exception):
    """A specification is invalid. The text is one sentence for the user.

    `source` names where the specification came from, such as a file, and `violations` holds at
    least one violation.
    """

    def __init__(self, source: str, violations: Iterable[Violation]) -> None:
        self.source = source
        self.violations = tuple(violations)
        shown = [str(violation) for violation in self.violations[:_SHOWN_VIOLATIONS]]
        hidden = len(self.violations) - len(shown)
        if hidden:
            shown.append(f"and {hidden} more")
        super().__init__(f"{source}: {'; '.join(shown)}")


def child_path(path: str, key: str) -> str:
    """The path of the entry `key` in the mapping at `path`."""
    name = key if _PLAIN_KEY.fullmatch(key) else show(key)
    return f"{path}.{name}" if path else name


def show(value: object) -> str:
    """Formats a value for an error message: short, and on one line."""
    match value:
        case None:
            return "empty"
        case bool():
            return "true" if value else "false"
        case float():
            return format_number(value)
        case dict():
            return "a mapping"
        case list():
            return "a list"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def format_number(value: float) -> str:
    """Formats a number for people: no fraction if it is whole, a power of ten if it is large."""
    if isinstance(value, int):
        return str(value)
    if value == int_or_none(value) and abs(value) < _LARGEST_PLAIN_NUMBER:
        return str(int(value))
    short = f"{value:g}"
    return (short if float(short) == value else repr(value)).replace("e+", "e")


def int_or_none(value: float) -> int | None:
    """The number as an integer; None if it is not whole."""
    whole = isinstance(value, int) or value.is_integer()
    return int(value) if whole else None


_INTEGER_RANGES: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


@dataclass(frozen=True)
class Bounds:
    """The numbers that a field allows, with their unit."""

    unit: str = "1"
    minimum: float = -math.inf
    exclusive_minimum: bool = False
    maximum: float = math.inf
    integral: bool = False

    def within(self, field: FieldDescriptor) -> Bounds:
        """The bounds of a field of a message to which these bounds apply: their intersection."""
        declared = constraint_of(field)
        minimum, exclusive = self.minimum, self.exclusive_minimum
        if declared.HasField("minimum") and (declared.minimum, declared.exclusive_minimum) > (
            minimum,
            exclusive,
        ):
            minimum, exclusive = declared.minimum, declared.exclusive_minimum
        maximum = self.maximum
        if declared.HasField("maximum"):
            maximum = min(maximum, declared.maximum)
        integral = self.integral or declared.integral
        if field.cpp_type in _INTEGER_RANGES:
            smallest, largest = _INTEGER_RANGES[field.cpp_type]
            integral = True
            if minimum < smallest:
                minimum, exclusive = smallest, False
            maximum = min(maximum, largest)
        return Bounds(declared.unit or self.unit, minimum, exclusive, maximum, integral)

    def allow(self, value: float) -> bool:
        """Whether the number is allowed."""
        return (
            math.isfinite(value)
            and (value > self.minimum if self.exclusive_minimum else value >= self.minimum)
            and value <= self.maximum
            and (not self.integral or int_or_none(value) is not None)
        )

    def describe(self) -> str:
        """Describes what is allowed, such as "a number above 0 and at most 1000000 ms"."""
        kind = "a whole number" if self.integral else "a number"
        unit = "" if self.unit == "1" else f" {self.unit}"
        limits = self.describe_range()
        return f"{kind} {limits}{unit}" if limits else f"a finite number{unit}"

    def describe_range(self) -> str:
        """Describes the range only, such as "at least 1"; empty if every number is allowed."""
        limits = []
        if math.isfinite(self.minimum):
            word = "above" if self.exclusive_minimum else "at least"
            limits.append(f"{word} {format_number(self.minimum)}")
        if math.isfinite(self.maximum):
            limits.append(f"at most {format_number(self.maximum)}")
        return " and ".join(limits)

    def problem(self, value: object) -> str | None:
        """Describes what is wrong with a value for a Violation; returns None if it is allowed."""
        if isinstance(value, int | float) and not isinstance(value, bool) and self.allow(value):
            return None
        return f"is {show(value)}, but must be {self.describe()}"


def is_unset(message: Message, field: FieldDescriptor) -> bool:
    """Whether a field is absent where that differs from a zero, an empty text or false."""
    if field.is_repeated or message.HasField(field.name):
        return False
    is_message = field.message_type is not None
    return is_message or is_alternative(field) or constraint_of(field).may_be_absent


def convert_value(
    message: Message, field: FieldDescriptor, convert: Callable[[FieldDescriptor, Any], Any]
) -> Any:
    """Converts the value of a field, or each value of a repeated field."""
    value = getattr(message, field.name)
    return [convert(field, item) for item in value] if field.is_repeated else convert(field, value)


def entries_problem(field: FieldDescriptor, count: int) -> str | None:
    """Describes a wrong number of entries for a Violation; returns None if it is allowed."""
    constraint = constraint_of(field)
    fewest, most = constraint.min_items, constraint.max_items or math.inf
    if fewest <= count <= most:
        return None
    limits = Bounds(minimum=fewest, maximum=most).describe_range()
    return f"has {count} entries, but must have {limits}"


@cache
def short_name(value: EnumValueDescriptor) -> str:
    """The name of an enum value in specifications: SIGNAL_SEND_EWMA is send_ewma."""
    return str(value.name).removeprefix(_prefix(value.type)).lower()


def enum_names(enum: EnumDescriptor) -> dict[str, int]:
    """The numbers of an enum's values by short name, without UNSPECIFIED."""
    return {short_name(value): value.number for value in enum.values if value.number != 0}


def _prefix(enum: EnumDescriptor) -> str:
    unspecified: str = enum.values_by_number[0].name
    return unspecified.removesuffix("UNSPECIFIED")
