"""Simulating tasks: their rule tables, one evaluation, and the threads that do them."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

import remy_simulator
from remy_farm.v1 import worker_service_pb2
from remy_rpc.tracing import span_beneath
from remy_simulator import InvalidTable, RuleTable, native_tables
from remy_workers.task_queue import Task, TaskQueue, refusal
from remy_workers.telemetry import WorkerMetrics

# A little behind the threads that talk, which need next to nothing, but at once.
_NICENESS = 1

_log = structlog.get_logger()


class UnknownTables(Exception):
    """A task names tables that were not sent, or did not arrive as they were sent."""


class TableCache:
    """The rule tables that the tasks of one stream name by their digest."""

    def __init__(self) -> None:
        # As the simulator has them, or why it does not take them.
        self._tables: dict[bytes, Sequence[RuleTable] | InvalidTable] = {}

    def update(self, message: worker_service_pb2.TablesKnown) -> None:
        """Tables to know, and those to forget."""
        for digest in message.forgotten:
            self._tables.pop(digest, None)
        only_tables = worker_service_pb2.TablesKnown(tables=message.tables)
        content = only_tables.SerializeToString(deterministic=True)
        if hashlib.sha256(content).digest() != message.digest:
            return
        try:
            self._tables[message.digest] = native_tables(message.tables)
        except InvalidTable as problem:
            self._tables[message.digest] = problem

    def find(self, digest: bytes) -> Sequence[RuleTable]:
        """Raises UnknownTables, and InvalidTable for what the simulator does not take."""
        known = self._tables.get(digest)
        if known is None:
            raise UnknownTables
        if isinstance(known, InvalidTable):
            raise known
        return known


@dataclass(frozen=True)
class Answer:
    """What is said of a task, and what it took."""

    #: None: the simulation was interrupted.
    message: worker_service_pb2.WorkRequest | None = None
    #: Whether the simulator refused it.
    is_refusal: bool = False
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    simulations: int = 0
    packets: int = 0


def simulate(task: Task) -> Answer:
    """Does a task in the calling thread, without the GIL for nearly all of the time."""
    began, began_cpu = time.monotonic(), time.thread_time()
    try:
        outcome = remy_simulator.evaluate(
            task.request, tables=task.tables, cancellation=task.cancellation
        )
    except remy_simulator.Cancelled:
        return Answer()
    except remy_simulator.InvalidRequest as problem:
        return Answer(refusal(task.lease_id, str(problem)), is_refusal=True)
    content = outcome.SerializeToString(deterministic=True)
    packets = sum(sum(result.packets_sent) for result in outcome.outcomes)
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
        simulations=len(outcome.outcomes),
        packets=packets,
    )


def start_simulation_threads(
    count: int,
    queue: TaskQueue,
    metrics: WorkerMetrics,
    *,
    pin: bool,
    on_failure: Callable[[], None],
) -> None:
    """Threads that do the tasks of a queue, for as long as the process lives.

    With `pin` each stays on one CPU. `on_failure` is called after an error that is not the task's
    fault has been logged; that thread does nothing more.
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
                _do_one(queue, metrics)
        except BaseException:
            _log.exception("a simulation thread failed")
            on_failure()

    for number in range(count):
        threading.Thread(target=run, args=(number,), name=f"simulate-{number}", daemon=True).start()


def _do_one(queue: TaskQueue, metrics: WorkerMetrics) -> None:
    task = queue.get()
    metrics.task_started()
    with span_beneath(
        task.trace_parent,
        "task",
        job_id=task.job_id,
        candidates=len(task.request.candidates),
        specimens=len(task.request.specimens),
    ):
        answer = simulate(task)
    is_wanted = queue.done(task, answer.message)
    if answer.is_refusal:
        metrics.task_refused()
        _log.warning("the simulator refuses a task", job_id=task.job_id)
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
        _log.debug("a result came too late", job_id=task.job_id)
