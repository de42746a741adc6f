"""Traces and profiles: spans of steps and tasks, and where the time of a process goes."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import structlog
import yappi
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from remy_services.files import FileError, write_file

# Traces: a span for every step of a job and, beneath it, for every task; off unless asked for.
#
# The standard variables of OpenTelemetry decide: with OTEL_EXPORTER_OTLP_ENDPOINT (or
# OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) spans are sent there over gRPC; without, they cost nothing.


_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROPAGATOR = TraceContextTextMapPropagator()
_TRACER = trace.get_tracer("remy_farm.coordinator")


def is_asked_for(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks for traces."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not disabled and any(environment.get(name) for name in _ENDPOINTS)


@contextmanager
def traces(service_name: str) -> Iterator[None]:
    """Sends the spans of this process while it lasts, if the environment asks for it.

    To be entered once in the life of a process. What cannot be sent is dropped.
    """
    if not is_asked_for():
        yield
        return
    # Loaded only by those who want it.
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = os.environ.get("OTEL_SERVICE_NAME") or service_name
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


@contextmanager
def span(name: str, **attributes: str | int | float) -> Iterator[trace.Span]:
    """What is done within is a span, and so are spans within it, beneath it."""
    with _TRACER.start_as_current_span(
        name, attributes={f"remy_farm.{key}": value for key, value in attributes.items()}
    ) as current:
        yield current


def trace_parent() -> str:
    """Names the current span to another process (W3C Trace Context); empty without one."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent", "")


# A profile of this process on request, and where the time of its steps went.


_LOG = structlog.stdlib.get_logger("profile")
_MOST_FUNCTIONS = 60


class Profiler:
    """Profiles all threads for a while, when it is told to, and writes what it saw to a file."""

    def __init__(
        self,
        folder: Path,
        step_seconds: Callable[[], Mapping[str, float]],
        *,
        seconds: float = 30.0,
    ) -> None:
        """Files go to `folder`, which exists; `step_seconds` tells the seconds spent by phase.

        It may raise TimeoutError or RuntimeError: a profile is made all the same, without them.
        """
        self._folder = folder
        self._step_seconds = step_seconds
        self._seconds = seconds
        self._thread: threading.Thread | None = None

    def start(self) -> bool:
        """Begins in a thread of its own; False if a profile is being made already."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self._thread = threading.Thread(target=self._run, name="profile", daemon=True)
        self._thread.start()
        return True

    def wait(self) -> None:
        """Returns when no profile is being made."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            _LOG.info("profile begun", seconds=self._seconds)
            path = self.take()
            _LOG.info("profile written", path=str(path))
        except FileError as error:
            _LOG.error("profile lost", why=str(error))

    def take(self) -> Path:
        """Profiles for the time that was asked for; the file with the result. Raises FileError."""
        before = self._phases()
        yappi.clear_stats()
        yappi.set_clock_type("cpu")
        yappi.start(builtins=False, profile_threads=True)
        try:
            # Not a wait for anything: this is how long the profile is to be.
            time.sleep(self._seconds)
        finally:
            yappi.stop()
        text = step_report(before, self._phases(), self._seconds) + "\n" + _functions()
        yappi.clear_stats()
        path = self._folder / f"profile-{time.time_ns()}.txt"
        write_file(path, text)
        return path

    def _phases(self) -> Mapping[str, float] | None:
        try:
            return dict(self._step_seconds())
        except (TimeoutError, RuntimeError):
            return None


def step_report(
    before: Mapping[str, float] | None, after: Mapping[str, float] | None, wall_seconds: float
) -> str:
    """Where the time of steps went between two readings, as a table; None: it was not read."""
    if before is None or after is None:
        return "Where the time of steps went is not known: the event loop was held up.\n"
    spent = {phase: seconds - before.get(phase, 0.0) for phase, seconds in after.items()}
    total = sum(spent.values())
    lines = [f"Where the time of steps went, in {wall_seconds:g} s (docs/observability.md):", ""]
    for phase, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        share = 100 * seconds / total if total > 0 else 0.0
        lines.append(f"  {phase:<12} {seconds:10.3f} s  {share:5.1f} %")
    return "\n".join(lines) + "\n"


def _functions() -> str:
    """The functions that took most CPU time, of all threads."""
    text = io.StringIO()
    text.write("CPU time by function, callees included, the largest first:\n\n")
    text.write("  calls      own s    total s  function\n")
    statistics = sorted(yappi.get_func_stats(), key=lambda each: -each.ttot)
    for each in statistics[:_MOST_FUNCTIONS]:
        name = f"{each.name} ({Path(each.module).name}:{each.lineno})"
        text.write(f"  {each.ncall:>7} {each.tsub:10.3f} {each.ttot:10.3f}  {name}\n")
    text.write("\nCPU time by thread:\n\n")
    for thread in sorted(yappi.get_thread_stats(), key=lambda each: -each.ttot):
        text.write(f"  {thread.ttot:10.3f} s  {thread.name}\n")
    return text.getvalue()
