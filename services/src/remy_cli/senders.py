"""Options in words, `--sender cubic=3` and the like, and what a shell completes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from remy_farm.evaluation import REMYCC, parse_sender
from remy_simulator import registry
from remy_simulator.registry import Registry


class _Spoken(click.ParamType[Any]):
    """A flag's value in such words; completion knows the names that there are."""

    def __init__(self, kind: Registry, parse: Callable[[str], Any]) -> None:
        self.name = kind.value
        self._kind = kind
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names; behind one, the variants and parameters that it may be told."""
        head, comma, _ = incomplete.rpartition(",")
        entries = registry.entries(self._kind)
        found: dict[str, str] = {}
        if not comma:
            found |= {name: entry.title for name, entry in entries.items()}
            if self._kind == Registry.PROTOCOL:
                found[REMYCC] = "a RemyCC's file"
        elif entry := entries.get(head.partition(",")[0]):
            for variant in entry.variants:
                found[f"{head},{registry.VARIANT}={variant.name}"] = variant.source
                for each in variant.parameters:
                    found[f"{head},{each.name}="] = each.meaning
        return [
            CompletionItem(word, help=text)
            for word, text in found.items()
            if word.startswith(incomplete)
        ]


SENDER = _Spoken(Registry.PROTOCOL, parse_sender)
QUEUE = _Spoken(Registry.QUEUE, partial(registry.parse, Registry.QUEUE))
TRANSPORT = _Spoken(Registry.TRANSPORT, partial(registry.parse, Registry.TRANSPORT))
