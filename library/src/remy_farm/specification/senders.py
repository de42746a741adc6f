"""Parses sender options such as `cubic=3` and `remycc:FILE,transport=ns2`, and formats choices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from remy_farm.specification.links import DEFAULT_PACKET_BYTES as DEFAULT_PACKET_BYTES
from remy_farm.specification.links import DROP_TAIL
from remy_proto.v1 import evaluation_pb2
from remy_simulator import registry
from remy_simulator.registry import Registry

REMYCC = "remycc:"
#: Throughput measure of transports without retransmission, as results name it.
PACKETS_RECEIVED = "packets_received"
_PACKETS_IN_ORDER = "packets_in_order"
MAX_SENDERS = 10_000

TCP = "tcp"
DATAGRAM = "datagram"
_COUNT_SUFFIX = re.compile("(.*)=(-?[0-9]+)", re.DOTALL)
#: Settings that are not parameters of a protocol or a transport.
_TRANSPORT, _TRANSPORT_VARIANT, _RTT = "transport", "transport_variant", "rtt_ms"


@dataclass(frozen=True)
class SenderSpec:
    """Senders of one kind, as one --sender option (NAME[,SETTING=VALUE ...][=COUNT]) names them."""

    name: str
    """The option's text without the count; the senders' name in results."""
    count: int
    remycc: str | None
    """Path of the RemyCC's file; None if `protocol` is set."""
    protocol: evaluation_pb2.Choice | None
    transport: evaluation_pb2.Choice | None
    """The transport that the option names; None if it names none."""
    rtt_ms: float | None = None
    """RTT of the senders' path; None if the option gives none."""

    def transport_or(self, default: evaluation_pb2.Choice | None) -> evaluation_pb2.Choice | None:
        """The senders' transport, where `default` is that of RemyCCs that name none.

        Protocols need TCP: they take over `default` only if it is a TCP. Returns None for the
        built-in default, which is datagram for RemyCCs and tcp for protocols.
        """
        chosen = self.transport or default
        is_protocol = self.remycc is None
        if self.transport is None and is_protocol and default is not None and default.name != TCP:
            chosen = None
        return None if chosen == evaluation_pb2.Choice(name=self._builtin_transport) else chosen

    @property
    def _builtin_transport(self) -> str:
        return TCP if self.remycc is None else DATAGRAM

    def sender_group(
        self, default_transport: evaluation_pb2.Choice | None
    ) -> evaluation_pb2.SenderGroup:
        """A SenderGroup with protocol, transport and route, without count, table and traffic."""
        group = evaluation_pb2.SenderGroup(
            protocol=self.protocol, transport=self.transport_or(default_transport)
        )
        if self.rtt_ms is not None:
            group.route.delay_ms = self.rtt_ms / 2
            group.route.return_delay_ms = self.rtt_ms - group.route.delay_ms
        return group

    def network_keys(self) -> dict[str, str | float]:
        """The equivalent keys of a sender in a network file, except `count` and `name`."""
        keys: dict[str, str | float] = {}
        if self.remycc is not None:
            keys["table"] = self.remycc
        elif self.protocol is not None:
            keys["protocol"] = format_choice(self.protocol)
        if self.transport is not None:
            keys["transport"] = format_choice(self.transport)
        if self.rtt_ms is not None:
            keys["rtt_ms"] = self.rtt_ms
        return keys

    def throughput_measure(self, default_transport: evaluation_pb2.Choice | None) -> str:
        """The result field that counts as these senders' throughput."""
        transport = self.transport_or(default_transport)
        name = transport.name if transport else self._builtin_transport
        traits = registry.entries(Registry.TRANSPORT)[name].traits
        return PACKETS_RECEIVED if registry.COUNTS_RECEIVED in traits else _PACKETS_IN_ORDER


def parse_sender(text: str) -> SenderSpec:
    """Parses the value of a --sender option. Raises ValueError with one sentence."""
    without_count, count = text, 1
    counted = _COUNT_SUFFIX.fullmatch(text)
    # "aimd,increase_packets=1" ends in a setting; "aimd=1" and "aimd,increase_packets=1=1" end in a
    # count.
    if counted and not (
        "," in counted[1] and registry.SETTING.fullmatch(counted[1].rpartition(",")[2])
    ):
        without_count, count = counted[1], int(counted[2])
    if not 1 <= count <= MAX_SENDERS:
        raise ValueError(f"'{text}' asks for {count} senders; it must be 1 to {MAX_SENDERS}")
    is_remycc = without_count.startswith(REMYCC)
    head, settings = registry.split_settings(without_count, may_have_commas=is_remycc)
    rtt_ms = registry.number(head, _RTT, settings.pop(_RTT)) if _RTT in settings else None
    if rtt_ms is not None and rtt_ms <= 0:
        raise ValueError(f"'{text}' has an RTT of {rtt_ms:g} ms; it must be above 0")
    transport_name = settings.pop(_TRANSPORT, None)
    protocol = None
    if not is_remycc:
        protocol_settings = _protocol_settings(head, settings)
        protocol = registry.choose(Registry.PROTOCOL, head, protocol_settings)
        settings = {
            name: value for name, value in settings.items() if name not in protocol_settings
        }
    elif head == REMYCC:
        raise ValueError(f"'{text}' names no file; a RemyCC is {REMYCC}FILE")
    transport = None
    if transport_name is not None or (settings and not is_remycc):
        if _TRANSPORT_VARIANT in settings:
            settings[registry.VARIANT] = settings.pop(_TRANSPORT_VARIANT)
        transport = registry.choose(Registry.TRANSPORT, transport_name or TCP, settings)
        _check_transport(text, is_remycc, transport)
    elif settings:
        raise ValueError(f"'{text}' has settings of a transport, but no transport=NAME")
    remycc = head.removeprefix(REMYCC) if is_remycc else None
    return SenderSpec(without_count, count, remycc, protocol, transport, rtt_ms)


def format_choice(choice: evaluation_pb2.Choice) -> str:
    """Formats a choice in the way that --queue and --transport accept."""
    parts = [choice.name, *([f"{registry.VARIANT}={choice.variant}"] if choice.variant else [])]
    return ",".join((*parts, *(f"{each.name}={each.value:.15g}" for each in choice.parameters)))


def _check_transport(text: str, is_remycc: bool, transport: evaluation_pb2.Choice) -> None:
    """Raises ValueError if the transport cannot carry what the senders run."""
    needed = registry.RUNS_TABLES if is_remycc else registry.RUNS_PROTOCOLS
    if needed not in registry.entries(Registry.TRANSPORT)[transport.name].traits:
        carried = "protocols only" if is_remycc else f"RemyCCs only; protocols need {TCP}"
        raise ValueError(f"'{text}' uses the transport {transport.name}, which runs {carried}")


def check_default_transport(
    senders: Iterable[SenderSpec], default: evaluation_pb2.Choice | None
) -> None:
    """Raises ValueError if none of the senders can use the value of --transport."""
    if default is None:
        return
    traits = registry.entries(Registry.TRANSPORT)[default.name].traits
    are_protocols = all(each.remycc is None for each in senders)
    if registry.RUNS_PROTOCOLS not in traits and are_protocols:
        raise ValueError(
            f"--transport {default.name} runs RemyCCs only, but all senders run protocols, "
            f"which need {TCP}"
        )


def _protocol_settings(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that belong to the protocol, not to the TCP under it.

    A setting that neither knows counts as the protocol's, so that the error names the protocol.
    """
    registry.check(Registry.PROTOCOL, evaluation_pb2.Choice(name=name))
    protocol = registry.entries(Registry.PROTOCOL)[name]
    tcp_variants = registry.entries(Registry.TRANSPORT)[TCP].variants
    of_transport = {
        _TRANSPORT_VARIANT,
        *(each.name for variant in tcp_variants for each in variant.parameters),
    }
    of_protocol = {each.name for variant in protocol.variants for each in variant.parameters}
    return {
        setting: value
        for setting, value in settings.items()
        if setting in of_protocol or setting not in of_transport
    }


def bottleneck(
    queue: evaluation_pb2.Choice | None, packet_bytes: float, ack_bytes: float
) -> evaluation_pb2.Bottleneck | None:
    """The bottleneck's settings that differ from the plain dumbbell; None if there are none."""
    settings = evaluation_pb2.Bottleneck(ack_bytes=ack_bytes)
    if queue is not None and queue != DROP_TAIL:
        settings.queue.CopyFrom(queue)
    if packet_bytes != DEFAULT_PACKET_BYTES:
        settings.packet_bytes = packet_bytes
    return settings if settings.ByteSize() else None
