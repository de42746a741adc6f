"""Tests parsing and completion of --sender, --transport and --queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_cli.main import main
from remy_cli.senders import QUEUE, SENDER, TRANSPORT
from remy_farm.specification.senders import REMYCC, bottleneck, parse_sender
from remy_proto.v1 import evaluation_pb2
from remy_simulator import registry
from remy_simulator.registry import Entry, Registry

RunJson = Callable[..., dict[str, Any]]


@st.composite
def choices(draw: st.DrawFn, entry: Entry) -> tuple[str, dict[str, float]]:
    """Draws a variant of an entry, and some of its parameters within their ranges."""
    variant = draw(st.sampled_from(entry.variants))
    numbers = {
        each.name: draw(st.floats(each.minimum, each.maximum))
        for each in variant.parameters
        if draw(st.booleans())
    }
    return variant.name, numbers


@st.composite
def sender_texts(
    draw: st.DrawFn,
) -> tuple[str, str, dict[str, float], str, dict[str, float], int | None]:
    """Draws the text of a protocol with settings in any order, and the parsed values."""
    name = draw(st.sampled_from(sorted(registry.entries(Registry.PROTOCOL))))
    variant, numbers = draw(choices(registry.entries(Registry.PROTOCOL)[name]))
    transport_variant, transport_numbers = draw(
        choices(registry.entries(Registry.TRANSPORT)["tcp"])
    )
    of_any_variant = {
        each.name
        for one in registry.entries(Registry.PROTOCOL)[name].variants
        for each in one.parameters
    }
    transport_numbers = {
        key: value for key, value in transport_numbers.items() if key not in of_any_variant
    }
    settings = [
        f"variant={variant}",
        f"transport_variant={transport_variant}",
        *(f"{key}={value!r}" for key, value in {**numbers, **transport_numbers}.items()),
    ]
    count = draw(st.none() | st.integers(1, 10_000))
    text = ",".join([name, *draw(st.permutations(settings))])
    text += "" if count is None else f"={count}"
    return text, name, numbers, transport_variant, transport_numbers, count


def parameter_values(choice: evaluation_pb2.Choice | None) -> dict[str, float]:
    return {} if choice is None else {each.name: each.value for each in choice.parameters}


@given(sender_texts())
def test_sender_option_sets_protocol_transport_and_count(
    case: tuple[str, str, dict[str, float], str, dict[str, float], int | None],
) -> None:
    text, name, numbers, transport_variant, transport_numbers, count = case
    parsed = parse_sender(text)
    assert parsed.count == (count or 1)
    assert parsed.remycc is None
    assert parsed.protocol is not None
    assert parsed.protocol.name == name
    assert parsed.transport is not None
    tcp = registry.entries(Registry.TRANSPORT)["tcp"]
    assert tcp.variant(parsed.transport.variant).name == transport_variant
    for given_numbers, choice in (
        (numbers, parsed.protocol),
        (transport_numbers, parsed.transport),
    ):
        assert parameter_values(choice).items() <= given_numbers.items()
    # A parameter that is given as its default is left out of the choice.
    variant = registry.entries(Registry.PROTOCOL)[name].variant(parsed.protocol.variant)
    for each in variant.parameters:
        if each.name in numbers and each.name not in parameter_values(parsed.protocol):
            assert numbers[each.name] == each.default
    assert parse_sender(f"{parsed.name}={parsed.count}") == parsed


@given(
    st.text(st.characters(exclude_categories=["C"]), min_size=1).filter(
        lambda path: "=" not in path
    ),
    st.integers(1, 10_000),
)
def test_remycc_file_may_have_any_name(path: str, count: int) -> None:
    parsed = parse_sender(f"{REMYCC}{path}={count}")
    assert (parsed.remycc, parsed.count, parsed.protocol) == (path, count, None)


@given(st.text())
def test_any_invalid_text_is_refused_in_one_sentence(text: str) -> None:
    for kind in (SENDER, QUEUE, TRANSPORT):
        try:
            kind.convert(text, None, None)
        except click.BadParameter as problem:
            sentence = problem.message
        else:
            sentence = "fine"
        assert sentence


@pytest.mark.parametrize(
    ("text", "count", "parameters"),
    [
        ("cubic", 1, {}),
        ("cubic=3", 3, {}),
        ("aimd,increase_packets=2", 1, {"increase_packets": 2}),
        ("aimd,increase_packets=2=4", 4, {"increase_packets": 2}),
        ("cubic,beta=0.7=2", 2, {}),
    ],
)
def test_count_is_distinguished_from_a_setting(
    text: str, count: int, parameters: dict[str, float]
) -> None:
    parsed = parse_sender(text)
    assert (parsed.count, parameter_values(parsed.protocol)) == (count, parameters)


def test_transport_applies_to_the_sender_that_names_it() -> None:
    tcp = registry.parse(Registry.TRANSPORT, "tcp,minimum_rto_ms=300")
    ns2 = registry.parse(Registry.TRANSPORT, "ns2")
    cubic, remycc = parse_sender("cubic"), parse_sender("remycc:f.json")
    assert cubic.transport_or(None) is None
    assert remycc.transport_or(None) is None
    assert (cubic.transport_or(tcp), remycc.transport_or(tcp)) == (tcp, tcp)
    assert (cubic.transport_or(ns2), remycc.transport_or(ns2)) == (None, ns2)
    assert parse_sender("remycc:f.json,transport=datagram").transport_or(tcp) is None
    assert remycc.throughput_measure(None) == "packets_received"
    assert remycc.throughput_measure(ns2) == cubic.throughput_measure(None) == "packets_in_order"


def test_default_link_needs_no_bottleneck() -> None:
    assert bottleneck(None, 1500, 0) is None
    assert bottleneck(registry.parse(Registry.QUEUE, "drop-tail"), 1500, 0) is None
    codel = bottleneck(registry.parse(Registry.QUEUE, "codel"), 1260, 50)
    assert codel is not None
    assert (codel.queue.name, codel.packet_bytes, codel.ack_bytes) == ("codel", 1260, 50)


@pytest.mark.parametrize(
    ("kind", "typed", "expected"),
    [
        (SENDER, "cu", {"cubic"}),
        (SENDER, "remyc", {"remycc:"}),
        (SENDER, "bbr,var", {"bbr,variant=v1", "bbr,variant=v3"}),
        (QUEUE, "codel,target", {"codel,target_ms="}),
        (TRANSPORT, "n", {"ns2"}),
    ],
)
def test_completion_of_names_variants_and_parameters(
    kind: Any, typed: str, expected: set[str]
) -> None:
    parameter = click.Option(["--x"])
    completions = kind.shell_complete(click.Context(main), parameter, typed)
    assert {item.value for item in completions} == expected
    assert all(item.help for item in completions)
