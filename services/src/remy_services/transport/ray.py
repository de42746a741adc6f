"""Worker transport on Ray: actors connect as workers, started by a driver process."""

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

from remy_rpc.channel import MAX_MESSAGE_BYTES, SERVER_OPTIONS
from remy_rpc.retry import RetryPolicy
from remy_rpc.settings import Address, SettingsError
from remy_services.transport.grpc import WorkerFleet, WorkerFleetSettings

_DRIVER = (sys.executable, "-m", "remy_workers.ray")
_SERVER_NAME = "remy-farm-ray"
# Time for a driver to shut down after its actors have finished their tasks.
_ENDING_SECONDS = 9.0
_SECONDS_BETWEEN_COUNTS = 0.2
# Grace period for open streams at shutdown.
_GRACE_SECONDS = 1.0
#: Backoff for restarts of the driver.
RESTARTS = RetryPolicy(first_seconds=0.5, factor=2.0, most_seconds=30.0)
# A driver that lived this long resets the backoff.
_STABLE_SECONDS = 60.0

_log = structlog.get_logger()


class RayUnavailable(Exception):
    """Ray is not installed. The message is one sentence for users."""


@dataclass(frozen=True)
class RaySettings:
    """Settings of the Ray cluster and its actors."""

    #: HOST:PORT of the head node if this machine is in the cluster; ray://HOST:PORT if it is not;
    #: #: auto for the cluster of this machine.
    address: str = "auto"
    #: CPUs per actor, which is also its number of simulation threads.
    threads_per_actor: int = 1
    #: Number of actors; None for as many as fit on the cluster.
    actors: int | None = None
    #: Restricts actors to nodes with this resource; empty means all nodes.
    resource: str = ""
    #: Seconds without response after which the driver reconnects to the cluster.
    patience_seconds: float = 60.0
    log_level: str = "info"
    #: Address for connections of actors; port 0 picks a free port.
    listen: Address = field(default_factory=lambda: Address("0.0.0.0", 0))


class RayFleet(WorkerFleet):
    """A SharedEvaluator on Ray actors. Requests wait while the cluster is unavailable.

    Actors connect to a separate port with mutual TLS. Server and actors share a key that is
    generated at every start and passed only to the driver.
    """

    kind = "ray"

    def __init__(
        self,
        settings: RaySettings | None = None,
        *,
        workers: WorkerFleetSettings | None = None,
        **options: Any,
    ) -> None:
        """`options` are passed to WorkerFleet. Raises RayUnavailable."""
        for module in ("ray", "remy_workers"):
            if importlib.util.find_spec(module) is None:
                raise RayUnavailable(
                    f"evaluation on Ray requires the module {module}; install remy-farm-worker "
                    "with its extra 'ray'"
                )
        super().__init__(workers, **options)
        self._ray = settings or RaySettings()
        self._server: grpc.aio.Server | None = None
        self._driver_task: asyncio.Task[None] | None = None
        #: Process id of the running driver, or None.
        self.driver_pid: int | None = None

    def begin(self) -> None:
        """Starts the driver in the running event loop. To be called once.

        Raises SettingsError if the port cannot be opened.
        """
        key, certificate = _self_signed()
        limits = ("grpc.max_receive_message_length", "grpc.max_send_message_length")
        self._server = grpc.aio.server(
            options=[
                *SERVER_OPTIONS,
                *((name, MAX_MESSAGE_BYTES) for name in limits),
                # With SO_REUSEPORT two coordinators on one port would each receive a part of the
                # actors.
                ("grpc.so_reuseport", 0),
            ]
        )
        self.add_to(self._server)
        credentials = grpc.ssl_server_credentials(
            [(key, certificate)], root_certificates=certificate, require_client_auth=True
        )
        driver_settings = asdict(self._ray)
        del driver_settings["listen"]
        try:
            port = self._server.add_secure_port(str(self._ray.listen), credentials)
        except RuntimeError as error:
            raise SettingsError(
                f"--ray-listen: cannot listen on {self._ray.listen}: the port is in use or the "
                "address is not local"
            ) from error
        driver_settings |= {
            "port": port,
            "certificate": certificate.decode(),
            "key": key.decode(),
            "server_name": _SERVER_NAME,
        }
        # A copy, so that later changes of the environment do not matter.
        environment = {"RAY_USAGE_STATS_ENABLED": "0", **os.environ}
        self._driver_task = asyncio.create_task(
            self._drive(self._server, json.dumps(driver_settings).encode() + b"\n", environment)
        )

    async def close(self) -> None:
        if self._driver_task is not None:
            self._driver_task.cancel()
            await asyncio.gather(self._driver_task, return_exceptions=True)
        await super().close()
        if self._server is not None:
            await self._server.stop(_GRACE_SECONDS)

    async def _drive(
        self, server: grpc.aio.Server, driver_settings: bytes, environment: dict[str, str]
    ) -> None:
        """Runs the driver, and restarts it with backoff."""
        await server.start()
        failures = 0
        while True:
            began, had_workers = time.monotonic(), False
            # The driver exits when its standard input closes, and thus when this process ends in
            # any way.
            process = await asyncio.create_subprocess_exec(
                *_DRIVER, stdin=asyncio.subprocess.PIPE, env=environment
            )
            self.driver_pid = process.pid
            assert process.stdin is not None
            process.stdin.write(driver_settings)
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
            failures = consecutive_failures(failures, lived_seconds, had_workers=had_workers)
            seconds = RESTARTS.wait_seconds(failures, jitter=random.random())
            _log.warning(
                "the Ray driver has exited", status=process.returncode, next_in_seconds=seconds
            )
            await asyncio.sleep(seconds)


def consecutive_failures(before: int, lived_seconds: float, *, had_workers: bool) -> int:
    """Counts consecutive failures of drivers, including the one that just exited.

    The count restarts at 1 after a driver that had workers or was stable.
    """
    return 1 if had_workers or lived_seconds >= _STABLE_SECONDS else before + 1


def _self_signed() -> tuple[bytes, bytes]:
    """Creates a key and a self-signed certificate, as PEM."""
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
