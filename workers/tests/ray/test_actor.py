"""What an actor answers, without a cluster around it."""

from __future__ import annotations

import hashlib

import remy_simulator
from remy_farm.v1 import evaluation_pb2, worker_service_pb2
from remy_workers.ray.actor import EvaluationActor


def _tables(*, is_valid: bool = True) -> worker_service_pb2.TablesKnown:
    message = worker_service_pb2.TablesKnown()
    table = message.tables.add(signals=[1], domain_upper=16384.0)
    node = table.nodes.add()
    if is_valid:
        node.action.window_multiple = 1.0
        node.action.window_increment = 1.0
        node.action.intersend_ms = 3.0
    message.digest = hashlib.sha256(message.SerializeToString(deterministic=True)).digest()
    return message


def _task(
    tables: worker_service_pb2.TablesKnown, link_rate: float = 1.0
) -> worker_service_pb2.Task:
    traffic = evaluation_pb2.Traffic(exponential_time={"mean_ms": 500.0}, mean_off_ms=500.0)
    specimen = evaluation_pb2.Specimen(
        key=1,
        link_rate_packets_per_ms=link_rate,
        rtt_ms=50.0,
        senders=[{"count": 2, "traffic": traffic}],
    )
    return worker_service_pb2.Task(
        lease_id=7,
        tables_digest=tables.digest,
        request=evaluation_pb2.EvaluationRequest(
            candidates=[evaluation_pb2.Candidate()],
            specimens=[specimen],
            duration_ms=5000.0,
            seed=3,
        ),
    )


def _ask(
    actor: EvaluationActor, tables: worker_service_pb2.TablesKnown, task: worker_service_pb2.Task
) -> worker_service_pb2.WorkRequest:
    answer = actor.evaluate(tables.SerializeToString(), task.SerializeToString())
    return worker_service_pb2.WorkRequest.FromString(answer)


def test_a_result_is_the_simulator_s_with_its_digest() -> None:
    tables = _tables()
    task = _task(tables)
    actor = EvaluationActor()
    whole = evaluation_pb2.EvaluationRequest()
    whole.CopyFrom(task.request)
    whole.tables.extend(tables.tables)
    for _ in range(2):
        result = _ask(actor, tables, task).result
        assert result.lease_id == 7
        assert result.sha256 == hashlib.sha256(result.outcome).digest()
        outcome = evaluation_pb2.EvaluationOutcome.FromString(result.outcome)
        assert outcome == remy_simulator.evaluate(whole)


def test_what_makes_no_sense_is_refused() -> None:
    tables = _tables()
    answer = _ask(EvaluationActor(), tables, _task(tables, link_rate=-1.0))
    assert answer.refused.lease_id == 7
    assert "link" in answer.refused.why


def test_tables_that_make_no_sense_are_refused() -> None:
    tables = _tables(is_valid=False)
    assert "action" in _ask(EvaluationActor(), tables, _task(tables)).refused.why


def test_tables_that_arrive_damaged_have_the_task_returned() -> None:
    sent, arrived = _tables(), _tables()
    arrived.tables[0].domain_upper = 1.0
    assert list(_ask(EvaluationActor(), arrived, _task(sent)).returned.lease_ids) == [7]


def test_every_process_has_a_name_of_its_own() -> None:
    hellos = [worker_service_pb2.Hello.FromString(EvaluationActor().introduce()) for _ in range(2)]
    assert hellos[0].worker_id != hellos[1].worker_id
    assert hellos[0].simulator_digest == remy_simulator.fingerprint()
