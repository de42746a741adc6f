"""Networks of studies as the simulator has them: one link by a few fields, or links and routes.

Links, routes and traffic have the keys of a network's file (docs/networks.md) and the same reader;
what a link does not say is that of the network's own fields, so that these can be varied.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from remy_farm.files import FileError
from remy_farm.specification.links import link_rate_packets_per_ms
from remy_farm.specification.network_files import topology_of
from remy_farm.specification.reading import fill
from remy_farm.specification.schema import SpecError, Violation
from remy_farm.specification.senders import USUAL_PACKET_BYTES, Words, bottleneck, choice_words
from remy_laboratory.studies.reading import BUFFERS, PUBLISHED
from remy_proto.v1 import evaluation_pb2
from remy_simulator import log2, uniform

REFERENCE_VARIABLE = "REMY_REFERENCE_DIR"
#: Names the random draws of all studies; the number of the run is the specimen's key.
SEED = 1

_MS_PER_SECOND = 1000.0
_BITS_PER_BYTE = 8
_BITS_PER_MS_IN_MBPS = 1000.0
# Names the draws of when senders are first on, among those of a run.
_FIRST_ON = 0x66697273
_LN_2 = 0.6931471805599453
# Of a network: sets its first sender apart from all others.
_FIRST_OFFSET = "first_rtt_offset_ms"


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


def packet_bytes(network: Mapping[str, Any]) -> float:
    """On the wire."""
    return float(network.get("packet_bytes", USUAL_PACKET_BYTES))


def buffer_packets(network: Mapping[str, Any]) -> int | None:
    """Packets that may wait; None: as many as come."""
    if "buffer.packets" in network:
        return int(network["buffer.packets"])
    if "buffer.kilobytes" in network:
        return int(network["buffer.kilobytes"] * 1000 / packet_bytes(network))
    if "buffer.ms" in network:
        return int(_rate(network) * network["buffer.ms"])
    if "buffer.bdp" in network:
        return int(_rate(network) * network["rtt_ms"] * network["buffer.bdp"])
    return None


def _rate(network: Mapping[str, Any]) -> float:
    return link_rate_packets_per_ms(network["rate_mbps"], packet_bytes(network))


def sender_counts(senders: Sequence[Words], network: Mapping[str, Any]) -> list[int]:
    """Of each kind of senders: where there is one kind, the network says how many."""
    if len(senders) == 1 and "senders" in network:
        return [int(network["senders"])]
    return [each.count for each in senders]


def table_names(senders: Sequence[Words]) -> list[str]:
    """Files of RemyCCs in the order of their first mention, which is that of a request's tables."""
    return list(dict.fromkeys(each.remycc for each in senders if each.remycc is not None))


@dataclass(frozen=True)
class StudyNetwork:
    """A network with its senders, before a run says when they begin."""

    fields: Mapping[str, Any]
    """As the study has them; `rate_mbps` and `rtt_ms` are there also where only links say them."""
    specimen: evaluation_pb2.Specimen
    traces: tuple[evaluation_pb2.Trace, ...] = ()
    tree: Mapping[str, Any] | None = None
    """Of a network of links: what a network's file says of it."""

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
    senders: Sequence[Words], network: Mapping[str, Any], source: str = "network"
) -> StudyNetwork:
    """The network with these senders. Raises SpecError, and FileError for a recording."""
    if "links" in network:
        return _of_links(senders, network, source)
    if _FIRST_OFFSET in network:
        raise SpecError(source, [Violation(_FIRST_OFFSET, "needs links")])
    specimen = evaluation_pb2.Specimen(
        link_rate_packets_per_ms=_rate(network),
        rtt_ms=network["rtt_ms"],
        buffer_packets=buffer_packets(network),
        loss_probability=network.get("loss_probability", 0.0),
        bottleneck=bottleneck(
            network.get("queue"), packet_bytes(network), network.get("ack_bytes", 0)
        ),
    )
    _fill(specimen.measurement, network, "measurement", source)
    for words, count, _ in _groups(senders, network):
        group = specimen.senders.add(count=count)
        group.MergeFrom(words.group(network.get("transport")))
        group.traffic.CopyFrom(_traffic(network, senders))
        _fill(group.traffic, network, "traffic", source)
        if words.remycc is not None:
            group.table = table_names(senders).index(words.remycc)
    return StudyNetwork(network, specimen)


def _fill(message: Message, network: Mapping[str, Any], key: str, source: str) -> None:
    """What a network says in the message's own fields, if it does. Raises SpecError."""
    if key in network:
        found = fill(message, network[key], needs_alternatives=False)
        if found:
            raise SpecError(source, [replace(each, path=f"{key}.{each.path}") for each in found])


def _groups(senders: Sequence[Words], network: Mapping[str, Any]) -> list[tuple[Words, int, int]]:
    """Who sends, how many they are, and which of the routes they have: that of their kind, and
    where there is one kind and several routes, each its own. What sets one sender apart makes each
    a group."""
    groups: list[tuple[Words, int, int]] = []
    own_routes = len(senders) == 1 and len(network.get("routes", ())) > 1
    counts = sender_counts(senders, network)
    for kind, (words, count) in enumerate(zip(senders, counts, strict=True)):
        if own_routes:
            groups += [(words, 1, sender) for sender in range(count)]
        elif begins_by_sender(network) or _FIRST_OFFSET in network:
            groups += [(words, 1, kind)] * count
        else:
            groups.append((words, count, kind))
    return groups


def _traffic(network: Mapping[str, Any], senders: Sequence[Words]) -> evaluation_pb2.Traffic:
    traffic = evaluation_pb2.Traffic()
    if "traffic" in network:
        return traffic
    if "traffic.exponential_time.mean_ms" in network:
        traffic.exponential_time.mean_ms = network["traffic.exponential_time.mean_ms"]
    elif "traffic.exponential_bytes.mean_bytes" in network:
        traffic.exponential_bytes.mean_bytes = network["traffic.exponential_bytes.mean_bytes"]
    else:
        traffic.empirical_bytes.name = "icsi"
        traffic.empirical_bytes.extra_bytes = network["traffic.empirical_bytes.extra_bytes"]
    if "traffic.load" in network:
        # Flows take little of the time between their beginnings, where there are many senders.
        bits = (
            sum(sender_counts(senders, network))
            * network["traffic.exponential_bytes.mean_bytes"]
            * _BITS_PER_BYTE
        )
        traffic.mean_off_ms = bits / (
            network["traffic.load"] * network["rate_mbps"] * _MS_PER_SECOND
        )
    else:
        traffic.mean_off_ms = network["traffic.mean_off_ms"]
    return traffic


# Links and routes, by the reader of networks' files.


def _of_links(senders: Sequence[Words], network: Mapping[str, Any], source: str) -> StudyNetwork:
    tree: dict[str, Any] = {
        key: network[key]
        for key in ("packet_bytes", "ack_bytes", "rtt_ms", "measurement")
        if key in network
    }
    tree["links"] = [_link(link, network) for link in network["links"]]
    routes = network.get("routes", [])
    usual = network.get("traffic") or json_format.MessageToDict(
        _traffic(network, senders), preserving_proto_field_name=True
    )
    apart_ms = network.get("starts_apart_ms")
    offset_ms = network.get(_FIRST_OFFSET)
    tree["senders"] = [
        {
            **_controller(words, network.get("transport")),
            "count": count,
            "traffic": copy.deepcopy(usual),
            # The last is that of those behind it, too.
            **({"route": copy.deepcopy(routes[min(route, len(routes) - 1)])} if routes else {}),
            **({"first_on_ms": apart_ms * sender} if apart_ms is not None else {}),
            # It sets one sender apart from its like.
            **({"rtt_offset_ms": 0 if sender else offset_ms} if offset_ms is not None else {}),
        }
        for sender, (words, count, route) in enumerate(_groups(senders, network))
    ]
    topology = topology_of(copy.deepcopy(tree), Path(), source)
    specimen = topology.specimen
    for words, group in zip(topology.words, specimen.senders, strict=True):
        if words.remycc is not None:
            group.table = table_names(senders).index(words.remycc)
    bits = packet_bytes(network) * _BITS_PER_BYTE
    mbps = specimen.link_rate_packets_per_ms * bits / _BITS_PER_MS_IN_MBPS
    fields = {"rate_mbps": mbps, "rtt_ms": specimen.rtt_ms, **network}
    return StudyNetwork(fields, specimen, tuple(topology.traces), tree)


#: What drives a link, or gives its loss, in place of a field of the network.
_DRIVERS = ("rate_mbps", "trace", "generated")
_LOSSES = ("loss_probability", "gilbert_elliott")


def _link(link: Any, network: Mapping[str, Any]) -> Any:
    """With what it has of the network's own fields."""
    if not isinstance(link, dict):
        return link
    whole = copy.deepcopy(link)
    if not any(key in link for key in _DRIVERS) and "rate_mbps" in network:
        whole["rate_mbps"] = network["rate_mbps"]
    if not any(key in link for key in _LOSSES) and "loss_probability" in network:
        whole["loss_probability"] = network["loss_probability"]
    if "queue" not in link and "queue" in network:
        whole["queue"] = choice_words(network["queue"])
    if "buffer" not in link and any(key in network for key in BUFFERS):
        rate = {"rate_mbps": whole["rate_mbps"]} if "rate_mbps" in whole else {}
        whole["buffer"] = {"packets": buffer_packets({**network, **rate})}
    if isinstance(trace := whole.get("trace"), dict) and isinstance(trace.get("path"), str):
        path = published_path(trace["path"], "traces") or Path(trace["path"])
        if not path.is_file():
            raise FileError(f"{path} is no file, but a link is to follow the recording in it")
        trace["path"] = str(path)
    return whole


def _controller(words: Words, usual: evaluation_pb2.Choice | None) -> dict[str, str]:
    """The keys of a network's file that say what a sender runs, and on what."""
    body = words.body_or(usual)
    if words.remycc is None and (words.body is not None or body is None):
        return {"protocol": words.name}
    carried = {} if body is None else {"transport": choice_words(body)}
    key = {"protocol": words.name} if words.remycc is None else {"table": words.remycc}
    return {**key, **carried}
