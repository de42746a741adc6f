"""A gRPC server with scripted answers, to test failures that are rare on a coordinator."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from remy_proto.v1 import design_service_pb2, design_service_pb2_grpc
from remy_rpc.settings import Address
from remy_rpc.wire_format import WIRE_FORMAT_METADATA

_STREAMS = ("WatchJob", "ExportJob")


@dataclass(frozen=True)
class Failure:
    """Ends a call with an error status."""

    code: grpc.StatusCode
    message: str = ""
    details: tuple[Message, ...] = ()

    def abort(self, context: grpc.ServicerContext) -> None:
        packed = [any_pb2.Any() for _ in self.details]
        for target, detail in zip(packed, self.details, strict=True):
            target.Pack(detail)
        number = code_pb2.Code.Value(self.code.name)
        status = status_pb2.Status(code=number, message=self.message, details=packed)
        context.abort_with_status(rpc_status.to_status(status))


def retry_later(seconds: float, message: str = "starting up") -> Failure:
    """Returns UNAVAILABLE with a retry delay."""
    delay = duration_pb2.Duration()
    delay.FromNanoseconds(round(seconds * 1e9))
    hint = error_details_pb2.RetryInfo(retry_delay=delay)
    return Failure(grpc.StatusCode.UNAVAILABLE, message, (hint,))


Answer = Message | Failure | list[Message | Failure]


@dataclass
class ScriptedService:
    """Returns scripted answers per method in order, and repeats the last. A list is a stream."""

    answers: dict[str, deque[Answer]] = field(default_factory=lambda: defaultdict(deque))
    requests: list[Message] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)
    address: Address = field(default_factory=Address)
    #: Initial metadata of answers; an older service sends no wire format.
    initial_metadata: tuple[tuple[str, str], ...] = WIRE_FORMAT_METADATA

    def script(self, method: str, *answers: Answer) -> None:
        self.answers[method].extend(answers)

    def answer(self, method: str, request: Any, context: grpc.ServicerContext) -> Any:
        self.requests.append(request)
        self.metadata.append({key: str(value) for key, value in context.invocation_metadata()})
        context.send_initial_metadata(self.initial_metadata)
        waiting = self.answers[method]
        answer = waiting.popleft() if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Failure):
            answer.abort(context)
        return answer

    def stream(self, method: str, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        for each in self.answer(method, request, context):
            if isinstance(each, Failure):
                each.abort(context)
            yield each

    def serve(self, credentials: grpc.ServerCredentials | None = None) -> grpc.Server:
        """Starts the server on a free local port; without credentials in plain text."""
        server = grpc.server(futures.ThreadPoolExecutor(4))
        design_service_pb2_grpc.add_DesignServiceServicer_to_server(  # type: ignore[no-untyped-call]
            _servicer(self), server
        )
        port = (
            server.add_insecure_port("127.0.0.1:0")
            if credentials is None
            else server.add_secure_port("127.0.0.1:0", credentials)
        )
        self.address = Address("127.0.0.1", port)
        server.start()
        return server


def _servicer(service: ScriptedService) -> object:
    class Servicer:
        def __getattr__(self, method: str) -> Any:
            answer = service.stream if method in _STREAMS else service.answer
            return lambda request, context: answer(method, request, context)

    methods = design_service_pb2.DESCRIPTOR.services_by_name["DesignService"].methods_by_name
    assert set(_STREAMS) <= set(methods)
    return Servicer()
