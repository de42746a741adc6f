"""Whoever keeps a connection to a coordinator pings no more often than it allows: it would take
that for an attack, and close the connection."""

from __future__ import annotations

from remy_services.client import keepalive
from remy_workers import connection


def test_a_coordinator_allows_the_pings_of_clients_and_workers() -> None:
    server, client = dict(keepalive.SERVER_OPTIONS), dict(keepalive.CLIENT_OPTIONS)
    allowed_ms = server["grpc.http2.min_recv_ping_interval_without_data_ms"]
    assert client["grpc.keepalive_time_ms"] > allowed_ms
    assert allowed_ms < connection._PING_SECONDS * 1000


def test_both_ends_notice_within_the_same_time() -> None:
    server, client = dict(keepalive.SERVER_OPTIONS), dict(keepalive.CLIENT_OPTIONS)
    for option in ("grpc.keepalive_time_ms", "grpc.keepalive_timeout_ms"):
        assert server[option] == client[option]
    assert client["grpc.keepalive_time_ms"] == connection._PING_SECONDS * 1000
    assert client["grpc.keepalive_timeout_ms"] == connection._PING_TIMEOUT_SECONDS * 1000
