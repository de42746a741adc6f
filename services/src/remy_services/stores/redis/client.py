"""Connections to a Redis server, set up so that nothing is sent twice."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from remy_services.stores.redis.address import RedisAddress


def new_client(
    address: RedisAddress, password: str | None, *, connect_seconds: float, answer_seconds: float
) -> redis.Redis:
    """A client for any number of threads, which connects when it is first used."""
    connection: dict[str, Any] = {
        "db": address.database,
        "username": address.user,
        "password": password,
        "socket_connect_timeout": connect_seconds,
        "socket_timeout": answer_seconds,
        # A request whose answer was lost may have been carried out; only the caller can tell
        # whether to ask again.
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
    }
    if address.socket is not None:
        return redis.Redis(unix_socket_path=address.socket, **connection)
    if address.service is not None:
        return _by_sentinels(address, address.service, password, connection)
    ((host, port),) = address.hosts
    if address.tls is not None:
        connection |= {
            "ssl": True,
            "ssl_ca_certs": address.tls.ca,
            "ssl_certfile": address.tls.cert,
            "ssl_keyfile": address.tls.key,
        }
    return redis.Redis(host=host, port=port, **connection)


def _by_sentinels(
    address: RedisAddress, service: str, password: str | None, connection: dict[str, Any]
) -> redis.Redis:
    to_sentinels = connection | {
        "db": 0,
        "username": None,
        "password": password if address.sentinel_password else None,
    }
    sentinel: Any = Sentinel(  # type: ignore[no-untyped-call]
        list(address.hosts), sentinel_kwargs=to_sentinels, **connection
    )
    client: redis.Redis = sentinel.master_for(service)
    return client
