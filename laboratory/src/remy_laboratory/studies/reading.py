"""Reading files of studies strictly: fields one by one.

Whatever is wrong is told in one sentence that names the field, what it is, and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, TypeVar

from remy_farm.specification import SpecError, Violation
from remy_farm.specification.reading import Tree, suggest
from remy_farm.specification.schema import Bounds, child_path, show

_MOST_RUNS = 100_000
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Amount:
    """How many runs, or which values: with --quick, and without."""

    quick: tuple[float, ...]
    full: tuple[float, ...]

    def of(self, *, quick: bool) -> tuple[float, ...]:
        """Those that are asked for."""
        return self.quick if quick else self.full


Check: TypeAlias = tuple[Callable[[float], bool], str]


def check_of(bounds: Bounds) -> Check:
    """Makes the check of a field of numbers within these bounds."""
    return bounds.allow, bounds.describe()


ABOVE = check_of(Bounds(minimum=0, exclusive_minimum=True))
FROM_0 = check_of(Bounds(minimum=0))


class Fields:
    """A mapping's fields, taken one by one; what is left at the end is a mistake."""

    def __init__(self, tree: Tree, source: str, path: str) -> None:
        self.source = source
        self.path = path
        if not isinstance(tree, dict):
            self.fail("", f"is {show(tree)}, but must be a mapping")
        self._tree = dict(tree)
        self._known: list[str] = []

    def fail(self, field: str, problem: str) -> NoReturn:
        """Raises SpecError."""
        path = child_path(self.path, field) if field else self.path or "the study"
        raise SpecError(self.source, [Violation(path, problem)])

    def take(self, field: str) -> Tree:
        """None where it is not given."""
        self._known.append(field)
        return self._tree.pop(field, None)

    def left(self) -> list[str]:
        """What is given and was not taken."""
        return list(self._tree)

    def text(self, field: str, usual: str | None = "") -> str:
        """Of one line."""
        value = self.take(field)
        if value is None and usual is not None:
            return usual
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            self.fail(field, f"is {show(value)}, but must be text")
        return " ".join(value.split())

    def number(self, field: str, check: Check = ABOVE) -> float | None:
        """None where it is not given."""
        value = self.take(field)
        return None if value is None else self.checked(field, value, check)

    def checked(self, field: str, value: Tree, check: Check) -> float:
        """A number that passes."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not isinstance(value, (int, float)) or not is_number or not check[0](value):
            self.fail(field, f"is {show(value)}, but must be {check[1]}")
        return value

    def word(self, field: str, kind: type[_Value], usual: _Value) -> _Value:
        """One of an enumeration."""
        words = [str(each) for each in kind]  # type: ignore[attr-defined]
        value = self.take(field)
        if value is None:
            return usual
        if value not in words:
            self.fail(field, f"is {show(value)}, but must be one of {', '.join(words)}")
        return kind(value)  # type: ignore[call-arg]

    def flag(self, field: str) -> bool:
        """False where it is not given."""
        value = self.take(field)
        if value is not None and not isinstance(value, bool):
            self.fail(field, f"is {show(value)}, but must be true or false")
        return bool(value)

    def parts(self, field: str) -> list[Fields]:
        """The mappings of a list."""
        value = self.take(field)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(field, f"is {show(value)}, but must be a list")
        path = child_path(self.path, field)
        return [Fields(tree, self.source, f"{path}[{place}]") for place, tree in enumerate(value)]

    def part(self, field: str) -> Fields | None:
        """A mapping; None where it is not given."""
        value = self.take(field)
        if value is None:
            return None
        return Fields(value, self.source, child_path(self.path, field))

    def end(self) -> None:
        """Refuses what is left."""
        for field in self._tree:
            self.fail(field, f"is not a known key; {suggest(field, self._known)}")


def amount_of(fields: Fields, field: str, check: Check, *, many: bool) -> Amount:
    """One for both lengths, or one for each. Raises SpecError."""
    tree = fields.take(field)
    by_length: dict[str, Tree] = {"quick": tree, "full": tree}
    if isinstance(tree, dict):
        if tree.keys() != by_length.keys():
            fields.fail(field, "must have the keys quick and full")
        by_length = tree
    found = {}
    for length, value in by_length.items():
        values = value if many and isinstance(value, list) else [value]
        if many and not isinstance(value, list):
            fields.fail(field, f"is {show(value)}, but must be a list of numbers")
        found[length] = tuple(fields.checked(field, each, check) for each in values)
        if not found[length]:
            fields.fail(field, "is empty, but must have a number")
    return Amount(found["quick"], found["full"])


PER_CENT = re.compile(r"([0-9.]+) ?%")
RUNS: Check = (lambda value: 1 <= value <= _MOST_RUNS and value == int(value), f"1 to {_MOST_RUNS}")
