"""A worker: connects to its coordinator, reconnects when disconnected, and simulates tasks."""

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

# Waiting tasks for each thread, so that none waits for the network.
_WAITING_PER_THREAD = 1
# Timeout for one part of a trace, of at most a MiB.
_TRACE_PART_SECONDS = 30.0
# Time for the last messages to reach the coordinator.
_GOODBYE_SECONDS = 1.5
# Jitter keeps thousands of workers from reconnecting to a restarted coordinator at once.
RETRY = RetryPolicy(first_seconds=0.25, factor=2.0, most_seconds=5.0)

#: Status codes after which the worker does not retry, and its exit codes.
_FATAL_CODES: Final = {
    grpc.StatusCode.UNAUTHENTICATED: ExitCode.NOT_ALLOWED,
    grpc.StatusCode.PERMISSION_DENIED: ExitCode.NOT_ALLOWED,
    grpc.StatusCode.FAILED_PRECONDITION: ExitCode.REFUSED,
    grpc.StatusCode.UNIMPLEMENTED: ExitCode.UNSUITABLE,
    grpc.StatusCode.INVALID_ARGUMENT: ExitCode.INTERNAL,
}

_log = structlog.get_logger()


class ConnectionRejected(Exception):
    """The coordinator rejects this worker, so that retrying is useless."""

    def __init__(self, code: ExitCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class _Disconnected(Exception):
    """A call has ended; the worker reconnects."""


def hello(settings: WorkerSettings) -> worker_service_pb2.WorkRequest:
    """The first message of a stream: identity of the worker and of its simulator."""
    return worker_service_pb2.WorkRequest(
        hello=worker_service_pb2.Hello(
            worker_id=settings.worker_id,
            version=version("remy-farm-worker"),
            simulator_version=version("remy-simulator"),
            simulator_digest=remy_simulator.fingerprint(),
            scale_free_digest=remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE),
            signals_digest=remy_simulator.signals_fingerprint(),
            protocols_digest=remy_simulator.protocols_fingerprint(),
            path_model_digest=remy_simulator.path_model_fingerprint(),
            network_signals_digest=remy_simulator.network_signals_fingerprint(),
            cpus=allowed_cpus(),
            threads=settings.threads,
            host=socket.gethostname(),
            job_id=settings.job_id,
            exit_when_idle=settings.exit_when_idle,
        )
    )


class WorkSession:
    """Handles the messages of one stream from the coordinator."""

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
        self.was_accepted = False

    def handle_all(self, responses: Iterable[worker_service_pb2.WorkResponse]) -> None:
        """Handles messages until the coordinator ends the call. Raises what `responses` raises."""
        for response in responses:
            self.handle(response)

    def handle(self, response: worker_service_pb2.WorkResponse) -> None:
        """Handles one message."""
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
                self.was_accepted = True
                self._heartbeat.seconds = response.welcome.heartbeat_seconds
                self._metrics.connected()
                if response.welcome.takes_log_lines:
                    self._queue.enable_log_lines()
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
    """A worker process; `run` is its main function."""

    def __init__(
        self, settings: WorkerSettings, shutdown: Shutdown, metrics: WorkerMetrics
    ) -> None:
        """The worker drains and ends when `shutdown` is requested."""
        self._settings = settings
        self._shutdown = shutdown
        self._metrics = metrics
        self._queue = TaskQueue()
        self._heartbeat = Heartbeat(self._queue.heartbeat)
        # Kept across calls, since traces are the largest messages of all.
        self._traces = TraceCache()
        self._call: grpc.Call | None = None
        self._call_is_over = threading.Condition()

    def report_line(self, unix_seconds: float, level: str, text: str) -> None:
        """Queues a log line for the coordinator."""
        self._queue.log(log_line(unix_seconds, level, text))

    def run(self) -> int:
        """Works until a shutdown is requested or the coordinator rejects the worker.

        Returns the exit code; simulation threads may still be running then. Raises SettingsError.
        """
        self._heartbeat.start()
        start_simulation_threads(
            self._settings.threads,
            self._queue,
            self._metrics,
            pin=self._settings.pin_threads,
            # Exit at once, without Goodbye: the coordinator then counts the crash against the task.
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
                        # Reset the back-off.
                        attempt.retry_state.attempt_number = 1
                    raise _Disconnected
        except _Disconnected:
            draining.join()
        except ConnectionRejected as error:
            if not self._shutdown.why:
                _log.error("the coordinator rejects this worker", why=str(error))
                return error.code
            draining.join()
        why = self._shutdown.why
        _log.info("ended", why=why)
        return ExitCode.DONE if why == IDLE else self._settings.interrupted_exit_code

    def _connect(self) -> bool:
        """Makes one call and handles it until it ends.

        Returns whether the coordinator accepted the worker. Raises ConnectionRejected.
        """
        settings = self._settings
        metadata = call_metadata(settings.token)
        with open_channel(settings.coordinator, settings.tls, user_agent="remy-worker") as channel:
            # The generated code has no types.
            make_stub: Any = worker_service_pb2_grpc.WorkerServiceStub
            stub = make_stub(channel)
            shared = SharedParts(self._traces, self._reader(stub, metadata))
            session = WorkSession(
                settings, self._queue, self._shutdown, self._heartbeat, self._metrics, shared
            )
            stream = SendQueue()
            stream.put(hello(settings))
            with self._call_is_over:
                if self._shutdown.why:
                    return False
                responses = stub.Work(stream, metadata=metadata)
                self._call = responses
                self._queue.attach(stream, settings.threads * (1 + _WAITING_PER_THREAD))
            try:
                session.handle_all(responses)
                why = "the coordinator ended the call"
            except grpc.RpcError as error:
                why = self._explain(error)
            finally:
                self._leave(session)
        if not self._shutdown.why:
            _log.warning("not connected", coordinator=str(settings.coordinator), why=why)
        return session.was_accepted

    def _reader(self, stub: Any, metadata: Any) -> ReadTrace:
        """Returns a function that reads traces over the channel in parts, until a shutdown."""

        def read(sha256: bytes) -> bytes:
            content = bytearray()
            while True:
                if self._shutdown.why:
                    raise TraceNotRead("the worker is shutting down")
                request = worker_service_pb2.ReadTraceRequest(sha256=sha256, offset=len(content))
                try:
                    part = stub.ReadTrace(request, metadata=metadata, timeout=_TRACE_PART_SECONDS)
                except grpc.RpcError as error:
                    raise TraceNotRead(
                        f"cannot read trace {sha256.hex()}: {_details(error)}"
                    ) from error
                content += part.content
                if not part.content or len(content) >= part.total_bytes:
                    break
            if hashlib.sha256(content).digest() != sha256:
                raise TraceNotRead(
                    f"the content received for trace {sha256.hex()} has another SHA-256"
                )
            _log.info("read a trace", sha256=sha256.hex(), bytes=len(content))
            return bytes(content)

        return read

    def _leave(self, session: WorkSession) -> None:
        begun = self._queue.detach()
        # Tasks that finish soon may still be of use. The others are interrupted: the coordinator
        # assigns them to other workers, or has restarted and does not know them.
        patience = threading.Timer(self._settings.drain_seconds, interrupt, [begun])
        patience.daemon = True
        patience.start()
        if session.was_accepted:
            self._metrics.disconnected()
        with self._call_is_over:
            self._call = None
            self._call_is_over.notify_all()

    def _explain(self, error: grpc.RpcError) -> str:
        """Explains why a call failed. Raises ConnectionRejected if retrying is useless."""
        why = _details(error)
        assert isinstance(error, grpc.Call)
        code = _FATAL_CODES.get(error.code())
        if code is not None:
            raise ConnectionRejected(code, why) from error
        settings = self._settings
        if (
            error.code() == grpc.StatusCode.UNAVAILABLE
            and settings.tls is None
            and speaks_tls(settings.coordinator)
        ):
            return PLAINTEXT_TO_TLS
        return why

    def _drain(self) -> None:
        """Waits for a shutdown, then finishes running tasks, returns others, and ends the call."""
        self._shutdown.wait()
        _log.info("ending", why=self._shutdown.why)
        for _ in range(self._queue.drain(self._shutdown.why)):
            self._metrics.task_dropped(TaskEnd.RETURNED)
        self._queue.join(self._settings.drain_seconds)
        self._queue.close()
        with self._call_is_over:
            over = self._call_is_over.wait_for(lambda: self._call is None, _GOODBYE_SECONDS)
            if not over and self._call is not None:
                self._call.cancel()


def _details(error: grpc.RpcError) -> str:
    """The message of a gRPC error."""
    assert isinstance(error, grpc.Call)
    return error.details() or error.code().name
