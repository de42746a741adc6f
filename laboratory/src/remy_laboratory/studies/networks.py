"""Networks of studies: a network's keys in layers, and what a study says of its runs beside them.

The keys are those of a network's file, with the same reader (docs/reference/networks.md). Rows say
who sends, and what a link does not say is that of the network's own keys, so that these can be
varied for all links.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from remy_farm.files import FileError
from remy_farm.specification.links import parse_choice, rate_in_mbps
from remy_farm.specification.network_files import topology_of, vary_network
from remy_farm.specification.reading import Tree, fill, keys
from remy_farm.specification.schema import Bounds, SpecError, Violation, descriptor_of, show
from remy_farm.specification.senders import DEFAULT_PACKET_BYTES, SenderSpec
from remy_farm.specification.writing import merge_trees, quantity_of
from remy_laboratory.studies.reading import Check, Fields, check_of
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import log2, uniform
from remy_simulator.registry import Registry

REFERENCE_VARIABLE = "REMY_REFERENCE_DIR"
#: Files by this name are in a folder of REMY_REFERENCE_DIR: others published them.
PUBLISHED = "published/"
#: Names the random draws of all studies; the number of the run is the specimen's key.
SEED = 1

# Names the draws of when senders are first on, among those of a run.
_FIRST_ON = 0x66697273
_LN_2 = 0.6931471805599453
# Of a network: sets its first sender apart from all others.
_FIRST_OFFSET = "first_rtt_offset_ms"
_NETWORK = descriptor_of(spec_pb2.NetworkModel)
_MS = Bounds(unit="ms", minimum=0)
#: Keys that a study adds to those of a network: when its senders begin, and how one measures.
_OF_RUNS: Final[Mapping[str, Bounds]] = {
    "starts_apart_ms": _MS,
    # Senders are first on after exponentially distributed times, and not after a time off.
    "first_on_mean_ms": _MS,
    # The first sender's RTTs, but the first of an on period, are too long by this.
    _FIRST_OFFSET: _MS,
}
#: The routes of the kinds of senders in turn; of one kind, those of its senders.
_ROUTES = "routes"


def reference_folder() -> Path | None:
    """Where published tables, curves and recordings are; none if nobody says so."""
    folder = os.environ.get(REFERENCE_VARIABLE)
    return Path(folder) if folder else None


def published_path(name: str, subfolder: str) -> Path | None:
    """Where a published file is; None for one that is not. Raises FileError if nobody says so."""
    if not name.startswith(PUBLISHED):
        return None
    folder = reference_folder()
    if folder is None:
        raise FileError(
            f"{name} needs {REFERENCE_VARIABLE}, the folder whose subfolder {subfolder} holds the "
            "published files"
        )
    return folder / subfolder / name.removeprefix(PUBLISHED)


def varied_field(path: str) -> Check | None:
    """The check of the numbers at a path of a network; None where the path holds no number."""
    bounds = _OF_RUNS.get(path) or quantity_of(path, _NETWORK)
    return None if bounds is None else check_of(bounds)


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """One network of several: what comes later replaces what says the same otherwise."""
    whole: Tree = {}
    for layer in layers:
        whole = merge_trees(whole, dict(layer), _NETWORK)
    assert isinstance(whole, dict)
    return whole


def varied(network: Mapping[str, Any], path: str, value: float) -> dict[str, Any]:
    """The network with another value at a path, as "buffer.bdp" or "links[0].delay_ms"."""
    if path in _OF_RUNS:
        return {**network, path: value}
    tree = vary_network(dict(network), path, value)
    assert isinstance(tree, dict)
    return tree


def value_at(network: Mapping[str, Any], path: str) -> Any:
    """The value at a path of a network, as "buffer.bdp"; None where there is none."""
    found: Any = network
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def paths_in(network: Mapping[str, Any]) -> Iterator[str]:
    """The paths of all that a network says; a list is one thing."""
    for key, value in network.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{key}.{path}" for path in paths_in(value))
        else:
            yield key


def network_of(fields: Fields | None) -> dict[str, Any]:
    """The network that a mapping describes, or a layer of one. Raises SpecError."""
    if fields is None:
        return {}
    network: dict[str, Any] = {}
    for name, bounds in _OF_RUNS.items():
        value = fields.number(name, check_of(bounds))
        if value is not None:
            network[name] = value
    routes = fields.take(_ROUTES)
    if routes is not None:
        network[_ROUTES] = _checked_routes(fields, routes)
    described: dict[str, Tree] = {key: fields.take(key) for key in fields.left()}
    found = fill(spec_pb2.NetworkModel(), described, needs_alternatives=False)
    if described.get("senders") is not None and not isinstance(described["senders"], int | float):
        found.append(Violation("senders", "are named by the study's rows; here is their number"))
    if found:
        fields.fail(found[0].path, found[0].problem)
    for key, registered in (("queue", Registry.QUEUE), ("transport", Registry.TRANSPORT)):
        try:
            if key in described:
                parse_choice(registered, str(described[key]))
        except ValueError as problem:
            fields.fail(key, f"is {show(described[key])}: {problem}")
    network |= described
    if "links" in network:
        folder = Path(fields.source).parent
        network["links"] = [_with_recording_in(folder, link) for link in network["links"]]
    return network


def _checked_routes(fields: Fields, routes: Tree) -> Tree:
    if not isinstance(routes, list) or not routes:
        fields.fail(_ROUTES, f"is {show(routes)}, but must be a list of mappings")
    for number, route in enumerate(routes):
        for each in fill(spec_pb2.RouteModel(), route):
            fields.fail(".".join(filter(None, (f"{_ROUTES}[{number}]", each.path))), each.problem)
    return routes


def _with_recording_in(folder: Path, link: Any) -> Any:
    """A link whose recording, if it is nobody else's, is named from a folder."""
    match link:
        case {"trace": {"path": str(path)} as trace} if not path.startswith(PUBLISHED):
            return {**link, "trace": {**trace, "path": str(folder / path)}}
    return link


def packet_bytes(network: Mapping[str, Any]) -> float:
    """The size of a packet on the wire."""
    return float(network.get("packet_bytes", DEFAULT_PACKET_BYTES))


def sender_counts(senders: Sequence[SenderSpec], network: Mapping[str, Any]) -> list[int]:
    """The number of senders of each kind; of a row's only kind the network's `senders` says it."""
    if len(senders) == 1 and "senders" in network:
        return [int(network["senders"])]
    return [each.count for each in senders]


def table_names(senders: Sequence[SenderSpec]) -> list[str]:
    """Files of RemyCCs in the order of their first mention, which is that of a request's tables."""
    return list(dict.fromkeys(each.remycc for each in senders if each.remycc is not None))


@dataclass(frozen=True)
class StudyNetwork:
    """A network with its senders, before a run says when they begin."""

    fields: Mapping[str, Any]
    """Its keys; `rate_mbps` and `rtt_ms` are there also where only links say them."""
    specimen: evaluation_pb2.Specimen
    traces: tuple[evaluation_pb2.Trace, ...] = ()
    tree: Mapping[str, Any] = field(default_factory=dict)
    """The same network as the tree of a network's file."""

    def run(self, key: int) -> evaluation_pb2.Specimen:
        """With the draws of a run."""
        specimen = evaluation_pb2.Specimen()
        specimen.CopyFrom(self.specimen)
        specimen.key = key
        if begins_by_sender(self.fields):
            # Senders that begin at times of their own are groups of their own.
            for sender, group in enumerate(specimen.senders):
                group.first_on_ms = self._first_on_ms(key, sender)
        return specimen

    def _first_on_ms(self, key: int, sender: int) -> float:
        if "starts_apart_ms" in self.fields:
            return float(self.fields["starts_apart_ms"] * sender)
        draw = uniform(SEED, _FIRST_ON, key, sender)
        return float(-self.fields["first_on_mean_ms"] * _LN_2 * log2(1.0 - draw))


def follows_recordings(*layers: Mapping[str, Any]) -> bool:
    """Whether a link of a network, or of what is put over it, follows a recording."""
    links = [link for layer in layers for link in layer.get("links", ())]
    return any(isinstance(link, dict) and "trace" in link for link in links)


def begins_by_sender(network: Mapping[str, Any]) -> bool:
    """Whether each sender is first on at a time of its own, and not after a time off."""
    return "starts_apart_ms" in network or "first_on_mean_ms" in network


def study_network(
    senders: Sequence[SenderSpec], network: Mapping[str, Any], source: str = "network"
) -> StudyNetwork:
    """The network with these senders. Raises SpecError, and FileError for a recording."""
    if _FIRST_OFFSET in network and "links" not in network:
        raise SpecError(source, [Violation(_FIRST_OFFSET, "needs links")])
    tree = network_tree(senders, network)
    topology = topology_of(copy.deepcopy(tree), Path(), source, plain=True)
    specimen = topology.specimen
    for words, group in zip(topology.sender_specs, specimen.senders, strict=True):
        if words.remycc is not None:
            group.table = table_names(senders).index(words.remycc)
    mbps = rate_in_mbps(specimen.link_rate_packets_per_ms, packet_bytes(network))
    fields = {"rate_mbps": mbps, **network, "rtt_ms": network.get("rtt_ms") or specimen.rtt_ms}
    return StudyNetwork(fields, specimen, tuple(topology.traces), tree)


def network_tree(senders: Sequence[SenderSpec], network: Mapping[str, Any]) -> dict[str, Any]:
    """The tree of a network's file that has this network with these senders.

    Raises FileError for a recording.
    """
    tree = {key: network[key] for key in keys(_NETWORK) if key in network}
    if "links" in network:
        tree["links"] = [_link(link, network) for link in network["links"]]
        for key in _OF_LINKS:
            tree.pop(key, None)
    routes = network.get(_ROUTES, [])
    apart_ms, offset_ms = network.get("starts_apart_ms"), network.get(_FIRST_OFFSET)
    tree["senders"] = [
        {
            **words.network_keys(),
            "count": count,
            # The last is that of those behind it, too.
            **({"route": copy.deepcopy(routes[min(route, len(routes) - 1)])} if routes else {}),
            **({"first_on_ms": apart_ms * sender} if apart_ms is not None else {}),
            # Only the first sender of all measures RTTs that are too long.
            **({"rtt_offset_ms": 0 if sender else offset_ms} if offset_ms is not None else {}),
        }
        for sender, (words, count, route) in enumerate(_groups(senders, network))
    ]
    return tree


def _groups(
    senders: Sequence[SenderSpec], network: Mapping[str, Any]
) -> list[tuple[SenderSpec, int, int]]:
    """Who sends, how many they are, and which of the routes they have: that of their kind, and
    where there is one kind and several routes, each its own. What sets one sender apart makes each
    a group."""
    groups: list[tuple[SenderSpec, int, int]] = []
    own_routes = len(senders) == 1 and len(network.get(_ROUTES, ())) > 1
    counts = sender_counts(senders, network)
    for kind, (words, count) in enumerate(zip(senders, counts, strict=True)):
        if own_routes:
            groups += [(words, 1, sender) for sender in range(count)]
        elif begins_by_sender(network) or _FIRST_OFFSET in network:
            groups += [(words, 1, kind)] * count
        else:
            groups.append((words, count, kind))
    return groups


#: Keys of a network that its links take over where they have none of their own.
_OF_LINKS = ("rate_mbps", "loss_probability", "queue", "buffer")
#: By key, the keys of a link that say the same: a link that has one of them takes nothing over.
_IN_PLACE = {
    "rate_mbps": ("rate_mbps", "trace", "generated"),
    "loss_probability": ("loss_probability", "gilbert_elliott"),
}


def _link(link: Any, network: Mapping[str, Any]) -> Any:
    """The link with the network's own keys where it has none of its own."""
    if not isinstance(link, dict):
        return link
    whole = copy.deepcopy(link)
    for key in _OF_LINKS:
        if key in network and not any(each in link for each in _IN_PLACE.get(key, (key,))):
            whole[key] = copy.deepcopy(network[key])
    if isinstance(trace := whole.get("trace"), dict) and isinstance(trace.get("path"), str):
        path = published_path(trace["path"], "traces") or Path(trace["path"])
        if not path.is_file():
            raise FileError(f"{path} is no file, but a link is to follow the recording in it")
        trace["path"] = str(path)
    return whole
