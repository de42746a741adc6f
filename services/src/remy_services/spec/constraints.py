"""What the proto files declare about a field, as reading, checking and printing use it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor, EnumValueDescriptor, FieldDescriptor

from remy_farm.v1 import constraints_pb2
from remy_services.spec.errors import format_number, int_or_none, show

_INTEGER_RANGES: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def constraint_of(field: FieldDescriptor) -> constraints_pb2.Constraint:
    """The constraint declared for a field; empty if there is none."""
    extensions: Any = field.GetOptions().Extensions
    constraint: constraints_pb2.Constraint = extensions[constraints_pb2.constraint]
    return constraint


@dataclass(frozen=True)
class Bounds:
    """Which numbers are allowed."""

    unit: str = "1"
    minimum: float = -math.inf
    exclusive_minimum: bool = False
    maximum: float = math.inf
    integral: bool = False

    def within(self, field: FieldDescriptor) -> Bounds:
        """What is allowed in a field of a message that these bounds hold for: both at once."""
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
        """What is allowed, as in "a number above 0 and at most 1000000 ms"."""
        kind = "a whole number" if self.integral else "a number"
        unit = "" if self.unit == "1" else f" {self.unit}"
        limits = self.describe_range()
        return f"{kind} {limits}{unit}" if limits else f"a finite number{unit}"

    def describe_range(self) -> str:
        """The range alone; empty if every number is allowed."""
        limits = []
        if math.isfinite(self.minimum):
            word = "above" if self.exclusive_minimum else "at least"
            limits.append(f"{word} {format_number(self.minimum)}")
        if math.isfinite(self.maximum):
            limits.append(f"at most {format_number(self.maximum)}")
        return " and ".join(limits)

    def problem(self, value: object) -> str | None:
        """What is wrong with a value, as a Violation says it; None if it is a number allowed."""
        if isinstance(value, int | float) and not isinstance(value, bool) and self.allow(value):
            return None
        return f"is {show(value)}, but must be {self.describe()}"


@cache
def short_name(value: EnumValueDescriptor) -> str:
    """An enum value as a specification spells it: SIGNAL_SEND_EWMA is send_ewma."""
    return str(value.name).removeprefix(_prefix(value.type)).lower()


def enum_names(enum: EnumDescriptor) -> dict[str, int]:
    """The numbers of an enum's values by short name, without UNSPECIFIED."""
    return {short_name(value): value.number for value in enum.values if value.number != 0}


def _prefix(enum: EnumDescriptor) -> str:
    unspecified: str = enum.values_by_number[0].name
    return unspecified.removesuffix("UNSPECIFIED")
