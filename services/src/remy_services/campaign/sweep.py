"""A sweep: the values that one setting of a specification takes, as a text and as names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from remy_services.spec import SpecError, Violation
from remy_services.spec.errors import format_number, show
from remy_services.spec.text import Tree, read_yaml

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True)
class Sweep:
    """A field of the specification and its values, in the order to go through them."""

    #: As in "objective.delta".
    path: str
    values: tuple[Tree, ...]


def parse_sweep(text: str) -> Sweep:
    """The sweep in a text such as "objective.delta=0.1,1,10" or "signals=[rtt_ratio],[send_ewma]".

    Values are YAML, separated by commas. Raises SpecError, in which the text stands for the source.
    """
    path, equals, values = text.partition("=")
    if not equals or not path:
        raise _error(text, "must be PATH=VALUE,VALUE,...")
    tree = read_yaml(f"[{values}\n]", text)
    if not isinstance(tree, list) or not tree:
        raise _error(text, "has no value")
    for index, value in enumerate(tree):
        if value in tree[:index]:
            raise _error(text, f"has the value {value_name(value)} twice")
    return Sweep(path.strip(), tuple(tree))


def value_name(value: Tree) -> str:
    """A value as a part of a file's name: 0.1, send_ewma+rtt_ratio, uniform+10+20."""
    return _NOT_IN_NAMES.sub("-", "+".join(_words(value)))


def labels(sweeps: tuple[Sweep, ...]) -> list[str]:
    """What to call the swept fields: their last keys, or their paths where those are the same."""
    last = [sweep.path.rpartition(".")[2] for sweep in sweeps]
    if len(set(last)) < len(last):
        return [sweep.path for sweep in sweeps]
    return last


def _words(value: Tree) -> list[str]:
    match value:
        case list():
            return [word for item in value for word in _words(item)]
        case dict():
            return [word for key, item in value.items() for word in (key, *_words(item))]
        case str():
            return [value]
        case int() | float() if not isinstance(value, bool):
            return [format_number(value)]
    return [show(value)]


def _error(text: str, problem: str) -> SpecError:
    return SpecError("--sweep", [Violation(show(text), problem)])
