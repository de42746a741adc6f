"""A real gRPC server that answers by a script: for failures that a coordinator has rarely."""

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
    """How a call ends that does not end well."""

    code: grpc.StatusCode
    message: str = ""
    details: tuple[Message, ...] = ()

    def abort(self, context: grpc.ServicerContext) -> None:
        packed = [any_pb2.Any() for _ in self.details]
        for place, detail in zip(packed, self.details, strict=True):
            place.Pack(detail)
        number = code_pb2.Code.Value(self.code.name)
        status = status_pb2.Status(code=number, message=self.message, details=packed)
        context.abort_with_status(rpc_status.to_status(status))


def later(seconds: float, message: str = "starting up") -> Failure:
    """UNAVAILABLE, with a hint when to come again."""
    delay = duration_pb2.Duration()
    delay.FromNanoseconds(round(seconds * 1e9))
    hint = error_details_pb2.RetryInfo(retry_delay=delay)
    return Failure(grpc.StatusCode.UNAVAILABLE, message, (hint,))


Answer = Message | Failure | list[Message | Failure]


@dataclass
class ScriptedService:
    """Answers in order, by method; the last one for ever. A list answers a stream."""

    answers: dict[str, deque[Answer]] = field(default_factory=lambda: defaultdict(deque))
    requests: list[Message] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)
    address: Address = field(default_factory=Address)
    #: What its answers begin with; an older service tells no wire format.
    told: tuple[tuple[str, str], ...] = WIRE_FORMAT_METADATA

    def script(self, method: str, *answers: Answer) -> None:
        self.answers[method].extend(answers)

    def answer(self, method: str, request: Any, context: grpc.ServicerContext) -> Any:
        self.requests.append(request)
        self.metadata.append({key: str(value) for key, value in context.invocation_metadata()})
        context.send_initial_metadata(self.told)
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
        """Starts it on a free port of this machine, in plain text without credentials."""
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
