"""Senders and queues in words: `cubic=3`, `remycc:FILE,transport=ns2`, `codel`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from remy_proto.v1 import evaluation_pb2
from remy_simulator import registry
from remy_simulator.registry import Registry

REMYCC = "remycc:"
#: What counts as throughput where nothing is sent again.
RECEIVED = "packets_received"
MOST_SENDERS = 10_000

TCP = "tcp"
_USUAL_QUEUE = "drop-tail"
_COUNTED = re.compile("(.*)=(-?[0-9]+)", re.DOTALL)
#: Settings that are not parameters.
_TRANSPORT, _TRANSPORT_VARIANT, _RTT = "transport", "transport_variant", "rtt_ms"


@dataclass(frozen=True)
class Words:
    """What one --sender asks for: WHAT[,NAME=VALUE ...][=COUNT]."""

    name: str
    """The words without the number: what results call these senders."""
    count: int
    remycc: str | None
    """A RemyCC's file; none where there is a protocol."""
    protocol: evaluation_pb2.Choice | None
    body: evaluation_pb2.Choice | None
    """If these words say what carries it."""
    rtt_ms: float | None = None
    """If these words say how far away they are."""

    def body_or(self, usual: evaluation_pb2.Choice | None) -> evaluation_pb2.Choice | None:
        """What carries it where RemyCCs are carried by `usual`; none: what is usual everywhere.

        Protocols are on TCP whatever RemyCCs are on, and on one like theirs if they are on TCP.
        """
        chosen = self.body or usual
        if self.body is None and self.remycc is None and usual is not None and usual.name != TCP:
            chosen = None
        everywhere = "datagram" if self.remycc is not None else TCP
        return None if chosen == evaluation_pb2.Choice(name=everywhere) else chosen

    def group(self, usual: evaluation_pb2.Choice | None) -> evaluation_pb2.SenderGroup:
        """What the senders run, without their number, table and load."""
        group = evaluation_pb2.SenderGroup(protocol=self.protocol, body=self.body_or(usual))
        if self.rtt_ms is not None:
            group.route.delay_ms = self.rtt_ms / 2
            group.route.return_delay_ms = self.rtt_ms - group.route.delay_ms
        return group

    def keys(self) -> dict[str, str | float]:
        """The keys of a network's file that say the same, but how many senders there are."""
        found: dict[str, str | float] = {}
        if self.remycc is not None:
            found["table"] = self.remycc
        elif self.protocol is not None:
            found["protocol"] = choice_words(self.protocol)
        if self.body is not None:
            found["transport"] = choice_words(self.body)
        if self.rtt_ms is not None:
            found["rtt_ms"] = self.rtt_ms
        return found

    def throughput_of(self, usual: evaluation_pb2.Choice | None) -> str:
        """What of a sender counts as throughput."""
        body = self.body_or(usual)
        name = body.name if body else TCP if self.remycc is None else "datagram"
        traits = registry.entries(Registry.TRANSPORT)[name].traits
        received = registry.COUNTS_RECEIVED in traits
        return RECEIVED if received else "packets_in_order"


def parse_sender(text: str) -> Words:
    """What a --sender says. Raises ValueError with one sentence."""
    what, count = text, 1
    counted = _COUNTED.fullmatch(text)
    # "aimd,increase_packets=1" is a setting, "aimd=1" and "aimd,increase_packets=1=1" are counted.
    if counted and not (
        "," in counted[1] and registry.SETTING.fullmatch(counted[1].rpartition(",")[2])
    ):
        what, count = counted[1], int(counted[2])
    if not 1 <= count <= MOST_SENDERS:
        raise ValueError(f"'{text}' asks for {count} senders; it must be 1 to {MOST_SENDERS}")
    is_remycc = what.startswith(REMYCC)
    head, settings = registry.take_settings(what, may_have_commas=is_remycc)
    rtt_ms = registry.number(head, _RTT, settings.pop(_RTT)) if _RTT in settings else None
    if rtt_ms is not None and rtt_ms <= 0:
        raise ValueError(f"'{text}' has an RTT of {rtt_ms:g} ms; it must be above 0")
    body_name = settings.pop(_TRANSPORT, None)
    protocol = None
    if not is_remycc:
        own = _of_protocol(head, settings)
        protocol = registry.choose(Registry.PROTOCOL, head, own)
        settings = {name: value for name, value in settings.items() if name not in own}
    elif head == REMYCC:
        raise ValueError(f"'{text}' names no file; a RemyCC is {REMYCC}FILE")
    body = None
    if body_name is not None or (settings and not is_remycc):
        if _TRANSPORT_VARIANT in settings:
            settings[registry.VARIANT] = settings.pop(_TRANSPORT_VARIANT)
        body = registry.choose(Registry.TRANSPORT, body_name or TCP, settings)
        _check_carries(text, is_remycc, body)
    elif settings:
        raise ValueError(f"'{text}' has settings of a transport, but no transport=NAME")
    remycc = head.removeprefix(REMYCC) if is_remycc else None
    return Words(what, count, remycc, protocol, body, rtt_ms)


def words_of_table(path: str) -> Words:
    """The words of a RemyCC's file."""
    return Words(f"{REMYCC}{path}", 1, path, None, None)


def carried_by(words: Words, body: evaluation_pb2.Choice) -> Words:
    """Puts senders on a transport. Raises ValueError where it cannot carry them."""
    _check_carries(words.name, words.remycc is not None, body)
    name = f"{words.name},{_TRANSPORT}={choice_words(body, _TRANSPORT_VARIANT)}"
    return replace(words, name=name, body=body)


def choice_words(choice: evaluation_pb2.Choice, variant: str = registry.VARIANT) -> str:
    """The words of a choice, as --queue and --transport take them."""
    parts = [choice.name, *([f"{variant}={choice.variant}"] if choice.variant else [])]
    return ",".join((*parts, *(f"{each.name}={each.value:.15g}" for each in choice.parameters)))


def _check_carries(text: str, is_remycc: bool, body: evaluation_pb2.Choice) -> None:
    needed = "carries RemyCCs" if is_remycc else "carries protocols"
    if needed not in registry.entries(Registry.TRANSPORT)[body.name].traits:
        raise ValueError(
            f"'{text}' is on {body.name}, which carries no "
            + ("RemyCC" if is_remycc else f"protocol; protocols are on {TCP}")
        )


def check_usual_body(words: Iterable[Words], usual: evaluation_pb2.Choice | None) -> None:
    """Refuses a body for all senders that none of them can be on. Raises ValueError."""
    if usual is None:
        return
    traits = registry.entries(Registry.TRANSPORT)[usual.name].traits
    if "carries protocols" not in traits and all(each.remycc is None for each in words):
        raise ValueError(
            f"--transport {usual.name} carries no protocol, and no sender runs anything else; "
            f"protocols are on {TCP}"
        )


def _of_protocol(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that are the protocol's; what is not its own may be its body's."""
    registry.check(Registry.PROTOCOL, evaluation_pb2.Choice(name=name))
    entry = registry.entries(Registry.PROTOCOL)[name]
    bodies = registry.entries(Registry.TRANSPORT)[TCP].variants
    elsewhere = {_TRANSPORT_VARIANT, *(each.name for body in bodies for each in body.parameters)}
    known = {each.name for variant in entry.variants for each in variant.parameters}
    return {
        setting: value
        for setting, value in settings.items()
        if setting in known or setting not in elsewhere
    }


def bottleneck(
    queue: evaluation_pb2.Choice | None, packet_bytes: float, ack_bytes: float
) -> evaluation_pb2.Bottleneck | None:
    """What a path has beyond the plain dumbbell; none: nothing."""
    found = evaluation_pb2.Bottleneck(ack_bytes=ack_bytes)
    if queue is not None and queue != evaluation_pb2.Choice(name=_USUAL_QUEUE):
        found.queue.CopyFrom(queue)
    if packet_bytes != USUAL_PACKET_BYTES:
        found.packet_bytes = packet_bytes
    return found if found.ByteSize() else None


USUAL_PACKET_BYTES = 1500
