"""gRPC servers with the options that all of ours have, and their ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import grpc

from remy_services.client.address import Address
from remy_services.client.keepalive import SERVER_OPTIONS
from remy_services.coordinator.serving.settings import SettingsError


def new_server(
    interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
    *,
    maximum_message_bytes: int,
    maximum_streams: int,
) -> grpc.aio.Server:
    """A server without services and ports."""
    options = (
        *SERVER_OPTIONS,
        ("grpc.max_receive_message_length", maximum_message_bytes),
        ("grpc.max_send_message_length", maximum_message_bytes),
        ("grpc.max_concurrent_streams", maximum_streams),
        # Two coordinators on one port would each get a part of the calls.
        ("grpc.so_reuseport", 0),
    )
    return grpc.aio.server(interceptors=list(interceptors), options=options)


def open_port(
    server: grpc.aio.Server, address: Address, credentials: grpc.ServerCredentials | None
) -> Address:
    """Has the server listen; the address with the port that it got. Raises SettingsError."""
    try:
        if credentials is None:
            port = server.add_insecure_port(str(address))
        else:
            port = server.add_secure_port(str(address), credentials)
    except RuntimeError as error:
        raise SettingsError(
            f"cannot listen on {address}; is it in use, or not of this machine?"
        ) from error
    return replace(address, port=port)
