"""Instrumentation: what is put around the parts of a coordinator, and the metrics, traces and
profiles that it lets people see while it serves."""

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
from remy_services.telemetry.telemetry import Telemetry, ends_of, in_loop, served


@dataclass(frozen=True)
class Instrumentation:
    """By default nothing is. What wraps a part has the same interface, and answers as it does."""

    observer: JobObserver = field(default_factory=JobObserver)
    store: Callable[[CheckpointStore], CheckpointStore] = lambda store: store
    evaluator: Callable[[SharedEvaluator], SharedEvaluator] = lambda evaluator: evaluator
    #: Of all calls, before our own.
    interceptors: tuple[grpc.aio.ServerInterceptor, ...] = ()
    #: Is told of the farm, in the event loop, before any of its jobs is read.
    on_farm: Callable[[Farm], None] = lambda _farm: None
    #: Measures how long designs run.
    clock: Clock = time.monotonic


_log = structlog.get_logger()


@dataclass(frozen=True)
class ExportSettings:
    """Where to show it."""

    #: Of metrics, in plain text; None: they are not served.
    metrics_listen: Address | None = None
    #: For profiles, which SIGUSR2 asks for.
    profile_folder: Path = field(default_factory=Path.cwd)
    profile_seconds: float = 30.0
    #: Whose certificates are watched.
    tls: ServerTls | None = None


@contextmanager
def exported(settings: ExportSettings) -> Iterator[Instrumentation]:
    """What to serve with so that the coordinator can be seen while this lasts.

    To be entered in the main thread, once in the life of a process.
    """
    telemetry = Telemetry()
    with ExitStack() as ending:
        ending.enter_context(traces("remy-farm-coordinator"))

        def show(farm: Farm) -> None:
            loop = asyncio.get_running_loop()
            profiler = Profiler(
                settings.profile_folder,
                in_loop(loop, telemetry.step_seconds),
                seconds=settings.profile_seconds,
            )
            loop.add_signal_handler(signal.SIGUSR2, profiler.start)
            telemetry.watch(
                loop,
                lambda: _jobs_now(farm),
                certificate_ends=lambda: ends_of(_certificates(settings.tls)),
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
            on_farm=show,
        )


def _serve(telemetry: Telemetry, address: Address, ending: ExitStack) -> None:
    try:
        port = ending.enter_context(served(telemetry.registry, address.host, address.port))
    except OSError as error:
        raise SettingsError(
            f"cannot serve metrics on {address}; is it in use, or not of this machine?"
        ) from error
    _log.info("serving metrics", address=str(replace(address, port=port)))


def _jobs_now(farm: Farm) -> Iterator[job_pb2.Job]:
    """Every job, and how far those are that are not finished."""
    for handle in farm.catalogue:
        yield handle.job if handle.job.state in FINAL else farm.shown(handle)


def _mirror_now(farm: Farm) -> tuple[float, int] | None:
    backup = farm.environment.backup
    return None if backup is None else (backup.behind_seconds, backup.failures)


def _certificates(tls: ServerTls | None) -> Mapping[str, Path]:
    if tls is None:
        return {}
    files = {"server": tls.certificate, "client_authority": tls.client_ca}
    return {use: path for use, path in files.items() if path is not None}
