"""Links: what a specification says of them, values of what varies, and what a simulator is told.

The same for a network of simulate --network, which has a value for everything
(docs/reference/networks.md).
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

# A packet of 1500 bytes is 12 kbit: 1 Mbit/s is a twelfth of a packet per millisecond.
KILOBITS_PER_PACKET: Final = 12
USUAL_PACKET_BYTES: Final = 1500

#: Mbit/s as packets per millisecond.
PacketRate = Callable[[float], float]
#: A value of a distribution.
Take = Callable[[spec_pb2.Distribution], float]

_BITS_PER_BYTE: Final = 8
_BITS_PER_MS_IN_MBPS: Final = 1000.0
_BYTES_PER_KILOBYTE: Final = 1000
#: No queue holds more, whatever its size is given in.
MOST_BUFFER_PACKETS: Final = 1_000_000
#: Kinds of buffers whose packets depend on the network.
_BUFFERS_BY_PATH: Final = ("ms", "bdp", "kilobytes")
_DISTRIBUTION: Final = descriptor_of(spec_pb2.Distribution).full_name
DROP_TAIL: Final = evaluation_pb2.Choice(name="drop-tail")
# More than the number of any field of a link, or of a message in it.
_FIELDS: Final = 32
#: The number of a link's `buffer.packets`. It was a field of the link when the first seeds were
#: given a meaning, and its draws keep that name.
BUFFER_OF_A_LINK: Final = 6
#: What a link of a dumbbell may say.
_PLAIN: Final = frozenset({"name", "rate_mbps", "buffer", "queue", "loss_probability"})


_KEPT_NUMBERS: Final = {
    descriptor_of(spec_pb2.Buffer).fields_by_name["packets"].full_name: BUFFER_OF_A_LINK
}


@cache
def chosen(kind: Registry, text: str) -> evaluation_pb2.Choice:
    """What words stand for; not to be changed. Raises ValueError with one sentence."""
    return registry.parse(kind, text)


def distributions(message: Message, number: int = 0) -> Iterator[tuple[int, spec_pb2.Distribution]]:
    """All quantities that a message has, by the numbers of the fields that lead to each.

    A number stays what it is when fields are added, and is below 32^3.
    """
    for field in fields_of(message):
        if field.is_repeated or not is_submessage(field) or not message.HasField(field.name):
            continue
        inner, own = getattr(message, field.name), number * _FIELDS + field.number
        own = _KEPT_NUMBERS.get(field.full_name, own)
        if descriptor_of(inner).full_name == _DISTRIBUTION:
            yield own, inner
        else:
            yield from distributions(inner, own)


def with_values(link: spec_pb2.LinkModel, values: Iterable[float]) -> spec_pb2.LinkModel:
    """The link where each quantity has a value, in the order of `distributions`."""
    exact = spec_pb2.LinkModel()
    exact.CopyFrom(link)
    for (_, distribution), value in zip(distributions(exact), values, strict=True):
        distribution.exact = value
    return exact


def with_each(link: spec_pb2.LinkModel, take: Take) -> spec_pb2.LinkModel:
    """The link where each quantity has what `take` makes of it."""
    return with_values(link, [take(each) for _, each in distributions(link)])


def names_of(links: Iterable[spec_pb2.LinkModel]) -> list[str]:
    """What routes call the links."""
    return [link.name or str(number) for number, link in enumerate(links)]


def numbers_of(route: Sequence[str], links: Iterable[spec_pb2.LinkModel]) -> list[int]:
    """The places of the links that a route has by name or number. Raises ValueError for one that is
    not there."""
    names = names_of(links)
    return [number_of(each, names) for each in route]


def number_of(link: str, names: Sequence[str]) -> int:
    """The place of a link by its name, or its number from 0. Raises ValueError if it has none."""
    if link not in names and link.isdecimal() and int(link) < len(names):
        return int(link)
    return names.index(link)


def is_dumbbell(network: spec_pb2.NetworkModel) -> bool:
    """Whether one link of constant rate, queue and loss is all that packets and ACKs meet."""
    if not network.links:
        return True
    (first, *others) = network.links
    given = {field.name for field, _ in first.ListFields()}
    if "delay_ms" in given and first.delay_ms.exact == 0 and first.delay_ms.HasField("exact"):
        given.remove("delay_ms")
    returns = any(group.route.return_links for group in network.sender_groups)
    return not others and first.HasField("rate_mbps") and given <= _PLAIN and not returns


def as_dumbbell(network: spec_pb2.NetworkModel) -> spec_pb2.NetworkModel:
    """A network of one plain link as one that says it without links; others as they are."""
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


def in_packets(link: spec_pb2.LinkModel) -> spec_pb2.LinkModel:
    """The link with a buffer in packets, whose number is still to be said, where its size depends
    on the rate, the RTT or the size of packets."""
    if link.buffer.WhichOneof("kind") not in _BUFFERS_BY_PATH:
        return link
    found = spec_pb2.LinkModel()
    found.CopyFrom(link)
    found.buffer.packets.exact = 0
    return found


def buffer_size(buffer: spec_pb2.Buffer) -> spec_pb2.Distribution | None:
    """The size of a buffer, in what it is given in; None where it is infinite."""
    kind = buffer.WhichOneof("kind")
    return getattr(buffer, kind) if kind not in (None, "infinite") else None


def number_of_size(link: spec_pb2.LinkModel) -> int:
    """The number that `distributions` gives the size of a link's buffer."""
    kind = link.buffer.WhichOneof("kind") or ""
    size = descriptor_of(link.buffer).fields_by_name[kind]
    own = spec_pb2.LinkModel.BUFFER_FIELD_NUMBER * _FIELDS + size.number
    return _KEPT_NUMBERS.get(size.full_name, own)


def buffer_packets(
    buffer: spec_pb2.Buffer,
    size: Any,
    *,
    rate_packets_per_ms: Any,
    rtt_ms: Any,
    packet_bytes: float,
) -> Any:
    """Converts the size of a buffer to packets, not yet rounded down; takes numbers or arrays."""
    match buffer.WhichOneof("kind"):
        case "ms":
            return rate_packets_per_ms * size
        case "bdp":
            return rate_packets_per_ms * rtt_ms * size
        case "kilobytes":
            return size * _BYTES_PER_KILOBYTE / packet_bytes
    return size


def link_rate_packets_per_ms(mbps: float, bytes_a_packet: float = USUAL_PACKET_BYTES) -> float:
    """Mbit/s as packets per millisecond."""
    return mbps * _BITS_PER_MS_IN_MBPS / (bytes_a_packet * _BITS_PER_BYTE)


def rate_in_mbps(packets_per_ms: float, bytes_a_packet: float = USUAL_PACKET_BYTES) -> float:
    """Packets per millisecond as Mbit/s, the inverse of `link_rate_packets_per_ms`."""
    return packets_per_ms * (bytes_a_packet * _BITS_PER_BYTE) / _BITS_PER_MS_IN_MBPS


def off_ms_of_load(load: Any, senders: Any, mean_bytes: Any, rate_mbps: Any) -> Any:
    """The mean off time with which senders ask for a share of a link, as if flows took no time;
    numbers or arrays of them."""
    bits = senders * mean_bytes * _BITS_PER_BYTE
    return bits / (load * rate_mbps * _BITS_PER_MS_IN_MBPS)


def kilobits_per_packet(network: spec_pb2.NetworkModel) -> float:
    """The size of the network's packets."""
    return KILOBITS_PER_PACKET * (network.packet_bytes or USUAL_PACKET_BYTES) / USUAL_PACKET_BYTES


def usual_rate(mbps: float) -> float:
    """Mbit/s as packets of 1500 bytes per millisecond."""
    return mbps / KILOBITS_PER_PACKET


def link_message(link: spec_pb2.LinkModel, rate: PacketRate = usual_rate) -> evaluation_pb2.Link:
    """What a simulator is told of a link whose quantities all have a value.

    Raises ValueError where its queue is not known.
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
        message.buffer_packets = int(min(link.buffer.packets.exact, MOST_BUFFER_PACKETS))
    if link.queue and (queue := chosen(Registry.QUEUE, link.queue)) != DROP_TAIL:
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
    """Of a link whose quantities all have a value, over the long run: what its trace, generator,
    schedule or walk comes to, in packets of 1500 bytes. Raises ValueError for a link that no
    simulator takes.
    """
    if link.HasField("trace"):
        return link.trace.mean_rate_mbps
    if link.HasField("rate_mbps") and not (link.HasField("schedule") or link.HasField("walk")):
        return link.rate_mbps.exact
    native = native_link(link_message(link), Traces())
    return native.mean_rate_packets_per_ms(float(USUAL_PACKET_BYTES)) * KILOBITS_PER_PACKET


def _copy(model: Message, message: Any) -> None:
    """The values of a model's quantities to the fields of their names."""
    for field in fields_of(model):
        if is_submessage(field) and model.HasField(field.name):
            value = getattr(model, field.name).exact
            is_whole = isinstance(getattr(message, field.name), int)
            setattr(message, field.name, int(value) if is_whole else value)


def _set_schedule(
    message: evaluation_pb2.LinkSchedule, schedule: spec_pb2.LinkScheduleModel, rate: PacketRate
) -> None:
    for step in schedule.steps:
        told = message.steps.add(at_ms=step.at_ms)
        if step.HasField("rate_mbps"):
            told.rate_packets_per_ms = rate(step.rate_mbps)
        if step.HasField("delay_ms"):
            told.delay_ms = step.delay_ms
        if step.HasField("loss_probability"):
            told.loss_probability = step.loss_probability
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
