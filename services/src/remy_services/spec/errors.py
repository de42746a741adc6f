"""What is wrong with a specification."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# More would not help whoever reads the message.
_MOST_SHOWN = 8
_LONGEST_VALUE = 60
# Beyond it a power of ten reads more easily.
_LONGEST_WHOLE_NUMBER = 1e12
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}")


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong, and where.

    `path` names the field, as in "network.rtt_ms.uniform.low" or "signals[1]"; it is empty where
    the document as a whole is meant. `problem` goes on from it: "is -5, but must be ...".
    """

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path or 'the specification'} {self.problem}"


class SpecError(Exception):
    """A specification that cannot be used; its text is one sentence for the user.

    `source` is the file's name (or another name of where the specification came from), and
    `violations` holds what is wrong, at least one entry.
    """

    def __init__(self, source: str, violations: Iterable[Violation]) -> None:
        self.source = source
        self.violations = tuple(violations)
        shown = [str(violation) for violation in self.violations[:_MOST_SHOWN]]
        hidden = len(self.violations) - len(shown)
        if hidden:
            shown.append(f"and {hidden} more")
        super().__init__(f"{source}: {'; '.join(shown)}")


def child_path(path: str, key: str) -> str:
    """The path of a mapping's entry."""
    name = key if _PLAIN_KEY.fullmatch(key) else show(key)
    return f"{path}.{name}" if path else name


def show(value: object) -> str:
    """A value as an error message quotes it: short, and on one line."""
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
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def format_number(value: float) -> str:
    """A number for people: whole numbers without a fraction, large powers of ten as such."""
    if isinstance(value, int):
        return str(value)
    if value == int_or_none(value) and abs(value) < _LONGEST_WHOLE_NUMBER:
        return str(int(value))
    short = f"{value:g}"
    return (short if float(short) == value else repr(value)).replace("e+", "e")


def int_or_none(value: float) -> int | None:
    """The number as an integer, if it is one."""
    whole = isinstance(value, int) or value.is_integer()
    return int(value) if whole else None
