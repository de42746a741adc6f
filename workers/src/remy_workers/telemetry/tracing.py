"""Traces: a span for every task, beneath the span of its step; off unless asked for.

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
_TRACER = trace.get_tracer("remy_farm.worker")


def is_asked_for(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks for traces."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not disabled and any(environment.get(name) for name in _ENDPOINTS)


@contextmanager
def traces(worker_id: str) -> Iterator[None]:
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

    name = os.environ.get("OTEL_SERVICE_NAME") or "remy-farm-worker"
    resource = Resource.create({SERVICE_NAME: name, SERVICE_INSTANCE_ID: worker_id})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


@contextmanager
def task_span(trace_parent: str, **attributes: str | int | float) -> Iterator[trace.Span]:
    """What is done within is a span beneath the one that `trace_parent` names.

    A task that names none is not traced: its step is not either.
    """
    if not trace_parent:
        yield trace.INVALID_SPAN
        return
    context = _PROPAGATOR.extract({"traceparent": trace_parent})
    with _TRACER.start_as_current_span(
        "task",
        context=context,
        attributes={f"remy_farm.{key}": value for key, value in attributes.items()},
    ) as current:
        yield current
