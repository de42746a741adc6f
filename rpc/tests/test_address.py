"""Parsing of addresses of coordinators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_rpc.settings import (
    Address,
    SettingsError,
    UnixSocket,
    parse_address,
    parse_coordinator,
    parse_listen_address,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("farm.example.org:443", "farm.example.org", 443),
        ("farm", "farm", 50051),
        ("10.0.0.7:1", "10.0.0.7", 1),
        ("[::1]:65535", "::1", 65535),
        ("[2001:db8::2]", "2001:db8::2", 50051),
    ],
)
def test_host_and_port_are_parsed(text: str, host: str, port: int) -> None:
    assert parse_address(text) == Address(host, port)


@pytest.mark.parametrize(
    "text",
    [
        *("", ":1", "farm:", "farm:0", "farm:65536", "farm:http", "farm:\u0661", "farm:1/x"),
        *("::1", "[::1", "[farm]:1", "a b:1", "https://farm:443", "user@farm:1", "-farm:1"),
    ],
)
def test_invalid_address_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(SettingsError, match=r"must be HOST:PORT, as in"):
        parse_address(text)


@given(st.ip_addresses().map(str), st.integers(1, 65535))
def test_printed_address_parses_to_itself(host: str, port: int) -> None:
    address = Address(host, port)
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_addresses_are_recognized(host: str, is_loopback: bool) -> None:
    assert Address(host).is_loopback is is_loopback


def test_unix_socket_is_parsed() -> None:
    found = parse_coordinator("unix:/run/farm")
    assert found == UnixSocket("/run/farm")
    assert found.is_loopback
    assert str(found) == "unix:/run/farm"
    assert parse_coordinator("[::1]:7390") == Address("::1", 7390)
    with pytest.raises(SettingsError, match="'farm' must be HOST:PORT"):
        parse_coordinator("farm")
    for text in ("unix:", "unix:/" + "x" * 107):
        with pytest.raises(SettingsError, match="must be unix:PATH with a path of 1 to 107 bytes"):
            parse_coordinator(text)


def test_listen_address_may_have_port_0_and_needs_a_port() -> None:
    assert parse_listen_address("0.0.0.0:0") == Address("0.0.0.0", 0)
    assert parse_listen_address("[::]:7390") == Address("::", 7390)
    for text in ("farm", "7390", "::1:7390", "farm:65536"):
        with pytest.raises(SettingsError, match=r"must be HOST:PORT, as in 127\.0\.0\.1:50051"):
            parse_listen_address(text)
