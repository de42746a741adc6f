"""Reading files of studies strictly: fields one by one, and networks in layers.

Whatever is wrong is told in one sentence that names the field, what it is, and what is allowed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from remy_farm.specification import SpecError, Violation
from remy_farm.specification.reading import NETWORK, NEW_NAMES, Tree, nearest
from remy_farm.specification.schema import child_path, show
from remy_simulator import registry
from remy_simulator.registry import Registry

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


# Networks: a field may stand in the figure, in a row, and be what is varied.


def _positive(value: float) -> bool:
    return 0 < value < float("inf")


def _not_negative(value: float) -> bool:
    return 0 <= value < float("inf")


Check: TypeAlias = tuple[Callable[[float], bool], str]
ABOVE: Check = (_positive, "a number above 0")
FROM_0: Check = (_not_negative, "a number of at least 0")
NETWORK_FIELDS: Mapping[str, Check | None] = {
    "rate_mbps": ABOVE,
    "rtt_ms": ABOVE,
    "senders": (lambda value: 1 <= value <= 10_000 and value == int(value), "1 to 10000"),
    "buffer.packets": FROM_0,
    "buffer.kilobytes": FROM_0,
    # As much as the link carries in so long.
    "buffer.ms": FROM_0,
    # As much as the link carries in so many RTTs.
    "buffer.bdp": FROM_0,
    "packet_bytes": ABOVE,
    "ack_bytes": FROM_0,
    "loss_probability": (lambda value: 0 <= value < 1, "from 0 to below 1"),
    "traffic.exponential_time.mean_ms": ABOVE,
    "traffic.exponential_bytes.mean_bytes": ABOVE,
    # Flow lengths as measured at ICSI, and so many bytes on top of each.
    "traffic.empirical_bytes.extra_bytes": FROM_0,
    "traffic.mean_off_ms": FROM_0,
    "starts_apart_ms": FROM_0,
    # Senders are first on after exponentially distributed times, and not after a time off.
    "first_on_mean_ms": FROM_0,
    # The first sender's RTTs, but the first of an on period, are too long by this.
    "first_rtt_offset_ms": FROM_0,
    # Share of the link that flows of exponential bytes ask for: says the mean off time.
    "traffic.load": (lambda value: 0 < value < 1, "above 0 and below 1"),
    # Words.
    "queue": None,
    "transport": None,
}
#: Keys whose values are trees as in a network's file; remy_laboratory.studies.networks reads them.
_TREES = {"links": list, "routes": list, "traffic": dict, "measurement": dict}
# A number within a link, as links[0].jitter_box.periodic.period_ms.
_IN_LINK = re.compile(r"links\[([0-9]{1,4})\]((?:\.[a-z_]+)+)")
#: Files by this name are in a folder of REMY_REFERENCE_DIR: others published them.
PUBLISHED = "published/"
BUFFERS = ("buffer.packets", "buffer.kilobytes", "buffer.ms", "buffer.bdp")
ONS = (
    "traffic.exponential_time.mean_ms",
    "traffic.exponential_bytes.mean_bytes",
    "traffic.empirical_bytes.extra_bytes",
    "traffic",
)
OFFS = ("traffic.mean_off_ms", "traffic.load", "traffic")


def varied_field(field: str) -> Check | None:
    """What values of a field can be, if it can be varied."""
    return FROM_0 if _IN_LINK.fullmatch(field) else NETWORK_FIELDS.get(field)


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """One network of several: what comes later replaces what says the same otherwise."""
    whole: dict[str, Any] = {}
    for layer in layers:
        for field, value in layer.items():
            if place := _IN_LINK.fullmatch(field):
                whole["links"] = _with(whole["links"], int(place[1]), place[2][1:], value)
                continue
            for names in (BUFFERS, ONS, OFFS):
                if field in names:
                    for name in names:
                        whole.pop(name, None)
            whole[field] = value
    return whole


def _with(links: Sequence[Any], number: int, path: str, value: Any) -> list[Any]:
    """The links with something else at a path of one."""
    found = copy.deepcopy(list(links))
    *parts, last = path.split(".")
    part = found[number]
    for name in parts:
        part = part.setdefault(name, {})
    part[last] = value
    return found


#: Former names of a network's fields.
_NEW_NAMES: Mapping[str, str] = {
    key: now for (message, key), now in NEW_NAMES.items() if message == NETWORK
} | {
    "buffer_bdp": "buffer.bdp",
    "buffer_ms": "buffer.ms",
    "buffer_kilobytes": "buffer.kilobytes",
    "load": "traffic.load",
    "body": "transport",
}


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

    def put_back(self, field: str, value: Tree) -> None:
        """As if it had not been taken."""
        self._tree[field] = value

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
            now = _NEW_NAMES.get(field)
            meant = f"it is {now} now" if now else nearest(field, self._known)
            self.fail(field, f"is not a known key; {meant}")


def network_of(fields: Fields | None) -> dict[str, Any]:
    """By NETWORK_FIELDS, whose names are paths; what is not given is left out. Raises SpecError."""
    if fields is None:
        return {}
    network: dict[str, Any] = {}
    numbers = _numbers_within(fields, "buffer") | _numbers_within(fields, "traffic")
    for name, check in NETWORK_FIELDS.items():
        value = numbers.get(name, None) if "." in name else fields.take(name)
        if value is None:
            continue
        if check is not None:
            network[name] = fields.checked(name, value, check)
        else:
            registered = Registry.QUEUE if name == "queue" else Registry.BODY
            try:
                network[name] = registry.parse(registered, str(value))
            except ValueError as problem:
                fields.fail(name, f"is {show(value)}: {problem}")
    for name, kind in _TREES.items():
        tree = fields.take(name)
        if tree is not None and not (isinstance(tree, kind) and tree):
            what = "a list of mappings" if kind is list else "a mapping"
            fields.fail(name, f"is {show(tree)}, but must be {what}")
        if tree is not None:
            network[name] = tree
    for names in (BUFFERS, ONS, OFFS):
        given = [name for name in names if name in network]
        if len(given) > 1:
            fields.fail("", f"has {' and '.join(given)}, but must have one of them")
    if "links" in network:
        folder = Path(fields.source).parent
        network["links"] = [_with_recording_in(folder, link) for link in network["links"]]
    fields.end()
    return network


def _numbers_within(fields: Fields, key: str) -> dict[str, Tree]:
    """The values at the paths of NETWORK_FIELDS within a mapping. A load that says more than such
    numbers stays where it is, for the reader of networks' files."""
    tree = fields.take(key)
    if tree is None or tree == "infinite":
        return {}
    found = dict(_leaves(tree, key))
    # Quantiles without a name are those of ICSI.
    if found.get("traffic.empirical_bytes.name") == "icsi":
        del found["traffic.empirical_bytes.name"]
    if found and found.keys() <= NETWORK_FIELDS.keys():
        return found
    if key in _TREES:
        fields.put_back(key, tree)
        return {}
    known = [name for name in NETWORK_FIELDS if name.startswith(f"{key}.")]
    return fields.fail(key, f"is {show(tree)}, but must be infinite or one of {', '.join(known)}")


def _leaves(tree: Tree, path: str) -> Iterator[tuple[str, Tree]]:
    """The values of a tree of mappings by their paths."""
    if not isinstance(tree, dict):
        yield path, tree
        return
    for key, inner in tree.items():
        yield from _leaves(inner, f"{path}.{key}")


def _with_recording_in(folder: Path, link: Any) -> Any:
    """A link whose recording, if it is nobody else's, is named from a folder."""
    match link:
        case {"trace": {"path": str(path)} as trace} if not path.startswith(PUBLISHED):
            return {**link, "trace": {**trace, "path": str(folder / path)}}
    return link


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
