"""Parameter types of options such as `--sender cubic=3` and `--queue codel`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from remy_farm.evaluation import REMYCC, parse_sender
from remy_simulator import registry
from remy_simulator.registry import Registry


class _RegistryType(click.ParamType[Any]):
    """Parses a protocol, queue or transport, and completes its name, variants and parameters."""

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
        """Completes names, and after a name and a comma its variants and parameters."""
        head, comma, _ = incomplete.rpartition(",")
        entries = registry.entries(self._kind)
        completions: dict[str, str] = {}
        if not comma:
            completions |= {name: entry.title for name, entry in entries.items()}
            if self._kind == Registry.PROTOCOL:
                completions[REMYCC] = "a RemyCC file"
        elif entry := entries.get(head.partition(",")[0]):
            for variant in entry.variants:
                completions[f"{head},{registry.VARIANT}={variant.name}"] = variant.source
                for each in variant.parameters:
                    completions[f"{head},{each.name}="] = each.description
        return [
            CompletionItem(value, help=text)
            for value, text in completions.items()
            if value.startswith(incomplete)
        ]


SENDER = _RegistryType(Registry.PROTOCOL, parse_sender)
QUEUE = _RegistryType(Registry.QUEUE, partial(registry.parse, Registry.QUEUE))
TRANSPORT = _RegistryType(Registry.TRANSPORT, partial(registry.parse, Registry.TRANSPORT))
