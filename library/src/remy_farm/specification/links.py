"""Converts the links of specifications and network files into the simulator's messages.

A network file (docs/reference/networks.md) has one value for every quantity; a specification may
have distributions, which are first replaced by drawn values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from google.protobuf.message import Message

from remy_farm.specification.schema import descriptor_of, fields_of, is_submessage
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import registry
from remy_simulator.messages import native_link
from remy_simulator.registry import Registry
from remy_simulator.traces import Traces

# A packet of 1500 bytes is 12 kbit, so 1 Mbit/s is 1/12 packet per millisecond.
KILOBITS_PER_PACKET: Final = 12
DEFAULT_PACKET_BYTES: Final = 1500

#: Converts Mbit/s to packets per millisecond.
PacketRate = Callable[[float], float]
#: Picks one value of a distribution, such as its median.
ValueOf = Callable[[spec_pb2.Distribution], float]

_BITS_PER_BYTE: Final = 8
_BITS_PER_MS_IN_MBPS: Final = 1000.0
_BYTES_PER_KILOBYTE: Final = 1000
#: Largest queue; a size that is given in another unit is clamped to it.
MAX_BUFFER_PACKETS: Final = 1_000_000
#: Kinds of buffers for which the number of packets depends on the rate, RTT or packet size.
_BUFFERS_BY_PATH: Final = ("ms", "bdp", "kilobytes")
_DISTRIBUTION: Final = descriptor_of(spec_pb2.Distribution).full_name
DROP_TAIL: Final = evaluation_pb2.Choice(name="drop-tail")
# Larger than any field number of a link, or of a message in it.
_FIELDS: Final = 32
#: The number that names the draws of a link's `buffer.packets`. It is the number of a former field
#: of the link; a new number would change the networks that existing seeds draw.
LINK_BUFFER_NUMBER: Final = 6
#: Keys that the link of a dumbbell may have.
_PLAIN: Final = frozenset({"name", "rate_mbps", "buffer", "queue", "loss_probability"})


_KEPT_NUMBERS: Final = {
    descriptor_of(spec_pb2.Buffer).fields_by_name["packets"].full_name: LINK_BUFFER_NUMBER
}


@cache
def parse_choice(kind: Registry, text: str) -> evaluation_pb2.Choice:
    """Parses a choice such as `codel,target_ms=5`. Callers must not modify the cached result.

    Raises ValueError with one sentence.
    """
    return registry.parse(kind, text)


def distributions(message: Message, number: int = 0) -> Iterator[tuple[int, spec_pb2.Distribution]]:
    """The distributions in a message, each with a number made of the field numbers on its path.

    Adding fields does not change these numbers. They are below 32^3.
    """
    for field in fields_of(message):
        if field.is_repeated or not is_submessage(field) or not message.HasField(field.name):
            continue
        inner, inner_number = getattr(message, field.name), number * _FIELDS + field.number
        inner_number = _KEPT_NUMBERS.get(field.full_name, inner_number)
        if descriptor_of(inner).full_name == _DISTRIBUTION:
            yield inner_number, inner
        else:
            yield from distributions(inner, inner_number)


def with_values(link: spec_pb2.LinkModel, values: Iterable[float]) -> spec_pb2.LinkModel:
    """A copy of the link in which each quantity has one of `values`, in `distributions` order."""
    exact = spec_pb2.LinkModel()
    exact.CopyFrom(link)
    for (_, distribution), value in zip(distributions(exact), values, strict=True):
        distribution.exact = value
    return exact


def with_values_of(link: spec_pb2.LinkModel, value_of: ValueOf) -> spec_pb2.LinkModel:
    """A copy of the link in which each quantity has the value that `value_of` picks."""
    return with_values(link, [value_of(each) for _, each in distributions(link)])


def link_names(links: Iterable[spec_pb2.LinkModel]) -> list[str]:
    """The names by which routes refer to the links: a link without a name has its number."""
    return [link.name or str(number) for number, link in enumerate(links)]


def link_indices(route: Sequence[str], links: Iterable[spec_pb2.LinkModel]) -> list[int]:
    """The indices of the links of a route, which are given by name or number.

    Raises ValueError for a link that does not exist.
    """
    names = link_names(links)
    return [link_index(each, names) for each in route]


def link_index(link: str, names: Sequence[str]) -> int:
    """The index of a link by its name or its number from 0. Raises ValueError if it is unknown."""
    if link not in names and link.isdecimal() and int(link) < len(names):
        return int(link)
    return names.index(link)


def is_dumbbell(network: spec_pb2.NetworkModel) -> bool:
    """Whether the network is a single link of constant rate and loss that ACKs do not cross."""
    if not network.links:
        return True
    (first, *others) = network.links
    given = {field.name for field, _ in first.ListFields()}
    if "delay_ms" in given and first.delay_ms.exact == 0 and first.delay_ms.HasField("exact"):
        given.remove("delay_ms")
    returns = any(group.route.return_links for group in network.sender_groups)
    return not others and first.HasField("rate_mbps") and given <= _PLAIN and not returns


def as_dumbbell(network: spec_pb2.NetworkModel) -> spec_pb2.NetworkModel:
    """Rewrites a network of one plain link into the equivalent network without `links`.

    Other networks are returned unchanged.
    """
    if not network.links or not is_dumbbell(network):
        return network
    (link,) = network.links
    dumbbell = spec_pb2.NetworkModel()
    dumbbell.CopyFrom(network)
    dumbbell.ClearField("links")
    for group in dumbbell.sender_groups:
        group.ClearField("route")
    dumbbell.rate_mbps.CopyFrom(link.rate_mbps)
    dumbbell.loss_probability.CopyFrom(link.loss_probability)
    dumbbell.buffer.CopyFrom(link.buffer)
    if link.queue:
        dumbbell.queue = link.queue
    return dumbbell


def with_buffer_in_packets(link: spec_pb2.LinkModel) -> spec_pb2.LinkModel:
    """A copy of the link with a buffer of 0 packets, for the caller to set, if the number of
    packets depends on the rate, the RTT or the packet size. Other links are returned unchanged."""
    if link.buffer.WhichOneof("kind") not in _BUFFERS_BY_PATH:
        return link
    copy = spec_pb2.LinkModel()
    copy.CopyFrom(link)
    copy.buffer.packets.exact = 0
    return copy


def buffer_size(buffer: spec_pb2.Buffer) -> spec_pb2.Distribution | None:
    """The size of a buffer in the unit it is given in; None if the buffer is infinite."""
    kind = buffer.WhichOneof("kind")
    return getattr(buffer, kind) if kind not in (None, "infinite") else None


def buffer_size_number(link: spec_pb2.LinkModel) -> int:
    """The number that `distributions` gives to the size of a link's buffer."""
    kind = link.buffer.WhichOneof("kind") or ""
    size = descriptor_of(link.buffer).fields_by_name[kind]
    number = spec_pb2.LinkModel.BUFFER_FIELD_NUMBER * _FIELDS + size.number
    return _KEPT_NUMBERS.get(size.full_name, number)


def buffer_packets(
    buffer: spec_pb2.Buffer,
    size: Any,
    *,
    rate_packets_per_ms: Any,
    rtt_ms: Any,
    packet_bytes: float,
) -> Any:
    """Converts the size of a buffer to packets, without rounding; accepts numbers or arrays."""
    match buffer.WhichOneof("kind"):
        case "ms":
            return rate_packets_per_ms * size
        case "bdp":
            return rate_packets_per_ms * rtt_ms * size
        case "kilobytes":
            return size * _BYTES_PER_KILOBYTE / packet_bytes
    return size


def link_rate_packets_per_ms(mbps: float, bytes_a_packet: float = DEFAULT_PACKET_BYTES) -> float:
    """Converts Mbit/s to packets per millisecond."""
    return mbps * _BITS_PER_MS_IN_MBPS / (bytes_a_packet * _BITS_PER_BYTE)


def rate_in_mbps(packets_per_ms: float, bytes_a_packet: float = DEFAULT_PACKET_BYTES) -> float:
    """Converts packets per millisecond to Mbit/s; the inverse of `link_rate_packets_per_ms`."""
    return packets_per_ms * (bytes_a_packet * _BITS_PER_BYTE) / _BITS_PER_MS_IN_MBPS


def off_ms_of_load(load: Any, senders: Any, mean_bytes: Any, rate_mbps: Any) -> Any:
    """The mean off time in ms at which `senders` offer the share `load` of a link, neglecting the
    duration of flows; accepts numbers or arrays."""
    bits = senders * mean_bytes * _BITS_PER_BYTE
    return bits / (load * rate_mbps * _BITS_PER_MS_IN_MBPS)


def kilobits_per_packet(network: spec_pb2.NetworkModel) -> float:
    """The size of the network's packets in kbit."""
    return (
        KILOBITS_PER_PACKET * (network.packet_bytes or DEFAULT_PACKET_BYTES) / DEFAULT_PACKET_BYTES
    )


def default_packet_rate(mbps: float) -> float:
    """Converts Mbit/s to packets of 1500 bytes per millisecond."""
    return mbps / KILOBITS_PER_PACKET


def link_message(
    link: spec_pb2.LinkModel, rate: PacketRate = default_packet_rate
) -> evaluation_pb2.Link:
    """The simulator's message for a link in which every quantity has one value.

    Raises ValueError if the link's queue is unknown.
    """
    message = evaluation_pb2.Link(
        delay_ms=link.delay_ms.exact, loss_probability=link.loss_probability.exact
    )
    match link.WhichOneof("driver"):
        case "rate_mbps":
            message.rate_packets_per_ms = rate(link.rate_mbps.exact)
        case "trace":
            message.trace.sha256 = bytes.fromhex(link.trace.sha256)
            message.trace.semantics = link.trace.semantics
            message.trace.ends = link.trace.ends
        case "generated":
            message.generated.semantics = link.generated.semantics
            _copy(link.generated, message.generated.generator)
            if link.generated.HasField("seed"):
                message.generated.generator.seed = link.generated.seed
    if link.buffer.HasField("packets"):
        message.buffer_packets = int(min(link.buffer.packets.exact, MAX_BUFFER_PACKETS))
    if link.queue and (queue := parse_choice(Registry.QUEUE, link.queue)) != DROP_TAIL:
        message.queue.CopyFrom(queue)
    if link.HasField("gilbert_elliott"):
        message.gilbert_elliott.SetInParent()
        _copy(link.gilbert_elliott, message.gilbert_elliott)
    if link.HasField("schedule"):
        _set_schedule(message.schedule, link.schedule, rate)
    if link.HasField("walk"):
        _set_walk(message.walk, link.walk, rate)
    if link.HasField("policer"):
        message.policer.rate_packets_per_ms = rate(link.policer.rate_mbps.exact)
        message.policer.burst_packets = link.policer.burst_packets.exact
    if (holds := link.jitter_box.WhichOneof("holds")) is not None:
        box: Any = getattr(message.jitter_box, holds)
        box.SetInParent()
        _copy(getattr(link.jitter_box, holds), box)
        if holds == "random":
            box.reorders = link.jitter_box.random.reorders
    return message


def mean_rate_mbps(link: spec_pb2.LinkModel) -> float:
    """The long-run mean rate of a link in packets of 1500 bytes, over its trace, schedule or walk.

    Every quantity of the link must have one value. Raises ValueError for a link that the simulator
    refuses.
    """
    if link.HasField("trace"):
        return link.trace.mean_rate_mbps
    if link.HasField("rate_mbps") and not (link.HasField("schedule") or link.HasField("walk")):
        return link.rate_mbps.exact
    native = native_link(link_message(link), Traces())
    return native.mean_rate_packets_per_ms(float(DEFAULT_PACKET_BYTES)) * KILOBITS_PER_PACKET


def _copy(model: Message, message: Any) -> None:
    """Copies the values of a model's quantities to the message's fields of equal name."""
    for field in fields_of(model):
        if is_submessage(field) and model.HasField(field.name):
            value = getattr(model, field.name).exact
            is_whole = isinstance(getattr(message, field.name), int)
            setattr(message, field.name, int(value) if is_whole else value)


def _set_schedule(
    message: evaluation_pb2.LinkSchedule, schedule: spec_pb2.LinkScheduleModel, rate: PacketRate
) -> None:
    for step in schedule.steps:
        added = message.steps.add(at_ms=step.at_ms)
        if step.HasField("rate_mbps"):
            added.rate_packets_per_ms = rate(step.rate_mbps)
        if step.HasField("delay_ms"):
            added.delay_ms = step.delay_ms
        if step.HasField("loss_probability"):
            added.loss_probability = step.loss_probability
    message.repeat_after_ms = schedule.repeat_after_ms


def _set_walk(
    message: evaluation_pb2.LinkWalk, walk: spec_pb2.LinkWalkModel, rate: PacketRate
) -> None:
    message.every_ms, message.step = walk.every_ms, walk.step
    if walk.HasField("rate_mbps"):
        message.rate_packets_per_ms.least = rate(walk.rate_mbps.low)
        message.rate_packets_per_ms.most = rate(walk.rate_mbps.high)
    if walk.HasField("delay_ms"):
        message.delay_ms.least, message.delay_ms.most = walk.delay_ms.low, walk.delay_ms.high
    if walk.HasField("loss_probability"):
        message.loss_probability.least = walk.loss_probability.low
        message.loss_probability.most = walk.loss_probability.high
