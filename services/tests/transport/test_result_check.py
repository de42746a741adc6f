"""Tests that damaged and impossible results are rejected."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from library.tests.evaluation.requests import numbered_outcome, numbered_request
from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.scheduler.records import Completion
from remy_farm.evaluation.scheduler.scheduler import TaskScheduler
from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_proto.v1 import worker_service_pb2
from remy_services.transport.grpc import Traffic, WorkerStream, handle_message

_REQUEST = numbered_request(1, 4)
_CONTENT = numbered_outcome(_REQUEST).SerializeToString()


def _send_result(content: bytes, sha256: bytes | None = None) -> tuple[TaskScheduler, object]:
    """Sends a result for a scheduler's only task; returns scheduler and evaluation end."""
    scheduler = TaskScheduler()
    facts = WorkerFacts("worker", threads=1)
    scheduler.join(facts, 0.0)
    scheduler.credit("worker", 1, 0.0)
    number = scheduler.submit(Share("job"), _REQUEST)
    (task,) = scheduler.advance(0.0).assignments
    assert task.slice.simulations == 4
    result = worker_service_pb2.TaskResult(
        lease_id=task.lease_id,
        outcome=content,
        sha256=hashlib.sha256(content).digest() if sha256 is None else sha256,
    )
    stream = WorkerStream(facts, exit_when_idle=False, traffic=Traffic())
    handle_message(scheduler, stream, worker_service_pb2.WorkRequest(result=result), 1.0)
    return scheduler, scheduler.advance(1.0).ended.get(number)


def test_a_valid_result_is_accepted() -> None:
    scheduler, end = _send_result(_CONTENT)
    assert isinstance(end, Completion)
    assert not scheduler.snapshot().counts.bad_results


@given(st.integers(0, 8 * len(_CONTENT) - 1))
def test_a_flipped_bit_is_detected(place: int) -> None:
    content = bytearray(_CONTENT)
    content[place // 8] ^= 1 << place % 8
    scheduler, end = _send_result(bytes(content), hashlib.sha256(_CONTENT).digest())
    assert end is None
    assert scheduler.snapshot().counts.bad_results == {"digest": 1}


def test_an_undecodable_result_is_rejected() -> None:
    scheduler, end = _send_result(b"\xff\xff")
    assert end is None
    assert scheduler.snapshot().counts.bad_results == {"encoding": 1}


def test_an_impossible_result_is_rejected() -> None:
    outcome = numbered_outcome(_REQUEST)
    outcome.senders.packets_received[0] = 1 << 60
    scheduler, end = _send_result(outcome.SerializeToString())
    assert end is None
    assert scheduler.snapshot().counts.bad_results == {"impossible": 1}
