"""The registries of protocols, transports and queue disciplines."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native
from remy_simulator.messages import native_choice

__all__ = [
    "COUNTS_RECEIVED",
    "IS_ALONE",
    "IS_XCP_ROUTER",
    "MEASURES",
    "NEEDS_XCP_ROUTER",
    "RUNS_PROTOCOLS",
    "RUNS_TABLES",
    "SETTING",
    "VARIANT",
    "Entry",
    "Parameter",
    "Registry",
    "Variant",
    "canonical",
    "check",
    "choose",
    "entries",
    "number",
    "parse",
    "split_settings",
]

NEEDS_XCP_ROUTER: Final = "needs an XCP router"
#: All senders of the network must run this protocol, on one link without loss.
IS_ALONE: Final = "is alone on a link without loss"
RUNS_TABLES: Final = "runs RemyCCs"
IS_XCP_ROUTER: Final = "is an XCP router"
RUNS_PROTOCOLS: Final = "runs protocols"
MEASURES: Final = "measures with noise"
COUNTS_RECEIVED: Final = "throughput of packets received"


class Registry(StrEnum):
    """A registry. Its value is the noun for an entry in error messages."""

    PROTOCOL = "protocol"
    TRANSPORT = "transport"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A numeric parameter."""

    name: str
    description: str
    default: float
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Variant:
    """One version of a protocol, transport or queue discipline, and the source that it follows."""

    name: str
    source: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a registry."""

    name: str
    title: str
    variants: tuple[Variant, ...]
    """The default variant is first."""
    traits: frozenset[str]
    """Properties that restrict combinations with other entries, such as NEEDS_XCP_ROUTER."""

    def variant(self, name: str) -> Variant:
        """Returns a variant by name; the default if `name` is empty. Raises KeyError."""
        if not name:
            return self.variants[0]
        return {variant.name: variant for variant in self.variants}[name]


@functools.cache
def entries(registry: Registry) -> dict[str, Entry]:
    """Returns the entries of a registry, by name."""
    return {
        entry.name: Entry(
            name=entry.name,
            title=entry.title,
            variants=tuple(
                Variant(
                    name=variant.name,
                    source=variant.source,
                    parameters=tuple(
                        Parameter(
                            name=each.name,
                            description=each.meaning,
                            default=each.usual,
                            minimum=each.minimum,
                            maximum=each.maximum,
                        )
                        for each in variant.parameters
                    ),
                )
                for variant in entry.variants
            ),
            traits=frozenset(entry.traits),
        )
        for entry in _native.registered(registry)
    }


def check(registry: Registry, choice: evaluation_pb2.Choice) -> None:
    """Raises ValueError if the choice has an unknown name, or a value out of range."""
    _native.check_choice(registry, native_choice(choice))


def canonical(registry: Registry, choice: evaluation_pb2.Choice) -> evaluation_pb2.Choice:
    """Returns the canonical form of a choice: without the default variant and default values.

    Parameters are in the variant's order. Raises ValueError, as `check` does.
    """
    check(registry, choice)
    entry = entries(registry)[choice.name]
    variant = entry.variant(choice.variant)
    given = {parameter.name: parameter.value for parameter in choice.parameters}
    return evaluation_pb2.Choice(
        name=choice.name,
        variant="" if variant == entry.variants[0] else variant.name,
        parameters=[
            evaluation_pb2.Choice.Parameter(name=each.name, value=given[each.name])
            for each in variant.parameters
            if given.get(each.name, each.default) != each.default
        ],
    )


# Choices as text: `cubic`, `codel,target_ms=5`, `aimd,variant=trainer`

#: Names of settings, and the setting that is not a parameter.
SETTING: Final = re.compile("[a-z][a-z0-9_]*")
VARIANT: Final = "variant"


def parse(registry: Registry, text: str) -> evaluation_pb2.Choice:
    """Parses NAME[,variant=V][,PARAMETER=VALUE ...]. Raises ValueError."""
    name, settings = split_settings(text)
    return choose(registry, name, settings)


def split_settings(text: str, *, may_have_commas: bool = False) -> tuple[str, dict[str, str]]:
    """Splits text into a name and its settings. Raises ValueError.

    With `may_have_commas` the name (of a file) may contain commas: it ends before the first of the
    trailing settings.
    """
    parts = text.split(",")
    settings: list[tuple[str, str]] = []
    while len(parts) > 1:
        name, sign, value = parts[-1].partition("=")
        if not sign or not SETTING.fullmatch(name):
            if may_have_commas:
                break
            raise ValueError(f"'{parts[-1]}' in '{text}' is not a setting such as beta=0.7")
        settings.insert(0, (name, value))
        parts.pop()
    for name, times in Counter(name for name, _ in settings).items():
        if times > 1:
            raise ValueError(f"'{text}' sets {name} twice")
    return ",".join(parts), dict(settings)


def choose(registry: Registry, name: str, settings: Mapping[str, str]) -> evaluation_pb2.Choice:
    """Returns the canonical choice for a name and settings as text. Raises ValueError."""
    choice = evaluation_pb2.Choice(name=name, variant=settings.get(VARIANT, ""))
    for setting, text in settings.items():
        if setting != VARIANT:
            choice.parameters.add(name=setting, value=number(name, setting, text))
    return canonical(registry, choice)


def number(name: str, setting: str, text: str) -> float:
    """Parses a setting's value. Raises ValueError with a message that names the choice."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{name}: {setting} is '{text}', which is not a number")
    return value
