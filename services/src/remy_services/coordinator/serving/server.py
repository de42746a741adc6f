"""A coordinator from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from contextlib import AsyncExitStack

import grpc
import structlog
from grpc_health.v1 import health_pb2_grpc

from remy_services.client.address import Address
from remy_services.coordinator.access.doorkeeper import Doorkeeper
from remy_services.coordinator.answering.interceptor import Interceptor
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.serving.health import Health
from remy_services.coordinator.serving.opening import open_farm
from remy_services.coordinator.serving.ports import new_server, open_port
from remy_services.coordinator.serving.services import add_services
from remy_services.coordinator.serving.settings import ServerSettings, SettingsError
from remy_services.coordinator.serving.surroundings import Surroundings
from remy_services.coordinator.serving.tls import ReloadingTls
from remy_services.coordinator.serving.token_watch import TokenWatch
from remy_services.files import write_file

_SHUTTING_DOWN = "the coordinator is shutting down"
# Of the grace period: for the jobs to be kept, and for calls that are being answered after that.
_SHARE_FOR_JOBS = 0.7
_SHARE_FOR_LAST_CALLS = 0.1

_log = structlog.get_logger()


class CoordinatorServer:
    """Starts in `start`, ends in `stop`; to be used in one event loop."""

    def __init__(self, settings: ServerSettings, surroundings: Surroundings | None = None) -> None:
        """Raises SettingsError."""
        settings.check()
        self._settings = settings
        self._surroundings = surroundings or Surroundings()
        self._health = Health()
        self._farm: Farm | None = None
        self._server: grpc.aio.Server | None = None
        # Frees what was opened, the last first.
        self._ending = AsyncExitStack()

    @property
    def farm(self) -> Farm | None:
        """None while the store is not there."""
        return self._farm

    async def start(self) -> Address:
        """Serves from now on; returns where. Waits for a store that is not available.

        Raises SettingsError, FileError or StoreError.
        """
        settings = self._settings
        await self._health.begin()
        doorkeeper = Doorkeeper(None)
        if settings.tokens_file is not None:
            tokens = TokenWatch(settings.tokens_file, doorkeeper)
            tokens.begin()
            self._ending.push_async_callback(tokens.close)
        else:
            _log.warning("nobody is asked for a token: whoever can call here is an administrator")
        credentials = None if settings.tls is None else ReloadingTls(settings.tls).credentials()
        await self._serve_health()
        opened = await open_farm(
            settings,
            self._surroundings,
            self._ending,
            has_work=self._has_work,
            on_store_changed=self._store_changed,
        )
        self._farm = farm = opened.farm
        self._server = new_server(
            [*self._surroundings.interceptors, Interceptor(doorkeeper)],
            maximum_message_bytes=settings.maximum_message_bytes,
            maximum_streams=settings.maximum_streams,
        )
        add_services(self._server, opened, self._health, has_reflection=settings.has_reflection)
        address = open_port(self._server, settings.listen, credentials)
        await self._server.start()
        await farm.load()
        self._start_workers(farm)
        await self._health.set_ready(True)
        opened.store_watch.begin()
        self._ending.push_async_callback(opened.store_watch.close)
        _log.info("serving", address=str(address), coordinator=settings.name)
        if settings.ready_file is not None:
            write_file(settings.ready_file, f"{address}\n")
        return address

    async def stop(self) -> None:
        """Takes no more work, leaves a checkpoint of every job, and ends in the grace period."""
        _log.info("shutting down")
        await self._health.servicer.enter_graceful_shutdown()
        for_calls = self._settings.grace_seconds * _SHARE_FOR_LAST_CALLS
        if self._farm is not None:
            await self._farm.close(_SHUTTING_DOWN, self._settings.grace_seconds * _SHARE_FOR_JOBS)
            # Workers hear why their streams end.
            await self._farm.evaluator.close()
        if self._server is not None:
            await self._server.stop(for_calls)
        await self._ending.aclose()
        _log.info("ended")

    async def _serve_health(self) -> None:
        """Health alone, in plain text, for whoever starts and stops this process."""
        if self._settings.health_listen is None:
            return
        server = new_server(
            maximum_message_bytes=1 << 16, maximum_streams=self._settings.maximum_streams
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health.servicer, server)
        open_port(server, self._settings.health_listen, None)
        await server.start()
        self._ending.push_async_callback(server.stop, None)

    def _has_work(self, job_id: str) -> bool:
        return self._farm is not None and self._farm.has_work(job_id)

    def _start_workers(self, farm: Farm) -> None:
        path = self._settings.kubernetes_workers
        if path is None:
            return
        try:
            from remy_services.coordinator.serving.worker_jobs import WorkerJobs
        except ImportError as error:
            raise SettingsError(
                "--kubernetes-workers needs what `pip install remy-farm[kubernetes]` installs"
            ) from error
        jobs = WorkerJobs(farm, path)
        jobs.begin()
        self._ending.push_async_callback(jobs.close)

    async def _store_changed(self, trouble: str) -> None:
        await self._health.set_ready(not trouble)


async def serve(settings: ServerSettings, surroundings: Surroundings | None = None) -> None:
    """Runs a coordinator until the process is told to end, by SIGTERM or Ctrl-C.

    Raises SettingsError, FileError or StoreError.
    """
    server = CoordinatorServer(settings, surroundings)
    told_to_end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told_to_end.set)
    starting = asyncio.create_task(server.start())
    waiting = asyncio.create_task(told_to_end.wait())
    try:
        await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        await waiting
    finally:
        starting.cancel()
        waiting.cancel()
        with contextlib.suppress(BaseException):
            await asyncio.gather(starting, waiting, return_exceptions=True)
        await server.stop()
