"""Runs a coordinator's server in a thread of the test process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_proto.v1.design_service_pb2_grpc import DesignServiceStub
from remy_rpc.settings import Address
from remy_rpc.wire_format import WIRE_FORMAT_METADATA
from remy_services.coordinator.checkpointing import RunSettings
from remy_services.coordinator.farm import Farm, FarmSettings
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.coordinator.server import CoordinatorServer, ServerSettings
from remy_services.jobs.states import FINAL
from tests.waiting import wait_until

#: Generous, because test machines may be slow.
TIMEOUT_SECONDS = 120.0
_ANYWHERE = Address("127.0.0.1", 0)


def settings_for(folder: Path, **changes: Any) -> ServerSettings:
    """Returns settings with an SQLite store in the folder and frequent checkpoints."""
    farm = FarmSettings(runs=RunSettings(checkpoint_seconds=0.05), store_check_seconds=0.2)
    settings = ServerSettings(
        listen=_ANYWHERE, store_url=f"sqlite://{folder / 'farm.db'}", name="here", farm=farm
    )
    return replace(settings, **changes)


class _MetadataInterceptor(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Adds metadata to all calls of a channel."""

    def __init__(self, metadata: Sequence[tuple[str, str]]) -> None:
        self._told = metadata

    def _call(self, continuation: Any, details: Any, request: Any) -> Any:
        more = (*(details.metadata or ()), *self._told)
        changed = _CallDetails(details.method, details.timeout, more, details.credentials)
        return continuation(changed, request)

    intercept_unary_unary: Any = _call
    intercept_unary_stream: Any = _call
    intercept_stream_unary: Any = _call
    intercept_stream_stream: Any = _call


class _CallDetails(NamedTuple):
    method: str
    timeout: float | None
    metadata: Sequence[tuple[str, str | bytes]]
    credentials: grpc.CallCredentials | None
    wait_for_ready: bool | None = None
    compression: grpc.Compression | None = None


def with_metadata(
    channel: grpc.Channel, metadata: Sequence[tuple[str, str]] = WIRE_FORMAT_METADATA
) -> grpc.Channel:
    """Wraps a channel so that every call carries this metadata."""
    return grpc.intercept_channel(channel, _MetadataInterceptor(metadata))


class RunningServer:
    """Runs a coordinator while the context is open."""

    def __init__(
        self, settings: ServerSettings, instrumentation: Instrumentation | None = None
    ) -> None:
        self._settings = settings
        self._instrumentation = instrumentation
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server = CoordinatorServer(settings, instrumentation)
        self._channels: list[grpc.Channel] = []
        self._is_up = False
        self.address = ""

    def __enter__(self) -> RunningServer:
        self._thread.start()
        try:
            self.address = str(self.run(self._server.start()))
        except BaseException:
            self.stop()
            raise
        self._is_up = True
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def farm(self) -> Farm:
        assert self._server.farm is not None
        return self._server.farm

    def stop(self) -> None:
        """Stops the server, as SIGTERM does. To be called once."""
        for channel in self._channels:
            channel.close()
        if self._is_up:
            self._is_up = False
            self.run(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine: Any) -> Any:
        """Runs a coroutine in the server's event loop and returns its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT_SECONDS)

    def channel(
        self,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Sequence[tuple[str, str]] = WIRE_FORMAT_METADATA,
    ) -> grpc.Channel:
        """Opens a channel that is closed with the server. Every call carries `metadata`."""
        channel = (
            grpc.insecure_channel(self.address)
            if credentials is None
            else grpc.secure_channel(self.address, credentials)
        )
        self._channels.append(channel)
        return with_metadata(channel, metadata)

    def until(self, wanted: Callable[[], bool]) -> None:
        """Waits until the condition is true."""
        wait_until(wanted)

    def submit_without_answer(self, spec: Any, client_request_id: str) -> None:
        """Submits a job and ignores errors."""
        request = messages.SubmitJobRequest(spec=spec, client_request_id=client_request_id)
        with contextlib.suppress(grpc.RpcError):
            self.client().call("SubmitJob", request)

    def client(self) -> Client:
        """Returns a client without TLS."""
        return Client(self.channel())


class Client:
    """The most frequent calls of tests."""

    def __init__(self, channel: grpc.Channel, token: str | None = None) -> None:
        self.stub: Any = DesignServiceStub(channel)  # type: ignore[no-untyped-call]
        self.metadata = [] if token is None else [("authorization", f"Bearer {token}")]

    def call(self, method: str, request: Any) -> Any:
        """Makes a call and returns its response. Raises grpc.RpcError."""
        return getattr(self.stub, method)(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)

    def submit(self, spec: Any, **rest: Any) -> job_pb2.Job:
        job: job_pb2.Job = self.call("SubmitJob", messages.SubmitJobRequest(spec=spec, **rest)).job
        return job

    def get(self, job: str) -> job_pb2.Job:
        shown: job_pb2.Job = self.call("GetJob", messages.GetJobRequest(job=job)).job
        return shown

    def watch(self, job: str, after_revision: int = 0) -> list[messages.WatchJobResponse]:
        """Returns all updates until the job's end."""
        request = messages.WatchJobRequest(job=job, after_revision=after_revision)
        return list(self.call("WatchJob", request))

    def history(self, job: str) -> list[job_pb2.JobEvent]:
        """Waits until a job has ended and returns its history."""
        return [update.event for update in self.watch(job) if update.HasField("event")]

    def until(self, job: str, wanted: Callable[[job_pb2.Job], bool]) -> job_pb2.Job:
        """Waits until the condition is true for the job, and returns it."""
        return wait_until(lambda: shown if wanted(shown := self.get(job)) else None, f"job {job}")

    def until_state(self, job: str, state: job_pb2.JobState) -> job_pb2.Job:
        """Waits until the job is in this state, and returns it."""
        return self.until(job, lambda shown: shown.state == state)

    def until_final(self, job: str) -> job_pb2.Job:
        """Waits until the job has ended, and returns it."""
        return self.until(job, lambda shown: shown.state in FINAL)

    def remycc(self, job: str, epoch: int | None = None) -> bytes:
        """Returns the job's table as the content of a .json file."""
        request = messages.GetRemyCCRequest(job=job, epoch=epoch)
        content: bytes = self.call("GetRemyCC", request).content
        return content


def refusal(error: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    """Returns status code and message of a failed call."""
    assert isinstance(error, grpc.Call)
    return error.code(), error.details() or ""


def named_fields(error: grpc.RpcError) -> list[str]:
    """Returns the field names in the violations of a failed call."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type]
    bad_request = error_details_pb2.BadRequest()
    for detail in status.details if status is not None else ():
        detail.Unpack(bad_request)
    return [violation.field for violation in bad_request.field_violations]
