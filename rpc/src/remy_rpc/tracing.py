"""OpenTelemetry traces: a span for every step of a job, with a child span for every task.

OpenTelemetry's standard variables switch traces on. With OTEL_EXPORTER_OTLP_ENDPOINT or
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT spans are exported over gRPC; otherwise they cost nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROPAGATOR = TraceContextTextMapPropagator()
_TRACER = trace.get_tracer("remy_farm")


def is_asked_for(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment switches traces on."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not disabled and any(environment.get(name) for name in _ENDPOINTS)


@contextmanager
def traces(service_name: str, *, instance_id: str = "") -> Iterator[None]:
    """Exports the spans of this process inside the context, if traces are switched on.

    Enter it once per process. Spans that cannot be exported are dropped.
    """
    if not is_asked_for():
        yield
        return
    # Imported here, since the exporter is slow to load.
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    attributes = {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME") or service_name}
    if instance_id:
        attributes[SERVICE_INSTANCE_ID] = instance_id
    provider = TracerProvider(resource=Resource.create(attributes))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


@contextmanager
def span(name: str, **attributes: str | int | float) -> Iterator[trace.Span]:
    """Opens a span; spans opened inside it become its children."""
    with _TRACER.start_as_current_span(name, attributes=_prefixed(attributes)) as current:
        yield current


@contextmanager
def child_span(parent: str, name: str, **attributes: str | int | float) -> Iterator[trace.Span]:
    """Opens a child span of another process's span, given by its `trace_parent`.

    Nothing is traced if `parent` is empty.
    """
    if not parent:
        yield trace.INVALID_SPAN
        return
    context = _PROPAGATOR.extract({"traceparent": parent})
    with _TRACER.start_as_current_span(
        name, context=context, attributes=_prefixed(attributes)
    ) as current:
        yield current


def trace_parent() -> str:
    """Returns the W3C `traceparent` of the current span; empty if there is none."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent", "")


def _prefixed(attributes: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
    return {f"remy_farm.{key}": value for key, value in attributes.items()}
