"""Tests the metrics of gRPC calls on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest

from remy_proto.v1 import design_service_pb2, design_service_pb2_grpc
from remy_services.telemetry.telemetry import Telemetry
from services.tests.telemetry.exported import exported

_NAME = "remy_farm_grpc_server_handled_total"


class _Service(design_service_pb2_grpc.DesignServiceServicer):
    async def GetJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        if not request.job:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such job")
        return design_service_pb2.GetJobResponse()

    async def DeleteJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        raise RuntimeError("a defect")

    async def CancelJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        context.set_code(grpc.StatusCode.FAILED_PRECONDITION)
        return design_service_pb2.CancelJobResponse()

    async def WatchJob(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        yield design_service_pb2.WatchJobResponse()
        if request.job:
            await asyncio.Event().wait()


def count_calls(
    call: Callable[[grpc.aio.Channel], Awaitable[None]],
) -> dict[tuple[str, str], float]:
    """Runs `call` against a server; returns the calls by method and code when none is open."""

    async def serve() -> Telemetry:
        telemetry = Telemetry()
        server = grpc.aio.server(interceptors=[telemetry.interceptor()])
        design_service_pb2_grpc.add_DesignServiceServicer_to_server(  # type: ignore[no-untyped-call]
            _Service(), server
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await call(channel)
        # Lets the handlers of cancelled calls finish.
        await server.stop(grace=30)
        return telemetry

    series = exported(asyncio.run(serve()).registry)
    assert not any(
        value for (name, _), value in series.items() if name == "remy_farm_grpc_server_open_calls"
    )
    return {
        (dict(labels)["grpc_method"], dict(labels)["grpc_code"]): value
        for (name, labels), value in series.items()
        if name == _NAME and value > 0
    }


def stub(channel: grpc.aio.Channel) -> Any:
    return design_service_pb2_grpc.DesignServiceStub(channel)  # type: ignore[no-untyped-call]


def test_calls_are_counted_by_method_and_code(caplog: pytest.LogCaptureFixture) -> None:
    async def call(channel: grpc.aio.Channel) -> None:
        service = stub(channel)
        await service.GetJob(design_service_pb2.GetJobRequest(job="j"))
        await service.GetJob(design_service_pb2.GetJobRequest(job="j"))
        for method, request in (
            ("GetJob", design_service_pb2.GetJobRequest()),
            ("DeleteJob", design_service_pb2.DeleteJobRequest()),
            ("CancelJob", design_service_pb2.CancelJobRequest()),
        ):
            with pytest.raises(grpc.aio.AioRpcError):
                await getattr(service, method)(request)
        assert len([each async for each in service.WatchJob(design_service_pb2.WatchJobRequest())])

    assert count_calls(call) == {
        ("GetJob", "OK"): 2,
        ("GetJob", "NOT_FOUND"): 1,
        ("DeleteJob", "UNKNOWN"): 1,
        ("CancelJob", "FAILED_PRECONDITION"): 1,
        ("WatchJob", "OK"): 1,
    }


def test_methods_are_exported_at_zero() -> None:
    series = exported(Telemetry().registry)
    assert not any(name == _NAME for name, _ in series)
    telemetry = Telemetry()
    telemetry.interceptor()
    handled = {
        dict(labels)["grpc_method"]: value
        for (name, labels), value in exported(telemetry.registry).items()
        if name == _NAME
    }
    assert handled.items() >= {"SubmitJob": 0, "WatchJob": 0, "Work": 0}.items()


def test_a_stream_cancelled_by_its_client_counts_as_cancelled() -> None:
    async def call(channel: grpc.aio.Channel) -> None:
        call = stub(channel).WatchJob(design_service_pb2.WatchJobRequest(job="j"))
        await call.read()
        call.cancel()

    assert count_calls(call) == {("WatchJob", "CANCELLED"): 1}


def test_unknown_methods_share_one_series() -> None:
    async def call(channel: grpc.aio.Channel) -> None:
        for number in range(3):
            call: Any = channel.unary_unary(f"/made.up/Method{number}")
            with pytest.raises(grpc.aio.AioRpcError):
                await call(b"")

    assert count_calls(call) == {("unknown", "UNIMPLEMENTED"): 3}
