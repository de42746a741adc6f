"""Tests the server side of WorkerService, with conforming and faulty workers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

import remy_simulator
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.designer import Designer
from remy_farm.evaluation.interface import Evaluation, ResultsDiffer, Share
from remy_farm.evaluation.scheduler.records import SchedulerSettings
from remy_proto.v1 import evaluation_pb2, worker_service_pb2
from remy_services.transport.grpc import WorkerFleet, WorkerFleetSettings
from services.tests.transport.greeting import hello, make_stub
from tests.waiting import wait_in_loop

Request = worker_service_pb2.WorkRequest
Response = worker_service_pb2.WorkResponse

_TIMEOUT_SECONDS = 60.0
_SHORT_TASKS = SchedulerSettings(longest_task_seconds=2e-3, shortest_task_seconds=1e-6)


class Caller:
    """A scripted worker."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self._received: asyncio.Queue[Response] = asyncio.Queue()
        self.listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError):
            async for response in self.call:
                self._received.put_nowait(response)

    async def send(self, **message: Any) -> None:
        await self.call.write(Request(**message))

    async def receive(self, kind: str) -> Any:
        """Waits for the next message of a kind, and skips others."""
        while True:
            response = await asyncio.wait_for(self._received.get(), _TIMEOUT_SECONDS)
            if response.WhichOneof("message") == kind:
                return getattr(response, kind)

    async def work_until(
        self, evaluation: asyncio.Task[Evaluation], shared: worker_service_pb2.SharedPart
    ) -> list[Response]:
        """Executes tasks until an evaluation ends; returns all received messages."""
        received = []
        while not evaluation.done():
            receiving = asyncio.create_task(self._received.get())
            done, _ = await asyncio.wait(
                {receiving, evaluation},
                timeout=_TIMEOUT_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            assert done
            if receiving.done():
                received.append(receiving.result())
                if received[-1].HasField("tasks"):
                    for task in received[-1].tasks.tasks:
                        await self.answer(task, shared)
            else:
                receiving.cancel()
        return received

    async def join(self, name: str = "caller", *, credit: int = 4, **changes: Any) -> None:
        await self.call.write(hello(name, **changes))
        await self.receive("welcome")
        await self.send(credit={"tasks": credit})

    async def end(self) -> tuple[grpc.StatusCode, str]:
        """Waits until the coordinator ends the call; returns status and message."""
        return await self.call.code(), await self.call.details()

    async def task(self) -> worker_service_pb2.Task:
        """Waits for tasks and returns the first."""
        tasks = await self.receive("tasks")
        assert isinstance(tasks, worker_service_pb2.Tasks)
        return tasks.tasks[0]

    async def answer(self, task: worker_service_pb2.Task, shared: Any, **changes: Any) -> None:
        """Executes a task and sends its result, with some fields changed."""
        content = _outcome(task, shared).SerializeToString()
        result = {
            "lease_id": task.lease_id,
            "outcome": content,
            "sha256": hashlib.sha256(content).digest(),
            "cpu_seconds": 0.01,
            **changes,
        }
        await self.send(result=result)


def _outcome(task: worker_service_pb2.Task, shared: Any) -> evaluation_pb2.EvaluationOutcome:
    request = evaluation_pb2.EvaluationRequest.FromString(shared.request)
    request.MergeFrom(task.slice)
    return remy_simulator.evaluate_columns(request)


class Coordinator:
    """A gRPC server with a WorkerFleet."""

    def __init__(self, fleet: WorkerFleet, port: int) -> None:
        self.fleet = fleet
        self._port = port

    @asynccontextmanager
    async def call(self) -> AsyncIterator[Caller]:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._port}") as channel:
            caller = Caller(make_stub(channel).Work())
            yield caller
            caller.call.cancel()
            await asyncio.gather(caller.listening, return_exceptions=True)


def serve(
    test: Callable[[Coordinator], Awaitable[None]], settings: WorkerFleetSettings | None = None
) -> None:
    """Runs a test with a coordinator."""

    async def run() -> None:
        fleet = WorkerFleet(settings)
        server = grpc.aio.server()
        fleet.add_to(server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            await test(Coordinator(fleet, port))
        finally:
            await fleet.close()
            await server.stop(None)

    asyncio.run(run())


def _request() -> evaluation_pb2.EvaluationRequest:
    request = Designer(small_joint_spec(simulated_seconds=1)).next_request()
    assert request is not None
    # Without an objective, outcomes contain the results of senders.
    request.ClearField("objective")
    return request


def test_log_lines_are_kept_by_job_after_workers_leave() -> None:
    async def test(coordinator: Coordinator) -> None:
        fleet = coordinator.fleet
        async with coordinator.call() as own, coordinator.call() as shared:
            await own.call.write(hello("own", job_id="job"))
            assert (await own.receive("welcome")).takes_log_lines
            await shared.join("shared")
            for number in range(150):
                line = {"unix_seconds": 100.0 + number, "level": "info", "text": f"line {number}"}
                await own.send(log_line=line)
            loud = {"unix_seconds": 1e30, "level": "loud", "text": "\x1b[2J" * 999}
            await shared.send(log_line=loud)
            await wait_in_loop(lambda: len(fleet.worker_lines("job")) == 101)
            await wait_in_loop(lambda: fleet.worker_lines("job")[-1].text == "line 149")
        strange, *lines = fleet.worker_lines("job")
        assert [each.text for each in lines] == [f"line {number}" for number in range(50, 150)]
        assert {each.worker_id for each in lines} == {"own"}
        # Control characters are removed, so that a line cannot manipulate a terminal.
        assert (strange.unix_seconds, strange.level, len(strange.text)) == (0.0, "info", 1000)
        assert strange.text.isprintable()
        assert fleet.worker_lines("another") == [strange]

    serve(test)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"worker_id": ""}, "worker_id is missing"),
        ({"worker_id": "x" * 201}, "at most 200 characters"),
        ({"worker_id": "two\nlines"}, "printable"),
        ({"job_id": "x" * 201}, "job_id must be printable"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": 1 << 20}, "it must be 1 to 4096"),
    ],
)
def test_invalid_hellos_are_refused(changes: dict[str, Any], expected: str) -> None:
    async def test(coordinator: Coordinator) -> None:
        async with coordinator.call() as caller:
            await caller.call.write(hello("caller", **changes))
            code, why = await caller.end()
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert expected in why

    serve(test)


@pytest.mark.parametrize(
    "changes",
    [
        {"simulator_version": "0.0.1"},
        {"simulator_digest": "0" * 64},
        {"scale_free_digest": "0" * 64},
        {"scale_free_digest": ""},
        {"signals_digest": ""},
        {"protocols_digest": "0" * 64},
        # A worker without protocols would misinterpret them as rule tables.
        {"protocols_digest": ""},
        {"path_model_digest": "0" * 64},
        {"path_model_digest": ""},
        {"network_signals_digest": "0" * 64},
        {"network_signals_digest": ""},
    ],
)
def test_workers_with_another_simulator_are_rejected(changes: dict[str, Any]) -> None:
    async def test(coordinator: Coordinator) -> None:
        async with coordinator.call() as caller:
            await caller.call.write(hello("caller", **changes))
            code, why = await caller.end()
        assert code == grpc.StatusCode.UNIMPLEMENTED
        assert "install the coordinator's version" in why
        assert coordinator.fleet.status().workers == 0

    serve(test)


@pytest.mark.parametrize("message", [{"credit": {"tasks": 1}}, {"heartbeat": {}}, {}])
def test_workers_without_hello_are_rejected(message: dict[str, Any]) -> None:
    async def test(coordinator: Coordinator) -> None:
        async with coordinator.call() as caller:
            await caller.send(**message)
            code, _ = await caller.end()
        assert code == grpc.StatusCode.INVALID_ARGUMENT

    serve(test)


def test_silent_workers_are_rejected() -> None:
    async def test(coordinator: Coordinator) -> None:
        async with coordinator.call() as caller:
            code, _ = await caller.end()
        assert code == grpc.StatusCode.INVALID_ARGUMENT

    serve(test, WorkerFleetSettings(hello_seconds=0.05))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"credit": {"tasks": 65}}, "at most 64 per thread are allowed"),
        ({}, "unexpected message after Hello: empty"),
        ({"hello": {"worker_id": "again"}}, "unexpected message after Hello: hello"),
    ],
)
def test_invalid_messages_after_hello_end_the_stream(
    message: dict[str, Any], expected: str
) -> None:
    async def test(coordinator: Coordinator) -> None:
        async with coordinator.call() as caller:
            await caller.join()
            await caller.send(**message)
            code, why = await caller.end()
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert expected in why
        await wait_in_loop(lambda: coordinator.fleet.status().workers == 0)

    serve(test)


def test_shared_parts_are_sent_once_per_evaluation() -> None:
    async def test(coordinator: Coordinator) -> None:
        request = _request()
        async with coordinator.call() as caller:
            await caller.join(credit=1)
            evaluation = asyncio.create_task(coordinator.fleet.evaluate(Share("job"), request))
            shared = await caller.receive("shared")
            assert hashlib.sha256(shared.request).digest() == shared.digest
            sent = evaluation_pb2.EvaluationRequest.FromString(shared.request)
            assert list(sent.tables) == list(request.tables)
            received = await caller.work_until(evaluation, shared)
            # Only task messages follow, without tables.
            assert len(received) > 1
            assert all(response.HasField("tasks") for response in received)
            assert all(response.tasks.shared_digest == shared.digest for response in received)
            assert not any(task.slice.tables for each in received for task in each.tasks.tasks)
            assert evaluation.result().outcome == remy_simulator.evaluate_columns(request)
            assert evaluation.result().workers == {"caller"}
            assert evaluation.result().cpu_seconds == pytest.approx(0.01 * len(received))

    serve(test, WorkerFleetSettings(_SHORT_TASKS))


def test_answers_to_unknown_leases_are_ignored() -> None:
    async def test(coordinator: Coordinator) -> None:
        async with coordinator.call() as caller:
            await caller.join()
            await caller.send(result={"lease_id": 1})
            await caller.send(refused={"lease_id": 2, "why": "no"})
            await caller.send(returned={"lease_ids": [3, 4]})
            counts = coordinator.fleet.snapshot().counts
            await wait_in_loop(lambda: counts.unknown_leases == 4)
            request = _request()
            evaluation = asyncio.create_task(coordinator.fleet.evaluate(Share("job"), request))
            shared = await caller.receive("shared")
            await caller.answer(task := await caller.task(), shared)
            await caller.answer(task, shared)
            await caller.work_until(evaluation, shared)
            assert evaluation.result().outcome == remy_simulator.evaluate_columns(request)

    serve(test)


def test_workers_with_damaged_results_are_quarantined() -> None:
    async def test(coordinator: Coordinator) -> None:
        request = _request()
        evaluation = asyncio.create_task(coordinator.fleet.evaluate(Share("job"), request))
        async with coordinator.call() as caller:
            await caller.join()
            shared = await caller.receive("shared")
            for _ in range(3):
                await caller.answer(await caller.task(), shared, sha256=b"\0" * 32)
            code, why = await caller.end()
            assert code == grpc.StatusCode.FAILED_PRECONDITION
            assert "3 of its results were damaged" in why
        async with coordinator.call() as caller:
            await caller.call.write(hello("caller"))
            code, why = await caller.end()
            assert code == grpc.StatusCode.FAILED_PRECONDITION
            assert "worker caller is quarantined" in why
        assert coordinator.fleet.status().quarantined_workers == 1
        assert not evaluation.done()
        evaluation.cancel()

    serve(test)


def test_differing_results_fail_the_job_and_name_both_workers() -> None:
    async def test(coordinator: Coordinator) -> None:
        fleet, request = coordinator.fleet, _request()
        evaluation = asyncio.create_task(fleet.evaluate(Share("job"), request))
        async with coordinator.call() as slow, coordinator.call() as quick:
            await slow.join("slow", credit=1)
            await slow.receive("shared")
            late = await slow.task()
            await wait_in_loop(lambda: fleet.snapshot().counts.leases_ended["silent"] > 0)
            # Another worker does the task too; both results are intact, but one is wrong.
            await quick.join("quick")
            shared = await quick.receive("shared")
            await quick.work_until(evaluation, shared)
            wrong = _outcome(late, shared)
            wrong.senders.delay_sum_ms = bytes(8) + wrong.senders.delay_sum_ms[8:]
            content = wrong.SerializeToString()
            digest = hashlib.sha256(content).digest()
            await slow.answer(late, shared, outcome=content, sha256=digest)
            with pytest.raises(ResultsDiffer) as raised:
                await fleet.evaluate(Share("job"), request)
            for name in ("slow", "quick"):
                assert f"worker {name} (simulator " in str(raised.value)
            fingerprint = f"({remy_simulator.fingerprint()[:12]}, "
            assert str(raised.value).count(fingerprint) == 2

    serve(test, WorkerFleetSettings(SchedulerSettings(lease_seconds=0.5)))


def test_a_second_stream_of_a_worker_replaces_the_first() -> None:
    async def test(coordinator: Coordinator) -> None:
        async with coordinator.call() as first, coordinator.call() as second:
            await first.join()
            evaluation = asyncio.create_task(coordinator.fleet.evaluate(Share("job"), _request()))
            shared = await first.receive("shared")
            late = await first.task()
            await second.join()
            assert (await first.end())[0] == grpc.StatusCode.ABORTED
            assert coordinator.fleet.status().workers == 1
            # Tasks of the first stream can be answered on the second.
            await second.answer(late, shared)
            counts = coordinator.fleet.snapshot().counts
            await wait_in_loop(lambda: counts.tasks_done == 1)
            evaluation.cancel()

    serve(test)


def test_tasks_of_a_silent_worker_are_reassigned_after_its_lease() -> None:
    async def test(coordinator: Coordinator) -> None:
        request = _request()
        evaluation = asyncio.create_task(coordinator.fleet.evaluate(Share("job"), request))
        async with coordinator.call() as silent, coordinator.call() as other:
            await silent.join("silent", credit=64)
            await silent.task()
            await wait_in_loop(
                lambda: coordinator.fleet.snapshot().counts.leases_ended["silent"] > 0
            )
            assert coordinator.fleet.snapshot().silent_workers == 1
            await other.join("other")
            shared = await other.receive("shared")
            await other.work_until(evaluation, shared)
            assert evaluation.result().outcome == remy_simulator.evaluate_columns(request)
            # The silent worker is told which tasks are cancelled.
            assert (await silent.receive("cancelled")).lease_ids

    serve(test, WorkerFleetSettings(SchedulerSettings(lease_seconds=0.5)))


def test_withdrawn_tasks_are_cancelled_at_once() -> None:
    async def test(coordinator: Coordinator) -> None:
        async with coordinator.call() as caller:
            await caller.join()
            evaluation = asyncio.create_task(coordinator.fleet.evaluate(Share("job"), _request()))
            task = await caller.task()
            evaluation.cancel()
            cancelled = await caller.receive("cancelled")
            assert task.lease_id in cancelled.lease_ids
            await caller.send(returned={"lease_ids": list(cancelled.lease_ids)})
            await wait_in_loop(lambda: coordinator.fleet.status().busy_workers == 0)

    serve(test)
