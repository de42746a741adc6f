"""A minimal OTLP collector that stores the spans it receives."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


@dataclass(frozen=True)
class Span:
    """The fields of a span that tests check."""

    service: str
    name: str
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    attributes: dict[str, str | int]


@dataclass
class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """Collects spans in the order of their arrival."""

    spans: list[Span] = field(default_factory=list)
    address: str = ""

    def Export(  # noqa: N802
        self,
        request: trace_service_pb2.ExportTraceServiceRequest,
        context: grpc.ServicerContext,
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for resource in request.resource_spans:
            facts = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    attributes = {
                        each.key: each.value.string_value or each.value.int_value
                        for each in span.attributes
                    }
                    self.spans.append(
                        Span(
                            facts["service.name"],
                            span.name,
                            span.trace_id,
                            span.span_id,
                            span.parent_span_id,
                            attributes,
                        )
                    )
        return trace_service_pb2.ExportTraceServiceResponse()

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """Runs a collector within the context."""
    receiver = Receiver()
    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(  # type: ignore[no-untyped-call]
        receiver, server
    )
    receiver.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield receiver
    finally:
        server.stop(None).wait()
