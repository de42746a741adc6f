"""How both ends of a connection notice that the other has vanished.

A client pings while a call is open; a coordinator must allow pings that often, or it would take
them for an attack and close the connection.
"""

from __future__ import annotations

from typing import Final

CLIENT_PING_SECONDS: Final = 20
PING_TIMEOUT_SECONDS: Final = 20
# With a margin for pings that queue up on the way.
SERVER_ALLOWS_PING_SECONDS: Final = 10

CLIENT_OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.keepalive_time_ms", CLIENT_PING_SECONDS * 1000),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
)
SERVER_OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.http2.min_recv_ping_interval_without_data_ms", SERVER_ALLOWS_PING_SECONDS * 1000),
    ("grpc.keepalive_time_ms", CLIENT_PING_SECONDS * 1000),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
    ("grpc.http2.max_pings_without_data", 0),
)
