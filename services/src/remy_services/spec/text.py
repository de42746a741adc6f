"""YAML and JSON text as plain trees, hostile text included.

Scalars follow YAML 1.2's core schema (so `1e9` is a number, and `on` is text). What could make a
small text large or ambiguous is refused: aliases, tags, several documents, duplicate keys, depth.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn, TypeAlias

import yaml

from remy_services.spec.errors import SpecError, Violation, child_path, show

Scalar: TypeAlias = bool | int | float | str | None
Tree: TypeAlias = "Scalar | list[Tree] | dict[str, Tree]"

_MAXIMUM_DEPTH = 32
# Longer integers become floating-point numbers, as conversion to int takes quadratic time.
_LONGEST_INTEGER = 40

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOLEAN = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = {
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


def plain_scalar(text: str) -> Scalar:
    """What an unquoted scalar means."""
    if _NULL.fullmatch(text):
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return _NOT_FINITE.get(text, text)


def read_yaml(text: str, source: str) -> Tree:
    """The tree of a YAML document. Raises SpecError."""
    try:
        return _YamlReader(text, source).document()
    except yaml.YAMLError as error:
        _fail(source, f"is not YAML ({_yaml_problem(error)})")


def read_json(text: str, source: str) -> Tree:
    """The tree of a JSON document. Raises SpecError."""

    def unique(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
        result: dict[str, Tree] = {}
        for key, value in pairs:
            if key in result:
                _fail(source, f"names the key {show(key)} twice in one mapping")
            result[key] = value
        return result

    try:
        tree: Tree = json.loads(
            text, object_pairs_hook=unique, parse_int=_integer, parse_constant=float
        )
    except json.JSONDecodeError as error:
        _fail(source, f"is not JSON ({error.msg}, line {error.lineno}, column {error.colno})")
    except RecursionError:
        _fail(source, f"is nested too deeply; at most {_MAXIMUM_DEPTH} levels are allowed")
    return tree


class _YamlReader:
    """Builds the tree from the parser's events, which cost no more than the text is long."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.SafeLoader)

    def document(self) -> Tree:
        self._next()
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        tree = self._node(self._next(), "", 0)
        self._next()
        if not isinstance(self._next(), yaml.StreamEndEvent):
            _fail(self._source, "holds several documents, but must be one")
        return tree

    def _next(self) -> Any:
        return next(self._events)

    def _node(self, event: Any, path: str, depth: int) -> Tree:
        if isinstance(event, yaml.AliasEvent):
            self._refuse(
                event, path, f"is an alias of {show(event.anchor)}, and aliases are not allowed"
            )
        if event.tag is not None:
            self._refuse(event, path, f"has the tag {show(event.tag)}, and tags are not allowed")
        if depth > _MAXIMUM_DEPTH:
            _fail(
                self._source, f"is nested too deeply; at most {_MAXIMUM_DEPTH} levels are allowed"
            )
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth)
        text: str = event.value
        return plain_scalar(text) if event.implicit[0] else text

    def _sequence(self, path: str, depth: int) -> list[Tree]:
        items: list[Tree] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, f"{path}[{len(items)}]", depth + 1))
        return items

    def _mapping(self, path: str, depth: int) -> dict[str, Tree]:
        result: dict[str, Tree] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
                self._refuse(event, path, "has a key that is not plain text")
            key: str = event.value
            if key in result:
                self._refuse(event, child_path(path, key), "is given twice")
            result[key] = self._node(self._next(), child_path(path, key), depth + 1)
        return result

    def _refuse(self, event: Any, path: str, problem: str) -> NoReturn:
        _fail(self._source, f"{problem} (line {event.start_mark.line + 1})", path)


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _LONGEST_INTEGER else float(text)


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem}, line {mark.line + 1}, column {mark.column + 1}"
    return " ".join(str(error).split())


def _fail(source: str, problem: str, path: str = "") -> NoReturn:
    raise SpecError(source, [Violation(path, problem)])
