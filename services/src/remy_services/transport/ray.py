"""Workers on the actors of a Ray cluster, which a process of its own drives."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import random
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from remy_rpc.channel import MOST_MESSAGE_BYTES, SERVER_OPTIONS
from remy_rpc.retry import RetryPolicy
from remy_rpc.settings import Address, SettingsError
from remy_services.transport.grpc import WorkerFleet, WorkerFleetSettings

_DRIVER = (sys.executable, "-m", "remy_workers.ray")
_SERVER_NAME = "remy-farm-ray"
# A driver gives its actors some seconds to end what they have begun.
_ENDING_SECONDS = 9.0
_SECONDS_BETWEEN_COUNTS = 0.2
# For streams that are being written when the evaluator closes.
_GRACE_SECONDS = 1.0
#: When a driver that has ended is started again.
RESTARTS = RetryPolicy(first_seconds=0.5, factor=2.0, most_seconds=30.0)
# A driver that was there for so long did not fail because of how it was started.
_GOOD_SECONDS = 60.0

_log = structlog.get_logger()


class RayUnavailable(Exception):
    """Ray is not installed here. One sentence for people."""


@dataclass(frozen=True)
class RaySettings:
    """Which cluster, and what to take of it."""

    #: HOST:PORT of the head, where this machine is a node of the cluster; ray://HOST:PORT where it
    #: is not; auto for the cluster that this machine is in.
    address: str = "auto"
    #: CPUs that an actor takes, and threads that it simulates in.
    threads_per_actor: int = 1
    #: How many actors to ask for; None: as many as fit on the cluster's nodes.
    actors: int | None = None
    #: Only nodes that have this resource; empty: any.
    resource: str = ""
    #: A cluster that is silent for so long is connected to anew.
    patience_seconds: float = 60.0
    log_level: str = "info"
    #: Where actors call; port 0 is any that is free.
    listen: Address = field(default_factory=lambda: Address("0.0.0.0", 0))


class RayFleet(WorkerFleet):
    """A SharedEvaluator. Requests wait while there is no cluster.

    Actors call at a port of its own, which only they can: a key that is made at every start, and
    told to the driver alone, is the server's and theirs.
    """

    kind = "ray"

    def __init__(
        self,
        settings: RaySettings | None = None,
        *,
        workers: WorkerFleetSettings | None = None,
        **options: Any,
    ) -> None:
        """For the other arguments see WorkerFleet. Raises RayUnavailable."""
        for module in ("ray", "remy_workers"):
            if importlib.util.find_spec(module) is None:
                raise RayUnavailable(
                    "evaluation on Ray needs remy-farm-worker with its extra 'ray' installed "
                    f"beside remy-farm; there is no module {module}"
                )
        super().__init__(workers, **options)
        self._ray = settings or RaySettings()
        self._server: grpc.aio.Server | None = None
        self._driving: asyncio.Task[None] | None = None
        #: Of the driver's process, while there is one.
        self.driver_pid: int | None = None

    def begin(self) -> None:
        """Starts the driver, in the running event loop. To be called once.

        Raises SettingsError where it cannot listen.
        """
        key, certificate = _self_signed()
        limits = ("grpc.max_receive_message_length", "grpc.max_send_message_length")
        self._server = grpc.aio.server(
            options=[
                *SERVER_OPTIONS,
                *((name, MOST_MESSAGE_BYTES) for name in limits),
                # Two coordinators on one port would each get a part of the actors.
                ("grpc.so_reuseport", 0),
            ]
        )
        self.add_to(self._server)
        credentials = grpc.ssl_server_credentials(
            [(key, certificate)], root_certificates=certificate, require_client_auth=True
        )
        told = asdict(self._ray)
        del told["listen"]
        try:
            port = self._server.add_secure_port(str(self._ray.listen), credentials)
        except RuntimeError as error:
            raise SettingsError(
                f"--ray-listen: cannot listen on {self._ray.listen}; is it in use, or not of this "
                "machine?"
            ) from error
        told |= {
            "port": port,
            "certificate": certificate.decode(),
            "key": key.decode(),
            "server_name": _SERVER_NAME,
        }
        # The environment as it is now.
        environment = {"RAY_USAGE_STATS_ENABLED": "0", **os.environ}
        self._driving = asyncio.create_task(
            self._drive(self._server, json.dumps(told).encode() + b"\n", environment)
        )

    async def close(self) -> None:
        if self._driving is not None:
            self._driving.cancel()
            await asyncio.gather(self._driving, return_exceptions=True)
        await super().close()
        if self._server is not None:
            await self._server.stop(_GRACE_SECONDS)

    async def _drive(
        self, server: grpc.aio.Server, told: bytes, environment: dict[str, str]
    ) -> None:
        """Runs drivers, one after the other."""
        await server.start()
        failures = 0
        while True:
            began, had_workers = time.monotonic(), False
            # It ends with its standard input, hence with this process however that ends.
            process = await asyncio.create_subprocess_exec(
                *_DRIVER, stdin=asyncio.subprocess.PIPE, env=environment
            )
            self.driver_pid = process.pid
            assert process.stdin is not None
            process.stdin.write(told)
            ended = asyncio.create_task(process.wait())
            try:
                while not ended.done():
                    await asyncio.wait([ended], timeout=_SECONDS_BETWEEN_COUNTS)
                    had_workers = had_workers or self.snapshot().workers > 0
            finally:
                process.stdin.close()
                await asyncio.wait([ended], timeout=_ENDING_SECONDS)
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await ended
                self.driver_pid = None
            lived_seconds = time.monotonic() - began
            failures = failures_in_a_row(failures, lived_seconds, had_workers=had_workers)
            seconds = RESTARTS.wait_seconds(failures, jitter=random.random())
            _log.warning(
                "the driver of Ray has ended", status=process.returncode, next_in_seconds=seconds
            )
            await asyncio.sleep(seconds)


def failures_in_a_row(before: int, lived_seconds: float, *, had_workers: bool) -> int:
    """How many drivers have failed since one was of use, with the one that has just ended."""
    return 1 if had_workers or lived_seconds >= _GOOD_SECONDS else before + 1


def _self_signed() -> tuple[bytes, bytes]:
    """A key, and a certificate for it that it has signed itself (PEM)."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _SERVER_NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_SERVER_NAME)]), critical=False)
        .sign(key, SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return (
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain),
        certificate.public_bytes(pem),
    )
