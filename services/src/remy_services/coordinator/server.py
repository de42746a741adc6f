"""The coordinator process: assembles its parts, and starts and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from remy_farm.evaluation.dispatcher import LoadTrace
from remy_farm.evaluation.interface import SharedEvaluator
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_farm.files import write_file
from remy_proto.v1 import design_service_pb2, design_service_pb2_grpc, worker_service_pb2
from remy_rpc.channel import SERVER_OPTIONS
from remy_rpc.settings import Address, SettingsError
from remy_services.coordinator.access import Authorizer
from remy_services.coordinator.farm import Farm, FarmSettings
from remy_services.coordinator.handlers import DesignService
from remy_services.coordinator.handlers.queries import ServerInformation
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.coordinator.job_handle import Environment, now, retry_until_available
from remy_services.coordinator.maintenance import BackgroundTask, MirrorWriter, StoreWatch, Threads
from remy_services.coordinator.middleware import Interceptor
from remy_services.coordinator.tls import ReloadingTls, ServerTls, TokenWatch
from remy_services.stores import open_store
from remy_services.stores.archive import Mirror
from remy_services.stores.contract import CheckpointStore
from remy_services.stores.recordings import read_recording
from remy_services.transport.grpc import SimulatorIdentity, WorkerFleet
from remy_services.transport.ray import RayFleet, RaySettings, RayUnavailable
from remy_services.transport.reproductions import reproduction_writer


@dataclass(frozen=True)
class ServerSettings:
    """All settings of a coordinator."""

    listen: Address
    store_url: str
    #: Name of this coordinator in logs and histories.
    name: str
    farm: FarmSettings = field(default_factory=FarmSettings)
    accept_data_loss: bool = False
    #: Mirror URL; None disables mirroring.
    mirror_url: str | None = None
    #: "local", "workers" or "ray".
    evaluator: str = "local"
    #: Threads of the "local" evaluator.
    threads: int = 1
    #: Settings of the "ray" evaluator.
    ray: RaySettings = field(default_factory=RaySettings)
    #: Folder or fsspec URL for tasks that were quarantined because they crashed their workers;
    #: None discards them.
    reproductions: str | None = None
    #: Address of a separate plaintext health endpoint; None serves health at `listen` only.
    health_listen: Address | None = None
    tls: ServerTls | None = None
    tokens_file: Path | None = None
    #: Whether to allow a non-loopback address without TLS and tokens.
    is_insecure: bool = False
    has_reflection: bool = True
    #: Settings file of the Kubernetes worker launcher; None disables it.
    kubernetes_workers: Path | None = None
    #: Whether to reconcile the DesignJobs of the coordinator's Kubernetes namespace.
    kubernetes_design_jobs: bool = False
    maximum_message_bytes: int = 16 << 20
    #: Maximum concurrent gRPC streams per connection.
    maximum_streams: int = 1000
    #: Time for final checkpoints and open calls after a stop signal.
    grace_seconds: float = 20.0
    #: File to which the server writes its address once it is ready; None writes none.
    ready_file: Path | None = None

    def check(self) -> None:
        """Raises SettingsError if these settings would be unsafe."""
        if self.farm.retention_seconds is not None and self.mirror_url is None:
            raise SettingsError(
                "--retention-days removes old jobs from the store and therefore requires --mirror"
            )
        if self.listen.is_loopback or self.is_insecure:
            return
        missing = [
            flag
            for flag, value in (
                ("--tls-cert and --tls-key", self.tls),
                ("--tokens-file", self.tokens_file),
            )
            if value is None
        ]
        if missing:
            raise SettingsError(
                f"{self.listen} is reachable from other machines, but {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing; set them, listen on 127.0.0.1, "
                "or accept the risk with --insecure"
            )


def new_server(
    interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
    *,
    maximum_message_bytes: int,
    maximum_streams: int,
) -> grpc.aio.Server:
    """Creates a server without services and ports."""
    options = (
        *SERVER_OPTIONS,
        ("grpc.max_receive_message_length", maximum_message_bytes),
        ("grpc.max_send_message_length", maximum_message_bytes),
        ("grpc.max_concurrent_streams", maximum_streams),
        # With SO_REUSEPORT two coordinators on one port would each receive a part of the calls.
        ("grpc.so_reuseport", 0),
    )
    return grpc.aio.server(interceptors=list(interceptors), options=options)


def open_port(
    server: grpc.aio.Server, address: Address, credentials: grpc.ServerCredentials | None
) -> Address:
    """Opens a port and returns the bound address. Raises SettingsError."""
    try:
        if credentials is None:
            port = server.add_insecure_port(str(address))
        else:
            port = server.add_secure_port(str(address), credentials)
    except RuntimeError as error:
        raise SettingsError(
            f"cannot listen on {address}: the port is in use or the address is not local"
        ) from error
    return replace(address, port=port)


#: Health service name: serving while the event loop runs, also while the store is unavailable.
LIVENESS = "liveness"
#: Health service name: serving while jobs are loaded and the store accepts commits. The empty name
#: reports the same.
READINESS = "readiness"

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


_WORKER_SERVICE = worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"].full_name


def make_evaluator(
    settings: ServerSettings, work_left: Callable[[str], bool], load_trace: LoadTrace
) -> SharedEvaluator:
    """Creates the evaluator that the settings name, in the running event loop.

    `work_left(job_id)` returns whether the job, or any job if `job_id` is empty, may still need
    evaluations. `load_trace` reads link traces from the store. Raises SettingsError.
    """
    options: dict[str, Any] = {"load_trace": load_trace}
    if settings.evaluator == "local":
        return ThreadPoolEvaluator(settings.threads, **options)
    options["work_left"] = work_left
    if settings.reproductions is not None:
        options["keep_reproduction"] = reproduction_writer(settings.reproductions)
    match settings.evaluator:
        case "workers":
            return WorkerFleet(**options)
        case "ray":
            return _ray_fleet(settings, options)
    raise SettingsError(
        f"--evaluator is {settings.evaluator}, but must be one of local, workers, ray"
    )


def _ray_fleet(settings: ServerSettings, options: dict[str, Any]) -> RayFleet:
    try:
        fleet = RayFleet(settings.ray, **options)
    except RayUnavailable as error:
        raise SettingsError(f"--evaluator is ray: {error}") from error
    fleet.begin()
    return fleet


# Fractions of the grace period for finishing mirror writes, final checkpoints and open calls.
_MIRROR_GRACE_FRACTION = 0.2
_JOBS_GRACE_FRACTION = 0.7
_CALLS_GRACE_FRACTION = 0.1

_log = structlog.get_logger()


_DESIGN_SERVICE = design_service_pb2.DESCRIPTOR.services_by_name["DesignService"].full_name

_SHUTTING_DOWN = "the coordinator is shutting down"


class CoordinatorServer:
    """A coordinator. `start` and `stop` must be called in the same event loop."""

    def __init__(
        self, settings: ServerSettings, instrumentation: Instrumentation | None = None
    ) -> None:
        """Raises SettingsError."""
        settings.check()
        self._settings = settings
        self._instrumentation = instrumentation or Instrumentation()
        self._health = health.aio.HealthServicer()
        self._farm: Farm | None = None
        self._server: grpc.aio.Server | None = None
        # Closes resources in reverse order of opening.
        self._ending = AsyncExitStack()

    @property
    def farm(self) -> Farm | None:
        """The farm; None until the store has been opened."""
        return self._farm

    async def start(self) -> Address:
        """Starts serving and returns the address. Waits until the store is available.


        Raises SettingsError, FileError or StoreError.
        """
        settings = self._settings
        await self._health.set(LIVENESS, _SERVING)
        await self._set_ready(False)
        authorizer = Authorizer(None)
        if settings.tokens_file is not None:
            tokens = TokenWatch(settings.tokens_file, authorizer)
            tokens.begin()
            self._ending.push_async_callback(tokens.close)
        else:
            _log.warning("no tokens are configured: every caller is an administrator")
        credentials = None if settings.tls is None else ReloadingTls(settings.tls).credentials()
        await self._serve_health()
        threads = Threads()
        self._ending.push_async_callback(threads.close)
        store = await self._open_store(threads)

        async def load_trace(sha256: bytes) -> bytes | None:
            return await threads.store(read_recording, store, sha256)

        evaluator = make_evaluator(settings, self._has_work, load_trace)
        self._farm = farm = self._new_farm(store, threads, evaluator)
        store_watch = StoreWatch(
            store,
            threads,
            settings.farm.store_check_seconds,
            lambda trouble: self._set_ready(not trouble),
        )
        self._server = new_server(
            [*self._instrumentation.interceptors, Interceptor(authorizer)],
            maximum_message_bytes=settings.maximum_message_bytes,
            maximum_streams=settings.maximum_streams,
        )
        self._add_services(self._server, farm, store_watch, evaluator)
        address = open_port(self._server, settings.listen, credentials)
        await self._server.start()
        await farm.load()
        self._serve_kubernetes(farm, evaluator)
        await self._set_ready(True)
        store_watch.begin()
        self._ending.push_async_callback(store_watch.close)
        _log.info("serving", address=str(address), coordinator=settings.name)
        if settings.ready_file is not None:
            write_file(settings.ready_file, f"{address}\n")
        return address

    async def stop(self) -> None:
        """Checkpoints all jobs and shuts down within the grace period."""
        _log.info("shutting down")
        await self._health.enter_graceful_shutdown()
        for_calls = self._settings.grace_seconds * _CALLS_GRACE_FRACTION
        if self._farm is not None:
            await self._farm.close(
                _SHUTTING_DOWN, self._settings.grace_seconds * _JOBS_GRACE_FRACTION
            )
            # Closes worker streams with a reason before the server stops.
            await self._farm.evaluator.close()
        if self._server is not None:
            await self._server.stop(for_calls)
        await self._ending.aclose()
        _log.info("ended")

    async def _open_store(self, threads: Threads) -> CheckpointStore:
        """Opens the store, and waits until it is available."""
        settings = self._settings
        opened = await retry_until_available(
            lambda: threads.store(
                open_store, settings.store_url, accept_data_loss=settings.accept_data_loss
            ),
            on_trouble=lambda why: _log.warning("waiting for the store", why=why),
        )
        self._ending.push_async_callback(asyncio.to_thread, opened.close)
        return self._instrumentation.store(opened)

    def _new_farm(
        self, store: CheckpointStore, threads: Threads, evaluator: SharedEvaluator
    ) -> Farm:
        settings, around = self._settings, self._instrumentation
        mirror = None
        if settings.mirror_url is not None:
            mirror = MirrorWriter(Mirror(settings.mirror_url), store)
            grace_seconds = settings.grace_seconds * _MIRROR_GRACE_FRACTION
            self._ending.push_async_callback(mirror.close, grace_seconds)
        environment = Environment(
            store, threads, now, around.observer, settings.name, mirror, around.clock
        )
        farm = Farm(environment, around.evaluator(evaluator), settings.farm)
        around.on_farm(farm)
        return farm

    def _add_services(
        self,
        server: grpc.aio.Server,
        farm: Farm,
        store_watch: StoreWatch,
        evaluator: SharedEvaluator,
    ) -> None:
        """Registers the gRPC services."""
        durability = farm.environment.store.durability()
        information = ServerInformation(farm, store_watch, durability, SimulatorIdentity.own())
        # Generated gRPC code has no type hints.
        add_design_service: Any = design_service_pb2_grpc.add_DesignServiceServicer_to_server
        add_design_service(DesignService(farm, information), server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = [_DESIGN_SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME]
        # Ray actors connect to the RayFleet's own port.
        if isinstance(evaluator, WorkerFleet) and not isinstance(evaluator, RayFleet):
            evaluator.add_to(server)
            names.append(_WORKER_SERVICE)
        if self._settings.has_reflection:
            reflection.enable_server_reflection(names, server)

    async def _serve_health(self) -> None:
        """Serves the plaintext health endpoint for probes."""
        if self._settings.health_listen is None:
            return
        server = new_server(
            maximum_message_bytes=1 << 16, maximum_streams=self._settings.maximum_streams
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        open_port(server, self._settings.health_listen, None)
        await server.start()
        self._ending.push_async_callback(server.stop, None)

    def _has_work(self, job_id: str) -> bool:
        return self._farm is not None and self._farm.has_work(job_id)

    def _serve_kubernetes(self, farm: Farm, evaluator: SharedEvaluator) -> None:
        path, with_design_jobs = (
            self._settings.kubernetes_workers,
            self._settings.kubernetes_design_jobs,
        )
        if path is None and not with_design_jobs:
            return
        try:
            from remy_services.coordinator.design_jobs import DesignJobController
            from remy_services.coordinator.worker_jobs import WorkerJobs
        except ImportError as error:
            flag = "--kubernetes-design-jobs" if path is None else "--kubernetes-workers"
            raise SettingsError(
                f"{flag} requires the Kubernetes extra: pip install "
                "'remy-farm-services[kubernetes]'"
            ) from error
        tasks: list[BackgroundTask] = [] if path is None else [WorkerJobs(farm, path, evaluator)]
        if with_design_jobs:
            tasks.append(DesignJobController(farm))
        for task in tasks:
            task.begin()
            self._ending.push_async_callback(task.close)

    async def _set_ready(self, is_ready: bool) -> None:
        for service in (READINESS, ""):
            await self._health.set(service, _SERVING if is_ready else _NOT_SERVING)


async def serve(settings: ServerSettings, instrumentation: Instrumentation | None = None) -> None:
    """Runs a coordinator until SIGTERM or SIGINT.


    Raises SettingsError, FileError or StoreError.
    """
    server = CoordinatorServer(settings, instrumentation)
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop_requested.set)
    starting = asyncio.create_task(server.start())
    waiting = asyncio.create_task(stop_requested.wait())
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
