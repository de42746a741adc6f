"""A worker's replies to messages of its coordinator, without a network."""

from __future__ import annotations

import hashlib

import remy_simulator
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, worker_service_pb2
from remy_rpc.settings import Address
from remy_simulator.columns import packed, shared_part, slice_request, whole
from remy_simulator.traces import TraceCache
from remy_workers.interruption import IDLE, Shutdown
from remy_workers.settings import WorkerSettings, unique_worker_id
from remy_workers.simulation import SharedParts, TraceNotRead, simulate
from remy_workers.task_queue import Heartbeat, SendQueue, TaskQueue
from remy_workers.telemetry import WorkerMetrics
from remy_workers.worker import WorkSession, hello


class _Coordinator:
    """A fake coordinator that exchanges messages with a worker without threads."""

    def __init__(self) -> None:
        self.queue, self.shutdown = TaskQueue(), Shutdown()
        self.heartbeat = Heartbeat(self.queue.heartbeat)
        self._stream = SendQueue()
        self.queue.attach(self._stream, 2)
        next(self._stream)
        self._session = WorkSession(
            WorkerSettings(Address(), "w1", 1),
            self.queue,
            self.shutdown,
            self.heartbeat,
            WorkerMetrics(1),
            SharedParts(TraceCache(), self._read_trace),
        )
        #: Its traces by SHA-256, and the SHA-256s that were requested.
        self.traces: dict[bytes, bytes] = {}
        self.asked: list[bytes] = []

    def _read_trace(self, sha256: bytes) -> bytes:
        self.asked.append(sha256)
        if sha256 not in self.traces:
            raise TraceNotRead("not there")
        return self.traces[sha256]

    def say(self, **message: object) -> None:
        self._session.handle(worker_service_pb2.WorkResponse(**message))  # type: ignore[arg-type]

    def answer(self) -> worker_service_pb2.WorkRequest:
        return next(self._stream)

    def ask(
        self, shared: worker_service_pb2.SharedPart, tasks: worker_service_pb2.Tasks
    ) -> worker_service_pb2.WorkRequest:
        """Simulates the next task of the worker and returns the reply."""
        self.say(shared=shared)
        self.say(tasks=tasks)
        begun = self.queue.get()
        self.queue.done(begun, simulate(begun).message)
        return self.answer()


def _request(*, link_rate: float = 1.0, is_valid: bool = True) -> evaluation_pb2.EvaluationRequest:
    request = evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate()], duration_ms=5000.0, seed=3
    )
    table = request.tables.add(signals=[1], domain_upper=16384.0)
    node = table.nodes.add()
    if is_valid:
        node.action.window_multiple = 1.0
        node.action.window_increment = 1.0
        node.action.intersend_ms = 3.0
    traffic = evaluation_pb2.Traffic(exponential_time={"mean_ms": 500.0}, mean_off_ms=500.0)
    request.specimens.add(
        key=1,
        link_rate_packets_per_ms=link_rate,
        rtt_ms=50.0,
        senders=[{"count": 2, "traffic": traffic}],
    )
    return packed(request)


def _shared(request: evaluation_pb2.EvaluationRequest) -> worker_service_pb2.SharedPart:
    content = shared_part(request).SerializeToString(deterministic=True)
    return worker_service_pb2.SharedPart(digest=hashlib.sha256(content).digest(), request=content)


def _tasks(request: evaluation_pb2.EvaluationRequest) -> worker_service_pb2.Tasks:
    task = worker_service_pb2.Task(lease_id=7, slice=slice_request(request, whole(request)))
    return worker_service_pb2.Tasks(shared_digest=_shared(request).digest, tasks=[task])


def test_result_is_the_simulators_outcome_with_its_digest() -> None:
    request = _request()
    coordinator = _Coordinator()
    for _ in range(2):
        result = coordinator.ask(_shared(request), _tasks(request)).result
        assert result.lease_id == 7
        assert result.sha256 == hashlib.sha256(result.outcome).digest()
        outcome = evaluation_pb2.EvaluationOutcome.FromString(result.outcome)
        assert outcome == remy_simulator.evaluate_columns(request)


def test_invalid_requests_are_rejected() -> None:
    request = _request(link_rate=-1.0)
    answer = _Coordinator().ask(_shared(request), _tasks(request))
    assert answer.refused.lease_id == 7
    assert "link" in answer.refused.why


def test_invalid_tables_are_rejected() -> None:
    coordinator, request = _Coordinator(), _request(is_valid=False)
    coordinator.say(shared=_shared(request))
    coordinator.say(tasks=_tasks(request))
    assert "action" in coordinator.answer().refused.why


def test_tasks_of_a_damaged_shared_part_are_returned() -> None:
    request = _request()
    arrived = _shared(request)
    arrived.request += _shared(_request(link_rate=2.0)).request
    coordinator = _Coordinator()
    coordinator.say(shared=arrived)
    coordinator.say(tasks=_tasks(request))
    assert list(coordinator.answer().returned.lease_ids) == [7]


def test_coordinator_sets_the_heartbeat_and_ends_an_idle_worker() -> None:
    coordinator = _Coordinator()
    coordinator.say(welcome={"heartbeat_seconds": 0.25})
    assert coordinator.heartbeat.seconds == 0.25
    assert not coordinator.shutdown.wait(0)
    coordinator.say(nothing_left={})
    assert coordinator.shutdown.wait(0)
    assert coordinator.shutdown.why == IDLE


def test_hello_has_a_unique_id_and_the_simulators_fingerprint() -> None:
    names = [unique_worker_id() for _ in range(2)]
    assert names[0] != names[1]
    greeting = hello(WorkerSettings(Address(), names[0], 3, job_id="j1", exit_when_idle=True)).hello
    assert greeting.worker_id == names[0]
    assert greeting.simulator_digest == remy_simulator.fingerprint()
    assert greeting.scale_free_digest == remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE)
    assert greeting.signals_digest == remy_simulator.signals_fingerprint()
    assert greeting.protocols_digest == remy_simulator.protocols_fingerprint()
    assert greeting.path_model_digest == remy_simulator.path_model_fingerprint()
    assert greeting.network_signals_digest == remy_simulator.network_signals_fingerprint()
    assert (greeting.threads, greeting.job_id, greeting.exit_when_idle) == (3, "j1", True)


def _following_a_trace(seed: int) -> tuple[evaluation_pb2.EvaluationRequest, bytes]:
    """A request that names a recorded trace, and the trace."""
    opportunities_us = b"".join(time.to_bytes(8, "little") for time in range(1000, 90_000, 1100))
    request = _request()
    request.seed = seed
    trace = request.traces.add(sha256=hashlib.sha256(opportunities_us).digest())
    request.specimen_columns.kinds[0].links.add(trace={"sha256": trace.sha256, "semantics": 1})
    return request, opportunities_us


def test_trace_is_read_once_for_all_requests() -> None:
    coordinator = _Coordinator()
    (first, opportunities_us), (second, _) = _following_a_trace(3), _following_a_trace(4)
    sha256 = first.traces[0].sha256
    coordinator.traces[sha256] = opportunities_us
    for request in (first, second):
        answer = coordinator.ask(_shared(request), _tasks(request))
        request.traces[0].opportunities_us = opportunities_us
        expected = remy_simulator.evaluate_columns(request).SerializeToString(deterministic=True)
        assert answer.result.outcome == expected
    assert coordinator.asked == [sha256]


def test_tasks_of_a_missing_trace_are_returned_and_can_be_repeated() -> None:
    coordinator = _Coordinator()
    request, opportunities_us = _following_a_trace(3)
    coordinator.say(shared=_shared(request))
    coordinator.say(tasks=_tasks(request))
    assert coordinator.answer().returned.lease_ids == [7]
    coordinator.traces[request.traces[0].sha256] = opportunities_us
    coordinator.say(tasks=_tasks(request))
    begun = coordinator.queue.get()
    coordinator.queue.done(begun, simulate(begun).message)
    assert coordinator.answer().result.lease_id == 7
