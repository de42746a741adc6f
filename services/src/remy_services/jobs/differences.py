"""Where specifications differ, setting by setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remy_farm.v1 import spec_pb2
from remy_services.spec import to_yaml
from remy_services.spec.errors import format_number
from remy_services.spec.text import Tree, read_yaml


@dataclass(frozen=True)
class Difference:
    """A setting, and what each of the specifications says of it; empty where nothing."""

    path: str
    values: tuple[str, ...]


def differences(specs: Sequence[spec_pb2.DesignSpec]) -> list[Difference]:
    """The settings in which they are not all alike, in the order of a specification file."""
    settings = [dict(_leaves(read_yaml(to_yaml(spec), "the specification"))) for spec in specs]
    paths = dict.fromkeys(path for each in settings for path in each)
    rows = [Difference(path, tuple(each.get(path, "") for each in settings)) for path in paths]
    return [row for row in rows if len(set(row.values)) > 1]


def _leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path, _text(tree)


def _text(tree: Tree) -> str:
    match tree:
        case list():
            return f"[{', '.join(_text(item) for item in tree)}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_text(value)}' for key, value in tree.items())}}}"
        case bool():
            return "true" if tree else "false"
        case float() | int():
            return format_number(tree)
    return str(tree)
