"""Simulate tasks: their shared parts, one evaluation, and the simulation threads."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog
from google.protobuf.message import DecodeError

from remy_proto.completion import complete
from remy_proto.v1 import evaluation_pb2, worker_service_pb2
from remy_rpc.tracing import child_span
from remy_simulator import Cancelled, InvalidRequest, PreparedRequest
from remy_simulator.columns import specimen_count
from remy_simulator.traces import RecordedTrace, TraceCache
from remy_workers.task_queue import Task, TaskQueue, refusal
from remy_workers.telemetry import WorkerMetrics

# Slightly below the threads that communicate, which need little CPU time but low latency.
_NICENESS = 1

_log = structlog.get_logger()


class UnknownSharedPart(Exception):
    """A task names a shared part that did not arrive, or arrived damaged."""


class TraceNotRead(Exception):
    """A recorded trace that tasks need could not be read from the coordinator."""


#: Reads the recorded trace with a SHA-256 from the coordinator. Raises TraceNotRead.
ReadTrace = Callable[[bytes], bytes]


class SharedParts:
    """The shared parts of the tasks of one stream, by digest."""

    def __init__(self, traces: TraceCache, read_trace: ReadTrace) -> None:
        """Traces missing from the cache `traces` are read by `read_trace`."""
        self._traces = traces
        self._read_trace = read_trace
        # Requests as sent; then as prepared by the simulator, or its reason to reject them.
        self._sent: dict[bytes, evaluation_pb2.EvaluationRequest] = {}
        self._parts: dict[bytes, PreparedRequest | InvalidRequest] = {}

    def update(self, message: worker_service_pb2.SharedPart) -> None:
        """Stores a shared part, and forgets those that are no longer needed."""
        for digest in message.forgotten:
            self._sent.pop(digest, None)
            self._parts.pop(digest, None)
        if hashlib.sha256(message.request).digest() != message.digest:
            return
        with suppress(DecodeError):
            request = evaluation_pb2.EvaluationRequest.FromString(message.request)
            self._sent[message.digest] = complete(request)

    def find(self, digest: bytes) -> PreparedRequest:
        """Returns the prepared request.

        Raises UnknownSharedPart, and InvalidRequest if the simulator rejects it.
        """
        if digest not in self._parts:
            self._parts[digest] = self._prepare(digest)
        known = self._parts[digest]
        if isinstance(known, InvalidRequest):
            raise InvalidRequest(str(known))
        return known

    def _prepare(self, digest: bytes) -> PreparedRequest | InvalidRequest:
        request = self._sent.get(digest)
        if request is None:
            raise UnknownSharedPart
        try:
            # From here on the request keeps its traces, even if the cache evicts them.
            recordings = {each.sha256: self._recording(each.sha256) for each in request.traces}
            prepared = PreparedRequest(request, find_trace=recordings.get)
        except TraceNotRead as problem:
            _log.warning("could not read a trace", why=str(problem))
            raise UnknownSharedPart from problem
        except InvalidRequest as problem:
            return problem
        del self._sent[digest]
        return prepared

    def _recording(self, sha256: bytes) -> RecordedTrace:
        return self._traces.find(sha256) or self._traces.keep(self._read_trace(sha256))


@dataclass(frozen=True)
class Answer:
    """The reply to a task, and what the simulation cost."""

    #: None if the simulation was interrupted.
    message: worker_service_pb2.WorkRequest | None = None
    #: Whether the simulator rejected the task.
    is_refusal: bool = False
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    simulations: int = 0
    packets: int = 0


def simulate(task: Task) -> Answer:
    """Simulates a task in the calling thread, without the GIL for nearly all of the time."""
    began, began_cpu = time.monotonic(), time.thread_time()
    try:
        outcome = task.prepared.evaluate(
            task.part, cancellation=task.cancellation, packet_limit=task.packet_limit
        )
    except InvalidRequest as problem:
        return Answer(refusal(task.lease_id, str(problem)), is_refusal=True)
    except Cancelled as ended:
        if task.cancellation.cancelled:
            return Answer()
        refused = refusal(task.lease_id, str(ended), over_packet_limit=True)
        return Answer(refused, is_refusal=True)
    content = outcome.SerializeToString(deterministic=True)
    digest = hashlib.sha256(content).digest()
    cpu_seconds, wall_seconds = time.thread_time() - began_cpu, time.monotonic() - began
    result = worker_service_pb2.TaskResult(
        lease_id=task.lease_id,
        outcome=content,
        sha256=digest,
        cpu_seconds=cpu_seconds,
        wall_seconds=wall_seconds,
    )
    return Answer(
        worker_service_pb2.WorkRequest(result=result),
        wall_seconds=wall_seconds,
        cpu_seconds=cpu_seconds,
        simulations=len(outcome.packets_sent),
        packets=sum(outcome.packets_sent),
    )


def start_simulation_threads(
    count: int,
    queue: TaskQueue,
    metrics: WorkerMetrics,
    *,
    pin: bool,
    on_failure: Callable[[], None],
) -> None:
    """Starts threads that simulate the tasks of a queue for the lifetime of the process.

    With `pin` each thread stays on one CPU. If a thread fails for a reason other than an invalid
    task, it logs the error, calls `on_failure` and ends.
    """
    cpus = sorted(os.sched_getaffinity(0))

    def run(number: int) -> None:
        thread_id = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread_id)
        os.setpriority(os.PRIO_PROCESS, thread_id, niceness + _NICENESS)
        if pin:
            os.sched_setaffinity(thread_id, {cpus[number % len(cpus)]})
        try:
            while True:
                _simulate_next(queue, metrics)
        except BaseException:
            _log.exception("a simulation thread failed")
            on_failure()

    for number in range(count):
        threading.Thread(target=run, args=(number,), name=f"simulate-{number}", daemon=True).start()


def _simulate_next(queue: TaskQueue, metrics: WorkerMetrics) -> None:
    task = queue.get()
    metrics.task_started()
    with child_span(
        task.trace_parent,
        "task",
        job_id=task.job_id,
        candidates=len(task.part.candidates),
        specimens=specimen_count(task.part),
    ):
        answer = simulate(task)
    is_wanted = queue.done(task, answer.message)
    if answer.is_refusal:
        metrics.task_refused()
        _log.warning("the simulator rejected a task", job_id=task.job_id)
        return
    if answer.message is None:
        metrics.task_interrupted()
        return
    metrics.task_done(
        wall_seconds=answer.wall_seconds,
        cpu_seconds=answer.cpu_seconds,
        evaluations=answer.simulations,
        packets=answer.packets,
    )
    if not is_wanted:
        _log.debug("a result arrived too late", job_id=task.job_id)
