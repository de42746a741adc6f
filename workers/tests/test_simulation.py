"""Shared parts of a stream, and the simulation of a task."""

from __future__ import annotations

import hashlib

import pytest

from remy_proto.v1 import evaluation_pb2, rule_table_pb2, worker_service_pb2
from remy_simulator import InvalidRequest, PreparedRequest
from remy_simulator.columns import packed, shared_part, slice_request, whole
from remy_simulator.traces import TraceCache
from remy_workers.simulation import (
    SharedParts,
    UnknownSharedPart,
    simulate,
    start_simulation_threads,
)
from remy_workers.task_queue import SendQueue, Task, TaskQueue
from remy_workers.telemetry import WorkerMetrics
from tests.waiting import wait_until


def _request(
    *, is_valid: bool = True, duration_ms: float = 1000.0
) -> evaluation_pb2.EvaluationRequest:
    table = rule_table_pb2.RuleTable(signals=[rule_table_pb2.SIGNAL_RTT_RATIO], domain_upper=163840)
    node = table.nodes.add()
    if is_valid:
        node.action.CopyFrom(
            rule_table_pb2.Action(window_multiple=1, window_increment=1, intersend_ms=1)
        )
    traffic = evaluation_pb2.Traffic(exponential_time={"mean_ms": 500.0}, mean_off_ms=500.0)
    specimen = evaluation_pb2.Specimen(
        link_rate_packets_per_ms=1.0, rtt_ms=50.0, senders=[{"count": 2, "traffic": traffic}]
    )
    return packed(
        evaluation_pb2.EvaluationRequest(
            tables=[table],
            candidates=[evaluation_pb2.Candidate()],
            specimens=[specimen],
            duration_ms=duration_ms,
        )
    )


def _message(*, is_valid: bool = True) -> worker_service_pb2.SharedPart:
    content = shared_part(_request(is_valid=is_valid)).SerializeToString(deterministic=True)
    return worker_service_pb2.SharedPart(digest=hashlib.sha256(content).digest(), request=content)


def _task(*, duration_ms: float = 1000.0, packet_limit: int | None = None) -> Task:
    request = _request(duration_ms=duration_ms)
    part = slice_request(request, whole(request))
    return Task(7, "job", PreparedRequest(shared_part(request)), part, packet_limit=packet_limit)


def _no_trace(sha256: bytes) -> bytes:
    raise AssertionError(sha256)


def _shared_parts() -> SharedParts:
    return SharedParts(TraceCache(), _no_trace)


def test_shared_part_is_found_by_digest_until_forgotten() -> None:
    known, message = _shared_parts(), _message()
    known.update(message)
    assert known.find(message.digest).rules == 1

    known.update(worker_service_pb2.SharedPart(forgotten=[message.digest]))
    with pytest.raises(UnknownSharedPart):
        known.find(message.digest)


def test_damaged_shared_part_is_unknown() -> None:
    known, message = _shared_parts(), _message()
    message.request = message.request[:-1] + bytes([message.request[-1] ^ 1])
    known.update(message)
    with pytest.raises(UnknownSharedPart):
        known.find(message.digest)


def test_invalid_shared_part_raises_invalid_request() -> None:
    known, message = _shared_parts(), _message(is_valid=False)
    known.update(message)
    with pytest.raises(InvalidRequest):
        known.find(message.digest)


def test_cancelled_simulation_ends() -> None:
    queue, stream = TaskQueue(), SendQueue()
    queue.attach(stream, 1)
    metrics = WorkerMetrics(1)
    start_simulation_threads(1, queue, metrics, pin=False, on_failure=lambda: None)
    queue.put(_task(duration_ms=1e15))
    assert next(stream).HasField("credit")
    wait_until(lambda: queue.running == 1)
    queue.cancel([7])
    assert list(next(stream).returned.lease_ids) == [7]


def test_task_over_its_packet_limit_is_rejected() -> None:
    answer = simulate(_task(duration_ms=1e12, packet_limit=5000))
    assert answer.message is not None
    assert answer.message.refused.over_packet_limit
    assert "more than 5000 packets" in answer.message.refused.why
