"""The tables that tasks name, and what comes of a task."""

from __future__ import annotations

import hashlib

import pytest

from remy_farm.v1 import evaluation_pb2, rule_table_pb2, worker_service_pb2
from remy_simulator import InvalidTable
from remy_workers.simulation import TableCache, UnknownTables, start_simulation_threads
from remy_workers.task_queue import SendQueue, Task, TaskQueue
from remy_workers.telemetry import WorkerMetrics
from tests.waiting import wait_until


def _message(*, is_valid: bool = True) -> worker_service_pb2.TablesKnown:
    table = rule_table_pb2.RuleTable(signals=[rule_table_pb2.SIGNAL_RTT_RATIO], domain_upper=163840)
    node = table.nodes.add()
    if is_valid:
        node.action.CopyFrom(
            rule_table_pb2.Action(window_multiple=1, window_increment=1, intersend_ms=1)
        )
    message = worker_service_pb2.TablesKnown(tables=[table])
    content = message.SerializeToString(deterministic=True)
    message.digest = hashlib.sha256(content).digest()
    return message


def test_tables_are_found_by_their_digest_until_they_are_forgotten() -> None:
    known, message = TableCache(), _message()
    known.update(message)
    (table,) = known.find(message.digest)
    assert table.rule_count == 1

    known.update(worker_service_pb2.TablesKnown(forgotten=[message.digest]))
    with pytest.raises(UnknownTables):
        known.find(message.digest)


def test_tables_that_were_damaged_on_the_way_are_not_known() -> None:
    known, message = TableCache(), _message()
    message.tables[0].nodes[0].action.intersend_ms = 2
    known.update(message)
    with pytest.raises(UnknownTables):
        known.find(message.digest)


def test_tables_that_the_simulator_does_not_take_are_told_apart() -> None:
    known, message = TableCache(), _message(is_valid=False)
    known.update(message)
    with pytest.raises(InvalidTable):
        known.find(message.digest)


def test_a_simulation_longer_than_anybody_waits_ends_when_it_is_cancelled() -> None:
    request = evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate()],
        specimens=[
            evaluation_pb2.Specimen(
                key=1,
                link_rate_packets_per_ms=1.0,
                rtt_ms=50.0,
                senders=[
                    {
                        "count": 2,
                        "traffic": {"exponential_time": {"mean_ms": 500.0}, "mean_off_ms": 500.0},
                    }
                ],
            )
        ],
        duration_ms=1e15,
        seed=3,
    )
    known, message = TableCache(), _message()
    known.update(message)
    queue, stream = TaskQueue(), SendQueue()
    queue.attach(stream, 1)
    metrics = WorkerMetrics(1)
    start_simulation_threads(1, queue, metrics, pin=False, on_failure=lambda: None)
    queue.put(Task(7, "job", request, known.find(message.digest)))
    assert next(stream).HasField("credit")
    wait_until(lambda: queue.running == 1)
    queue.cancel([7])
    assert list(next(stream).returned.lease_ids) == [7]
