"""Doing a task: from a request to what is said of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.v1 import worker_service_pb2
from remy_workers.messages import refusal
from remy_workers.workload import Work


@dataclass(frozen=True)
class Answer:
    """What is said of a task, and what it took."""

    message: worker_service_pb2.WorkRequest
    #: Whether the simulator refused it.
    is_refusal: bool = False
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    simulations: int = 0
    packets: int = 0


def simulate(work: Work[Sequence[remy_simulator.RuleTable]]) -> Answer:
    """Does a task in the calling thread, without the GIL for nearly all of the time."""
    began, began_cpu = time.monotonic(), time.thread_time()
    try:
        outcome = remy_simulator.evaluate(work.request, tables=work.tables)
    except remy_simulator.InvalidRequest as problem:
        return Answer(refusal(work.lease_id, str(problem)), is_refusal=True)
    content = outcome.SerializeToString(deterministic=True)
    packets = sum(sum(result.packets_sent) for result in outcome.outcomes)
    digest = hashlib.sha256(content).digest()
    cpu_seconds, wall_seconds = time.thread_time() - began_cpu, time.monotonic() - began
    result = worker_service_pb2.TaskResult(
        lease_id=work.lease_id,
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
