"""A worker: calls its coordinator, again and again, and simulates what it is given."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Final

import grpc
import structlog
import tenacity

import remy_simulator
from remy_proto.completion import complete
from remy_proto.v1 import rule_table_pb2, worker_service_pb2, worker_service_pb2_grpc
from remy_rpc.channel import PLAINTEXT_TO_TLS, open_channel, speaks_tls
from remy_rpc.retry import RetryPolicy
from remy_rpc.settings import call_metadata
from remy_simulator import InvalidRequest
from remy_simulator.cpus import allowed_cpus
from remy_simulator.traces import TraceCache
from remy_workers.interruption import IDLE, Shutdown
from remy_workers.settings import ExitCode, WorkerSettings
from remy_workers.simulation import (
    ReadTrace,
    SharedParts,
    TraceNotRead,
    UnknownSharedPart,
    start_simulation_threads,
)
from remy_workers.task_queue import (
    Heartbeat,
    SendQueue,
    Task,
    TaskQueue,
    interrupt,
    log_line,
    refusal,
    returned,
)
from remy_workers.telemetry import TaskEnd, WorkerMetrics

# Tasks in reserve for each thread, so that none waits for the network.
_RESERVE = 1
# A part of a recording is a MiB at most.
_TRACE_PART_SECONDS = 30.0
# For the coordinator to hear what was said last.
_LAST_WORDS_SECONDS = 1.5
# A coordinator that comes back is not stormed by thousands of workers, nor waits for them.
RETRY = RetryPolicy(first_seconds=0.25, factor=2.0, most_seconds=5.0)

#: There is no use in calling again after these ends of a call; how the worker ends then.
_FATAL_CODES: Final = {
    grpc.StatusCode.UNAUTHENTICATED: ExitCode.NOT_ALLOWED,
    grpc.StatusCode.PERMISSION_DENIED: ExitCode.NOT_ALLOWED,
    grpc.StatusCode.FAILED_PRECONDITION: ExitCode.REFUSED,
    grpc.StatusCode.UNIMPLEMENTED: ExitCode.UNSUITABLE,
    grpc.StatusCode.INVALID_ARGUMENT: ExitCode.INTERNAL,
}

_log = structlog.get_logger()


class Refused(Exception):
    """The coordinator will not have this worker. One sentence."""

    def __init__(self, code: ExitCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class _Disconnected(Exception):
    """A call has ended, and another one may last longer."""


def hello(settings: WorkerSettings) -> worker_service_pb2.WorkRequest:
    """The first message of a stream: who calls, and what simulates here."""
    return worker_service_pb2.WorkRequest(
        hello=worker_service_pb2.Hello(
            worker_id=settings.worker_id,
            version=version("remy-farm-worker"),
            simulator_version=version("remy-simulator"),
            simulator_digest=remy_simulator.fingerprint(),
            scale_free_digest=remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE),
            signals_digest=remy_simulator.signals_fingerprint(),
            protocols_digest=remy_simulator.protocols_fingerprint(),
            cpus=allowed_cpus(),
            threads=settings.threads,
            host=socket.gethostname(),
            job_id=settings.job_id,
            exit_when_idle=settings.exit_when_idle,
        )
    )


class Session:
    """One stream from the coordinator: what it says is brought to the task queue."""

    def __init__(
        self,
        settings: WorkerSettings,
        queue: TaskQueue,
        shutdown: Shutdown,
        heartbeat: Heartbeat,
        metrics: WorkerMetrics,
        shared: SharedParts,
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._shutdown = shutdown
        self._heartbeat = heartbeat
        self._metrics = metrics
        self._shared = shared
        self.was_welcome = False

    def handle_all(self, responses: Iterable[worker_service_pb2.WorkResponse]) -> None:
        """Until the coordinator ends the call. Raises what `responses` raises."""
        for response in responses:
            self.handle(response)

    def handle(self, response: worker_service_pb2.WorkResponse) -> None:
        """One thing that the coordinator says."""
        complete(response)
        match response.WhichOneof("message"):
            case "tasks":
                self._handle_tasks(response.tasks)
            case "shared":
                self._shared.update(response.shared)
            case "cancelled":
                dropped = self._queue.cancel(response.cancelled.lease_ids)
                self._drop(dropped, TaskEnd.CANCELLED)
            case "welcome":
                self.was_welcome = True
                self._heartbeat.seconds = response.welcome.heartbeat_seconds
                self._metrics.connected()
                if response.welcome.takes_log_lines:
                    self._queue.tell_lines()
                _log.info("connected", coordinator=str(self._settings.coordinator))
            case "nothing_left":
                self._shutdown.request(IDLE)

    def _handle_tasks(self, tasks: worker_service_pb2.Tasks) -> None:
        lease_ids = [task.lease_id for task in tasks.tasks]
        try:
            prepared = self._shared.find(tasks.shared_digest)
        except UnknownSharedPart:
            self._queue.send(returned(lease_ids))
            self._drop(len(lease_ids), TaskEnd.RETURNED)
            return
        except InvalidRequest as problem:
            for lease_id in lease_ids:
                self._queue.send(refusal(lease_id, str(problem)))
            self._drop(len(lease_ids), TaskEnd.REFUSED)
            return
        limit = tasks.packet_limit if tasks.HasField("packet_limit") else None
        for task in tasks.tasks:
            self._queue.put(
                Task(task.lease_id, tasks.job_id, prepared, task.slice, tasks.trace_parent, limit)
            )

    def _drop(self, tasks: int, end: TaskEnd) -> None:
        for _ in range(tasks):
            self._metrics.task_dropped(end)


class Worker:
    """Simulates for a coordinator. `run` is the whole of its life."""

    def __init__(
        self, settings: WorkerSettings, shutdown: Shutdown, metrics: WorkerMetrics
    ) -> None:
        """Ends in order when `shutdown` is requested."""
        self._settings = settings
        self._shutdown = shutdown
        self._metrics = metrics
        self._queue = TaskQueue()
        self._heartbeat = Heartbeat(self._queue.heartbeat)
        # Outlasts calls: recordings are the largest that a worker is sent.
        self._traces = TraceCache()
        self._call: grpc.Call | None = None
        self._call_is_over = threading.Condition()

    def report_line(self, unix_seconds: float, level: str, text: str) -> None:
        """Has the coordinator hear a line of the log, as soon as it takes one."""
        self._queue.log(log_line(unix_seconds, level, text))

    def run(self) -> int:
        """The exit code, in the end. Works until it is to end, or the coordinator will not have it.

        Threads may be simulating still when this returns. Raises SettingsError.
        """
        self._heartbeat.start()
        start_simulation_threads(
            self._settings.threads,
            self._queue,
            self._metrics,
            pin=self._settings.pin_threads,
            # At once and without a goodbye: the task may be what ended this worker.
            on_failure=lambda: os._exit(ExitCode.INTERNAL),
        )
        draining = threading.Thread(target=self._drain, name="drain", daemon=True)
        draining.start()
        try:
            for attempt in RETRY.retrying(
                lambda error: isinstance(error, _Disconnected),
                stop=tenacity.stop_when_event_set(self._shutdown.requested),
                sleep=self._shutdown.wait,
            ):
                with attempt:
                    if self._connect():
                        # The waits begin anew.
                        attempt.retry_state.attempt_number = 1
                    raise _Disconnected
        except _Disconnected:
            draining.join()
        except Refused as error:
            if not self._shutdown.why:
                _log.error("the coordinator refuses this worker", why=str(error))
                return error.code
            draining.join()
        why = self._shutdown.why
        _log.info("ended", why=why)
        return ExitCode.DONE if why == IDLE else self._settings.interrupted_exit_code

    def _connect(self) -> bool:
        """One call, until it ends. Whether the coordinator welcomed it. Raises Refused."""
        settings = self._settings
        metadata = call_metadata(settings.token)
        with open_channel(settings.coordinator, settings.tls, user_agent="remy-worker") as channel:
            # What is generated has no types.
            make_stub: Any = worker_service_pb2_grpc.WorkerServiceStub
            stub = make_stub(channel)
            shared = SharedParts(self._traces, self._reader(stub, metadata))
            session = Session(
                settings, self._queue, self._shutdown, self._heartbeat, self._metrics, shared
            )
            stream = SendQueue()
            stream.put(hello(settings))
            with self._call_is_over:
                if self._shutdown.why:
                    return False
                responses = stub.Work(stream, metadata=metadata)
                self._call = responses
                self._queue.attach(stream, settings.threads * (1 + _RESERVE))
            try:
                session.handle_all(responses)
                why = "the coordinator ended the call"
            except grpc.RpcError as error:
                why = self._account_for(error)
            finally:
                self._leave(session)
        if not self._shutdown.why:
            _log.warning("not connected", coordinator=str(settings.coordinator), why=why)
        return session.was_welcome

    def _reader(self, stub: Any, metadata: Any) -> ReadTrace:
        """Reads recordings over a channel, part by part, unless the worker is to end."""

        def read(sha256: bytes) -> bytes:
            content = bytearray()
            while True:
                if self._shutdown.why:
                    raise TraceNotRead("the worker is to end")
                asked = worker_service_pb2.ReadTraceRequest(sha256=sha256, offset=len(content))
                try:
                    part = stub.ReadTrace(asked, metadata=metadata, timeout=_TRACE_PART_SECONDS)
                except grpc.RpcError as error:
                    raise TraceNotRead(f"no trace {sha256.hex()}: {_details(error)}") from error
                content += part.content
                if not part.content or len(content) >= part.total_bytes:
                    break
            if hashlib.sha256(content).digest() != sha256:
                raise TraceNotRead(f"what came as the trace {sha256.hex()} is another")
            _log.info("read a trace", sha256=sha256.hex(), bytes=len(content))
            return bytes(content)

        return read

    def _leave(self, session: Session) -> None:
        begun = self._queue.detach()
        # What ends soon may still be of use. The rest is not waited for, whether the coordinator is
        # back or not: it has given it to others, or is a new one that never heard of it.
        patience = threading.Timer(self._settings.drain_seconds, interrupt, [begun])
        patience.daemon = True
        patience.start()
        if session.was_welcome:
            self._metrics.disconnected()
        with self._call_is_over:
            self._call = None
            self._call_is_over.notify_all()

    def _account_for(self, error: grpc.RpcError) -> str:
        """Why a call broke, for people. Raises Refused if there is no use in another one."""
        why = _details(error)
        assert isinstance(error, grpc.Call)
        code = _FATAL_CODES.get(error.code())
        if code is not None:
            raise Refused(code, why) from error
        settings = self._settings
        if (
            error.code() == grpc.StatusCode.UNAVAILABLE
            and settings.tls is None
            and speaks_tls(settings.coordinator)
        ):
            return PLAINTEXT_TO_TLS
        return why

    def _drain(self) -> None:
        """Once the worker is to end: ends what has begun, returns the rest, and hangs up."""
        self._shutdown.wait()
        _log.info("ending", why=self._shutdown.why)
        for _ in range(self._queue.drain(self._shutdown.why)):
            self._metrics.task_dropped(TaskEnd.RETURNED)
        self._queue.join(self._settings.drain_seconds)
        self._queue.close()
        with self._call_is_over:
            over = self._call_is_over.wait_for(lambda: self._call is None, _LAST_WORDS_SECONDS)
            if not over and self._call is not None:
                self._call.cancel()


def _details(error: grpc.RpcError) -> str:
    """What went wrong, for people."""
    assert isinstance(error, grpc.Call)
    return error.details() or error.code().name
