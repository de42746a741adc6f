"""Soundness of networks: groups, mixtures and what is chosen by name make sense together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from remy_farm.v1 import spec_pb2
from remy_services.specification.networks import body_of, chosen, designs, extent, models
from remy_services.specification.schema import Bounds, Violation, child_path, show
from remy_simulator import registry
from remy_simulator.messages import USUAL_AXES, axis_of
from remy_simulator.registry import Registry

_MOST_SENDERS: Final = 10_000
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLAIN_QUEUE: Final = "drop-tail"
_KINDS: Final = {
    "queue": Registry.QUEUE,
    "body": Registry.BODY,
    "protocol": Registry.PROTOCOL,
}


def network_is_sound(network: spec_pb2.NetworkModel, path: str, _: Bounds) -> Iterator[Violation]:
    """Senders are given in one way, and what they run can run on the network."""
    if network.HasField("senders") and network.groups:
        yield Violation(path, "has senders and groups, but must have one of them")
    yield from _can_be_chosen(network, "queue", path)
    if network.groups:
        yield from _senders_fit(network, child_path(path, "groups"))


def _can_be_chosen(
    message: spec_pb2.NetworkModel | spec_pb2.GroupModel, name: str, path: str
) -> Iterator[Violation]:
    """A violation if a registry does not have what a field says in words."""
    words = getattr(message, name)
    if message.HasField(name):
        try:
            chosen(_KINDS[name], words)
        except ValueError as error:
            yield Violation(child_path(path, name), f"is {show(words)}, but must be known: {error}")


def _senders_fit(network: spec_pb2.NetworkModel, path: str) -> Iterator[Violation]:
    ends = [extent(group.count) for group in network.groups]
    if sum(low for low, _ in ends) < 1:
        yield Violation(
            path, "may be a network without senders, but the least counts must add up to 1 or more"
        )
    most = sum(high for _, high in ends)
    if most > _MOST_SENDERS:
        yield Violation(
            path, f"may be {most:.0f} senders, but must be at most {_MOST_SENDERS} together"
        )
    for number, group in enumerate(network.groups):
        yield from _group_fits(network, group, f"{path}[{number}]")


def _group_fits(
    network: spec_pb2.NetworkModel, group: spec_pb2.GroupModel, path: str
) -> Iterator[Violation]:
    broken = [
        *_can_be_chosen(group, "protocol", path),
        *_can_be_chosen(group, "body", path),
        *_can_be_chosen(network, "queue", path),
    ]
    # That of the queue is told of once, with the network.
    yield from (each for each in broken if not each.path.endswith("queue"))
    if broken or group.WhichOneof("controller") is None:
        return
    is_protocol = group.HasField("protocol")
    body = body_of(group)
    name = body.name if body is not None else "tcp" if is_protocol else "datagram"
    traits = registry.entries(Registry.BODY)[name].traits
    if (registry.CARRIES_PROTOCOLS if is_protocol else registry.CARRIES_TABLES) not in traits:
        what = "protocol" if is_protocol else "table"
        yield Violation(child_path(path, "body"), f"is {show(name)}, but that carries no {what}")
    if network.HasField("measurement") and registry.MEASURES not in traits:
        yield Violation(
            child_path(path, "body"),
            f"is {show(name)}, but where the network has a measurement it must be one that "
            "measures with noise, as datagram does",
        )
    if not is_protocol:
        return
    needs = registry.entries(Registry.PROTOCOL)[
        chosen(Registry.PROTOCOL, group.protocol).name
    ].traits
    queue = chosen(Registry.QUEUE, network.queue or _PLAIN_QUEUE).name
    is_router = registry.IS_XCP_ROUTER in registry.entries(Registry.QUEUE)[queue].traits
    if registry.NEEDS_XCP_ROUTER in needs and not is_router:
        yield Violation(
            child_path(path, "protocol"),
            f"is {show(group.protocol)}, but that needs an XCP router, and the network's queue is "
            f"{queue}",
        )
    if registry.IS_ALONE in needs:
        yield Violation(
            child_path(path, "protocol"),
            f"is {show(group.protocol)}, but that shares its link with nobody else",
        )


def mixture_is_sound(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    """There are networks to draw, and something on them that is designed and scored."""
    if spec.HasField("network") and spec.models:
        yield Violation(path, "has network and models, but must have one of them")
        return
    network = child_path(path, "network")
    where = child_path(path, "models") if spec.models else child_path(network, "groups")
    if spec.models and not any(model.weight > 0 for model in spec.models):
        yield Violation(where, "have weights that are all 0, but one must be positive")
        return
    drawn = [model for model in models(spec) if model.weight > 0]
    groups = [group for model in drawn for group in model.groups]
    # Senders without groups are designed, and scored.
    if all(model.network.groups for model in drawn):
        if not any(group.HasField("design") and extent(group.count)[1] > 0 for group in groups):
            yield Violation(
                where, "leave nothing to design, but a group that has senders must have design"
            )
        elif not any(_counts(group) for group in groups):
            yield Violation(where, "have weights that are all 0, but somebody must be scored")
    if len(names := designs(spec)) > 1 and spec.search.mode == spec_pb2.SEARCH_MODE_PAPER:
        yield Violation(
            where,
            f"design {' and '.join(names)} together, but search.mode must be joint or pattern then",
        )
    for name in names:
        if not _PLAIN_NAME.fullmatch(name):
            yield Violation(
                where,
                f"design {show(name)}, but names of tables must consist of letters, digits, dots, "
                "dashes and underscores, with a letter or digit first",
            )
    yield from _flows_are_counted(spec, path)
    yield from _signals_are_seen(spec, path)


def _counts(group: spec_pb2.GroupModel) -> bool:
    weight = group.weight if group.HasField("weight") else 1.0
    return weight > 0 and extent(group.count)[1] > 0


def _flows_are_counted(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    for model in models(spec):
        for group in model.groups:
            objective = group.objective if group.HasField("objective") else spec.objective
            if (
                objective.throughput == spec_pb2.THROUGHPUT_MEASURE_COMPLETION
                and model.traffic_of(group).WhichOneof("on") == "exponential_time"
                and _counts(group)
            ):
                yield Violation(
                    child_path(child_path(path, "objective"), "throughput"),
                    "is completion, but no flow completes where senders are on by time; give "
                    "exponential_bytes or flow_lengths",
                )
                return


def _signals_are_seen(spec: spec_pb2.DesignSpec, path: str) -> Iterator[Violation]:
    others = [signal for signal in spec.signals if signal and axis_of(signal) >= USUAL_AXES]
    if others and not all(_is_plain(spec, model.network) for model in models(spec)):
        yield Violation(
            child_path(path, "signals"),
            "has other than the usual ones, but these are seen by datagrams before a drop-tail "
            "queue only, where nobody runs a protocol",
        )


def _is_plain(spec: spec_pb2.DesignSpec, network: spec_pb2.NetworkModel) -> bool:
    return (
        network.queue in ("", _PLAIN_QUEUE)
        and spec.objective.throughput != spec_pb2.THROUGHPUT_MEASURE_COMPLETION
        and all(group.HasField("design") and not group.body for group in network.groups)
    )
