"""Builds the networks of studies from layers of keys.

The keys and their reader are those of network files (docs/reference/networks.md), plus keys for the
start times of senders and for measurement errors. A study's rows name the senders. Links inherit
missing keys from the network, so that a sweep can change a key of all links.
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
from remy_farm.specification.writing import bounds_at, merge_trees
from remy_laboratory.studies.reading import Check, Fields, bounds_check
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import exp, log, log2, uniform
from remy_simulator.registry import Registry

REFERENCE_VARIABLE = "REMY_REFERENCE_DIR"
#: Prefix of files that others published, which are in a subdirectory of REMY_REFERENCE_DIR.
PUBLISHED = "published/"
#: Seed of the random draws of all studies; the run's number is the specimen's key.
SEED = 1

# Key of the random draws of senders' start times.
_FIRST_ON = 0x66697273
_LN_2 = 0.6931471805599453
# Key of a network for the measurement error of its first sender.
_FIRST_OFFSET = "first_rtt_offset_ms"
_NETWORK = descriptor_of(spec_pb2.NetworkModel)
_MS = Bounds(unit="ms", minimum=0)
#: Key of a network for the ratio of the last sender's RTT to the first one's, which is rtt_ms.
RTT_SPREAD = "rtt_spread"
#: Keys that a study adds to those of a network file.
STUDY_KEYS: Final[Mapping[str, Bounds]] = {
    "starts_apart_ms": _MS,
    # Mean of the exponentially distributed start times, which replace initial off times.
    "first_on_mean_ms": _MS,
    # Error of the first sender's RTTs, except the first RTT of each on period.
    _FIRST_OFFSET: _MS,
    RTT_SPREAD: Bounds(minimum=1, maximum=1000),
}
#: Key of a list of routes: one per kind of senders, or one per sender if there is a single kind.
_ROUTES = "routes"


def reference_folder() -> Path | None:
    """Returns the directory of published tables, curves and traces; None if it is not set."""
    folder = os.environ.get(REFERENCE_VARIABLE)
    return Path(folder) if folder else None


def published_path(name: str, subfolder: str) -> Path | None:
    """Returns the path of a published file; None for other names.

    Raises FileError if the directory of published files is not set.
    """
    if not name.startswith(PUBLISHED):
        return None
    folder = reference_folder()
    if folder is None:
        raise FileError(
            f"{name} needs {REFERENCE_VARIABLE}, the directory whose subdirectory {subfolder} has "
            "the published files"
        )
    return folder / subfolder / name.removeprefix(PUBLISHED)


def value_check(path: str) -> Check | None:
    """Returns the check for numbers at a key path of a network; None if no number is allowed."""
    bounds = STUDY_KEYS.get(path) or bounds_at(path, _NETWORK)
    return None if bounds is None else bounds_check(bounds)


def merge_networks(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merges layers of a network's keys; later layers override earlier ones."""
    merged: Tree = {}
    for layer in layers:
        merged = merge_trees(merged, dict(layer), _NETWORK)
    assert isinstance(merged, dict)
    return merged


def with_value(network: Mapping[str, Any], path: str, value: float) -> dict[str, Any]:
    """Returns the network with a new value at a key path, e.g. "links[0].delay_ms"."""
    if path in STUDY_KEYS:
        return {**network, path: value}
    tree = vary_network(dict(network), path, value)
    assert isinstance(tree, dict)
    return tree


def value_at(network: Mapping[str, Any], path: str) -> Any:
    """Returns the value at a key path of a network, e.g. "buffer.bdp"; None if it is absent."""
    value: Any = network
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def key_paths(network: Mapping[str, Any]) -> Iterator[str]:
    """Yields the key paths of all values in a network; a list counts as one value."""
    for key, value in network.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{key}.{path}" for path in key_paths(value))
        else:
            yield key


def read_network(fields: Fields | None, *, is_drawn: bool = False) -> dict[str, Any]:
    """Reads a network or a layer of one, whose values may be distributions if it is drawn.

    Raises SpecError.
    """
    if fields is None:
        return {}
    network: dict[str, Any] = {}
    for name, bounds in STUDY_KEYS.items():
        value = fields.take(name)
        if value is not None and not (is_drawn and isinstance(value, dict)):
            fields.check_number(name, value, bounds_check(bounds))
        if value is not None:
            network[name] = value
    routes = fields.take(_ROUTES)
    if routes is not None:
        network[_ROUTES] = _check_routes(fields, routes)
    described: dict[str, Tree] = {key: fields.take(key) for key in fields.remaining()}
    violations = fill(spec_pb2.NetworkModel(), described, needs_alternatives=False)
    senders = described.get("senders")
    is_number = isinstance(senders, int | float) or (is_drawn and isinstance(senders, dict))
    if senders is not None and not is_number:
        problem = "are named by the study's rows; here only their number is allowed"
        violations.append(Violation("senders", problem))
    if violations:
        fields.fail(violations[0].path, violations[0].problem)
    for key, registered in (("queue", Registry.QUEUE), ("transport", Registry.TRANSPORT)):
        try:
            if key in described:
                parse_choice(registered, str(described[key]))
        except ValueError as error:
            fields.fail(key, f"is {show(described[key])}: {error}")
    network |= described
    if "links" in network:
        folder = Path(fields.source).parent
        network["links"] = [_resolve_trace_path(folder, link) for link in network["links"]]
    return network


def _check_routes(fields: Fields, routes: Tree) -> Tree:
    if not isinstance(routes, list) or not routes:
        fields.fail(_ROUTES, f"is {show(routes)}, but must be a list of mappings")
    for number, route in enumerate(routes):
        for each in fill(spec_pb2.RouteModel(), route):
            fields.fail(".".join(filter(None, (f"{_ROUTES}[{number}]", each.path))), each.problem)
    return routes


def _resolve_trace_path(folder: Path, link: Any) -> Any:
    """Makes the path of a link's trace relative to a directory, unless it is a published file."""
    match link:
        case {"trace": {"path": str(path)} as trace} if not path.startswith(PUBLISHED):
            return {**link, "trace": {**trace, "path": str(folder / path)}}
    return link


def packet_bytes(network: Mapping[str, Any]) -> float:
    """Returns the size of a packet in bytes."""
    return float(network.get("packet_bytes", DEFAULT_PACKET_BYTES))


def sender_counts(senders: Sequence[SenderSpec], network: Mapping[str, Any]) -> list[int]:
    """Returns the number of senders of each kind; a single kind may use the network's `senders`."""
    if len(senders) == 1 and "senders" in network:
        return [int(network["senders"])]
    return [each.count for each in senders]


def table_names(senders: Sequence[SenderSpec]) -> list[str]:
    """Returns the RemyCC files in the order of their first mention, which is the tables' order."""
    return list(dict.fromkeys(each.remycc for each in senders if each.remycc is not None))


@dataclass(frozen=True)
class StudyNetwork:
    """A network with its senders, before the random draws of a run."""

    fields: Mapping[str, Any]
    """The network's keys; `rate_mbps` and `rtt_ms` are set even if only the links have them."""
    specimen: evaluation_pb2.Specimen
    traces: tuple[evaluation_pb2.Trace, ...] = ()
    tree: Mapping[str, Any] = field(default_factory=dict)
    """The keys of the equivalent network file."""

    def run(self, key: int) -> evaluation_pb2.Specimen:
        """Returns the specimen with the random draws of a run."""
        specimen = evaluation_pb2.Specimen()
        specimen.CopyFrom(self.specimen)
        specimen.key = key
        if has_start_times(self.fields):
            # Senders with different start times need separate groups.
            for sender, group in enumerate(specimen.senders):
                group.first_on_ms = self._first_on_ms(key, sender)
        return specimen

    def _first_on_ms(self, key: int, sender: int) -> float:
        if "starts_apart_ms" in self.fields:
            return float(self.fields["starts_apart_ms"] * sender)
        draw = uniform(SEED, _FIRST_ON, key, sender)
        return float(-self.fields["first_on_mean_ms"] * _LN_2 * log2(1.0 - draw))


def uses_traces(*layers: Mapping[str, Any]) -> bool:
    """Returns whether any link in these layers follows a trace recording."""
    links = [link for layer in layers for link in layer.get("links", ())]
    return any(isinstance(link, dict) and "trace" in link for link in links)


def has_start_times(network: Mapping[str, Any]) -> bool:
    """Returns whether senders have start times of their own, instead of an initial off time."""
    return "starts_apart_ms" in network or "first_on_mean_ms" in network


def study_network(
    senders: Sequence[SenderSpec], network: Mapping[str, Any], source: str = "network"
) -> StudyNetwork:
    """Builds a network with these senders. Raises SpecError, and FileError for a trace."""
    if _FIRST_OFFSET in network and "links" not in network:
        raise SpecError(source, [Violation(_FIRST_OFFSET, "requires the key links")])
    if RTT_SPREAD in network and ("rtt_ms" not in network or _ROUTES in network):
        raise SpecError(source, [Violation(RTT_SPREAD, "requires rtt_ms and excludes routes")])
    tree = network_dict(senders, network)
    topology = topology_of(copy.deepcopy(tree), Path(), source, plain=True)
    specimen = topology.specimen
    for sender, group in zip(topology.sender_specs, specimen.senders, strict=True):
        if sender.remycc is not None:
            group.table = table_names(senders).index(sender.remycc)
    mbps = rate_in_mbps(specimen.link_rate_packets_per_ms, packet_bytes(network))
    fields = {"rate_mbps": mbps, **network, "rtt_ms": network.get("rtt_ms") or specimen.rtt_ms}
    return StudyNetwork(fields, specimen, tuple(topology.traces), tree)


def network_dict(senders: Sequence[SenderSpec], network: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of the network file that describes this network with these senders.

    Raises FileError for a trace recording.
    """
    tree = {key: network[key] for key in keys(_NETWORK) if key in network}
    if "links" in network:
        tree["links"] = [_complete_link(link, network) for link in network["links"]]
        for key in _INHERITED_KEYS:
            tree.pop(key, None)
    routes = network.get(_ROUTES, [])
    apart_ms, offset_ms = network.get("starts_apart_ms"), network.get(_FIRST_OFFSET)
    groups = _groups(senders, network)
    rtts_ms = _spread_rtts_ms(network, len(groups))
    tree["senders"] = [
        {
            **sender.network_keys(),
            "count": count,
            # The last route also applies to all further groups.
            **({"route": copy.deepcopy(routes[min(route, len(routes) - 1)])} if routes else {}),
            **({"first_on_ms": apart_ms * index} if apart_ms is not None else {}),
            # Only the first sender's RTTs have the error.
            **({"rtt_offset_ms": 0 if index else offset_ms} if offset_ms is not None else {}),
            **({"rtt_ms": rtts_ms[index]} if rtts_ms else {}),
        }
        for index, (sender, count, route) in enumerate(groups)
    ]
    return tree


def _spread_rtts_ms(network: Mapping[str, Any], count: int) -> list[float]:
    """Returns the RTT of each sender, in equal ratios; an empty list if all have the same."""
    spread = network.get(RTT_SPREAD)
    if spread is None:
        return []
    step = log(float(spread)) / max(count - 1, 1)
    return [float(f"{network['rtt_ms'] * exp(step * index):.6g}") for index in range(count)]


def _groups(
    senders: Sequence[SenderSpec], network: Mapping[str, Any]
) -> list[tuple[SenderSpec, int, int]]:
    """Returns groups of senders as (sender, count, index of the route).

    The route is that of the group's kind. With one kind and several routes, each sender has a
    route. Senders that differ in start time or measurement are in separate groups.
    """
    groups: list[tuple[SenderSpec, int, int]] = []
    has_own_routes = len(senders) == 1 and len(network.get(_ROUTES, ())) > 1
    counts = sender_counts(senders, network)
    for kind, (sender, count) in enumerate(zip(senders, counts, strict=True)):
        if has_own_routes:
            groups += [(sender, 1, index) for index in range(count)]
        elif has_start_times(network) or _FIRST_OFFSET in network or RTT_SPREAD in network:
            groups += [(sender, 1, kind)] * count
        else:
            groups.append((sender, count, kind))
    return groups


#: Keys of a network that links without them inherit.
_INHERITED_KEYS = ("rate_mbps", "loss_probability", "queue", "buffer")
#: Keys of a link that prevent the inheritance of a key; by default the key itself.
_ALTERNATIVES = {
    "rate_mbps": ("rate_mbps", "trace", "generated"),
    "loss_probability": ("loss_probability", "gilbert_elliott"),
}


def _complete_link(link: Any, network: Mapping[str, Any]) -> Any:
    """Returns the link with inherited keys of the network and the resolved path of its trace."""
    if not isinstance(link, dict):
        return link
    complete = copy.deepcopy(link)
    for key in _INHERITED_KEYS:
        if key in network and not any(each in link for each in _ALTERNATIVES.get(key, (key,))):
            complete[key] = copy.deepcopy(network[key])
    if isinstance(trace := complete.get("trace"), dict) and isinstance(trace.get("path"), str):
        path = published_path(trace["path"], "traces") or Path(trace["path"])
        if not path.is_file():
            raise FileError(f"{path} does not exist, but a link follows the trace in it")
        trace["path"] = str(path)
    return complete
