"""Traces: a span for every step of a job and, beneath it, for every task; off unless asked for.

The standard variables of OpenTelemetry decide: with OTEL_EXPORTER_OTLP_ENDPOINT (or
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) spans are sent there over gRPC; without, they cost nothing.
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
    """Whether the environment asks for traces."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not disabled and any(environment.get(name) for name in _ENDPOINTS)


@contextmanager
def traces(service_name: str, *, instance_id: str = "") -> Iterator[None]:
    """Sends the spans of this process while it lasts, if the environment asks for it.

    To be entered once in the life of a process. What cannot be sent is dropped.
    """
    if not is_asked_for():
        yield
        return
    # Loaded only by those who want it.
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
    """What is done within is a span, and so are spans within it, beneath it."""
    with _TRACER.start_as_current_span(name, attributes=_named(attributes)) as current:
        yield current


@contextmanager
def span_beneath(parent: str, name: str, **attributes: str | int | float) -> Iterator[trace.Span]:
    """The same beneath another process's span, which `trace_parent` named there.

    Where that named none, this is not traced either.
    """
    if not parent:
        yield trace.INVALID_SPAN
        return
    context = _PROPAGATOR.extract({"traceparent": parent})
    with _TRACER.start_as_current_span(
        name, context=context, attributes=_named(attributes)
    ) as current:
        yield current


def trace_parent() -> str:
    """Names the current span to another process (W3C Trace Context); empty without one."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent", "")


def _named(attributes: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
    return {f"remy_farm.{key}": value for key, value in attributes.items()}
