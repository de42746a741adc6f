"""Instrumentation: wrappers around a coordinator's parts, and the export of metrics, traces and
profiles."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc
import structlog

from remy_farm.driver.loop import Clock
from remy_farm.evaluation.interface import SharedEvaluator
from remy_proto.v1 import job_pb2
from remy_rpc.settings import Address, SettingsError
from remy_rpc.tracing import traces
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.tls import ServerTls
from remy_services.jobs.states import FINAL, JobObserver
from remy_services.stores.contract import CheckpointStore
from remy_services.telemetry.profiling import Profiler
from remy_services.telemetry.telemetry import Telemetry, certificate_expiry_times, in_loop, served


@dataclass(frozen=True)
class Instrumentation:
    """Wrappers around a coordinator's parts, which keep their interface.

    The defaults wrap nothing.
    """

    observer: JobObserver = field(default_factory=JobObserver)
    store: Callable[[CheckpointStore], CheckpointStore] = lambda store: store
    evaluator: Callable[[SharedEvaluator], SharedEvaluator] = lambda evaluator: evaluator
    #: gRPC interceptors, called before the coordinator's own.
    interceptors: tuple[grpc.aio.ServerInterceptor, ...] = ()
    #: Called with the farm, in the event loop, before its jobs are loaded.
    on_farm: Callable[[Farm], None] = lambda _farm: None
    #: Measures the wall-clock time that designs run.
    clock: Clock = time.monotonic


_log = structlog.get_logger()


@dataclass(frozen=True)
class ExportSettings:
    """Settings of the telemetry export."""

    #: Address of the plaintext metrics endpoint; None disables it.
    metrics_listen: Address | None = None
    #: Folder for the profiles that SIGUSR2 starts.
    profile_folder: Path = field(default_factory=Path.cwd)
    profile_seconds: float = 30.0
    #: TLS files whose expiry is exported; None if there is no TLS.
    tls: ServerTls | None = None


@contextmanager
def telemetry_export(settings: ExportSettings) -> Iterator[Instrumentation]:
    """Exports metrics, traces and profiles while the context is open; yields the instrumentation.

    To be entered in the main thread, once per process.
    """
    telemetry = Telemetry()
    with ExitStack() as ending:
        ending.enter_context(traces("remy-farm-coordinator"))

        def start(farm: Farm) -> None:
            loop = asyncio.get_running_loop()
            profiler = Profiler(
                settings.profile_folder,
                in_loop(loop, telemetry.phase_seconds),
                seconds=settings.profile_seconds,
            )
            loop.add_signal_handler(signal.SIGUSR2, profiler.start)
            telemetry.watch(
                loop,
                lambda: _jobs_now(farm),
                certificate_expiry=lambda: certificate_expiry_times(_certificates(settings.tls)),
                worker_pods=lambda: farm.worker_pods,
                mirror=lambda: _mirror_now(farm),
            )
            if settings.metrics_listen is not None:
                _serve(telemetry, settings.metrics_listen, ending)

        yield Instrumentation(
            observer=telemetry.observer(),
            store=telemetry.store,
            evaluator=telemetry.evaluator,
            interceptors=(telemetry.interceptor(),),
            on_farm=start,
        )


def _serve(telemetry: Telemetry, address: Address, ending: ExitStack) -> None:
    try:
        port = ending.enter_context(served(telemetry.registry, address.host, address.port))
    except OSError as error:
        raise SettingsError(
            f"cannot serve metrics on {address}: the port is in use or the address is not local"
        ) from error
    _log.info("serving metrics", address=str(replace(address, port=port)))


def _jobs_now(farm: Farm) -> Iterator[job_pb2.Job]:
    """Yields every job, with live progress for unfinished ones."""
    for handle in farm.catalogue:
        yield handle.job if handle.job.state in FINAL else farm.shown(handle)


def _mirror_now(farm: Farm) -> tuple[float, int] | None:
    mirror = farm.environment.mirror
    return None if mirror is None else (mirror.behind_seconds, mirror.failures)


def _certificates(tls: ServerTls | None) -> Mapping[str, Path]:
    if tls is None:
        return {}
    files = {"server": tls.certificate, "client_authority": tls.client_ca}
    return {use: path for use, path in files.items() if path is not None}
