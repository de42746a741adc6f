"""Strict readers for study files.

Every error is one sentence that names the field, its value and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, TypeVar

from remy_farm.specification import SpecError, Violation
from remy_farm.specification.reading import Tree, suggest
from remy_farm.specification.schema import Bounds, child_path, show

_MAX_RUNS = 100_000
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Amount:
    """Numbers of runs, or values of a sweep: one choice for --quick, one for a full run."""

    quick: tuple[float, ...]
    full: tuple[float, ...]

    def select(self, *, quick: bool) -> tuple[float, ...]:
        """Returns the numbers for --quick or for a full run."""
        return self.quick if quick else self.full


#: A predicate for a number, and a description of the numbers that it accepts.
Check: TypeAlias = tuple[Callable[[float], bool], str]


def bounds_check(bounds: Bounds) -> Check:
    """Returns a check for numbers within these bounds."""
    return bounds.allow, bounds.describe()


POSITIVE_NUMBER = bounds_check(Bounds(minimum=0, exclusive_minimum=True))
NOT_NEGATIVE_NUMBER = bounds_check(Bounds(minimum=0))


class Fields:
    """The fields of a mapping. Each is taken once; a field that remains at the end is an error."""

    def __init__(self, tree: Tree, source: str, path: str) -> None:
        self.source = source
        self.path = path
        if not isinstance(tree, dict):
            self.fail("", f"is {show(tree)}, but must be a mapping")
        self._tree = dict(tree)
        self._known: list[str] = []

    def fail(self, field: str, problem: str) -> NoReturn:
        """Raises SpecError for a field."""
        path = child_path(self.path, field) if field else self.path or "the study"
        raise SpecError(self.source, [Violation(path, problem)])

    def take(self, field: str) -> Tree:
        """Removes a field and returns its value; None if it is absent."""
        self._known.append(field)
        return self._tree.pop(field, None)

    def remaining(self) -> list[str]:
        """Returns the names of fields that were not taken."""
        return list(self._tree)

    def text(self, field: str, default: str | None = "") -> str:
        """Takes a text field as one line. A field without a default is required."""
        value = self.take(field)
        if value is None and default is not None:
            return default
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            self.fail(field, f"is {show(value)}, but must be text")
        return " ".join(value.split())

    def number(self, field: str, check: Check = POSITIVE_NUMBER) -> float | None:
        """Takes a number; None if it is absent."""
        value = self.take(field)
        return None if value is None else self.check_number(field, value, check)

    def check_number(self, field: str, value: Tree, check: Check) -> float:
        """Returns the value if it is a number that passes the check. Raises SpecError."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not isinstance(value, (int, float)) or not is_number or not check[0](value):
            self.fail(field, f"is {show(value)}, but must be {check[1]}")
        return value

    def choice(self, field: str, kind: type[_Value], default: _Value) -> _Value:
        """Takes a member of an enumeration."""
        names = [str(each) for each in kind]  # type: ignore[attr-defined]
        value = self.take(field)
        if value is None:
            return default
        if value not in names:
            self.fail(field, f"is {show(value)}, but must be one of {', '.join(names)}")
        return kind(value)  # type: ignore[call-arg]

    def flag(self, field: str) -> bool:
        """Takes a boolean; False if it is absent."""
        value = self.take(field)
        if value is not None and not isinstance(value, bool):
            self.fail(field, f"is {show(value)}, but must be true or false")
        return bool(value)

    def mappings(self, field: str) -> list[Fields]:
        """Takes a list of mappings; an empty list if it is absent."""
        value = self.take(field)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(field, f"is {show(value)}, but must be a list")
        path = child_path(self.path, field)
        return [Fields(tree, self.source, f"{path}[{index}]") for index, tree in enumerate(value)]

    def mapping(self, field: str) -> Fields | None:
        """Takes a mapping; None if it is absent."""
        value = self.take(field)
        if value is None:
            return None
        return Fields(value, self.source, child_path(self.path, field))

    def reject_remaining(self) -> None:
        """Raises SpecError if a field was not taken."""
        for field in self._tree:
            self.fail(field, f"is not a known key; {suggest(field, self._known)}")


def read_amount(fields: Fields, field: str, check: Check, *, many: bool) -> Amount:
    """Reads an amount: one value, or a mapping with `quick` and `full`.

    With `many`, each value is a list of numbers. Raises SpecError.
    """
    tree = fields.take(field)
    by_mode: dict[str, Tree] = {"quick": tree, "full": tree}
    if isinstance(tree, dict):
        if tree.keys() != by_mode.keys():
            fields.fail(field, "must have the keys quick and full")
        by_mode = tree
    amounts = {}
    for length, value in by_mode.items():
        values = value if many and isinstance(value, list) else [value]
        if many and not isinstance(value, list):
            fields.fail(field, f"is {show(value)}, but must be a list of numbers")
        amounts[length] = tuple(fields.check_number(field, each, check) for each in values)
        if not amounts[length]:
            fields.fail(field, "is empty, but must have at least one number")
    return Amount(amounts["quick"], amounts["full"])


PERCENTAGE = re.compile(r"([0-9.]+) ?%")
RUNS: Check = (lambda value: 1 <= value <= _MAX_RUNS and value == int(value), f"1 to {_MAX_RUNS}")
