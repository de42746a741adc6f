"""The task queue answers every task exactly once, in any order of events."""

from __future__ import annotations

import threading

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from remy_proto.v1 import evaluation_pb2, worker_service_pb2
from remy_simulator import PreparedRequest
from remy_workers.task_queue import SendQueue, Task, TaskQueue, interrupt, log_line


def _task(lease_id: int) -> Task:
    request = evaluation_pb2.EvaluationRequest()
    return Task(lease_id, "job", PreparedRequest(request), request)


def _result(lease_id: int) -> worker_service_pb2.WorkRequest:
    return worker_service_pb2.WorkRequest(result=worker_service_pb2.TaskResult(lease_id=lease_id))


def _unsent(stream: SendQueue) -> list[str]:
    """The unsent messages: their kinds, with the leases that they answer."""
    kinds = []
    for message in stream.drain():
        kind = message.WhichOneof("message") or ""
        if kind == "result":
            kind += f" {message.result.lease_id}"
        elif kind == "returned":
            kind += f" {list(message.returned.lease_ids)}"
        kinds.append(kind)
    return kinds


class TaskQueueMachine(RuleBasedStateMachine):
    """A queue next to a model of it; the model reads all messages that the queue sends."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = TaskQueue()
        self.stream = SendQueue()
        self.queue.attach(self.stream, 4)
        self.received = 0
        self.is_draining = False
        self.is_closed = False
        self.answered: list[int] = []
        self.lost: list[int] = []
        self.running: dict[int, Task] = {}
        self.unwanted: set[int] = set()
        self.waiting: list[int] = []

    def read(self) -> list[int]:
        """The leases answered since the last call, in order."""
        answers: list[int] = []
        while self.stream._messages:
            message = next(self.stream)
            if message.HasField("result"):
                answers.append(message.result.lease_id)
            answers += message.returned.lease_ids
        self.answered += answers
        return answers

    @precondition(lambda self: not self.is_closed)
    @rule()
    def receive(self) -> None:
        self.received += 1
        self.queue.put(_task(self.received))
        assert self.read() == ([self.received] if self.is_draining else [])
        if not self.is_draining:
            self.waiting.append(self.received)

    @precondition(lambda self: self.waiting)
    @rule()
    def begin(self) -> None:
        task = self.queue.get()
        assert task.lease_id == self.waiting.pop(0)
        self.running[task.lease_id] = task

    @precondition(lambda self: self.running and not self.is_closed)
    @rule(data=st.data(), is_interrupted=st.booleans())
    def end(self, data: st.DataObject, is_interrupted: bool) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.running)))
        task = self.running.pop(lease_id)
        is_wanted = lease_id not in self.unwanted and not is_interrupted
        assert task.cancellation.cancelled == (lease_id in self.unwanted)
        assert self.queue.done(task, None if is_interrupted else _result(lease_id)) == is_wanted
        assert self.read() == [lease_id]

    @precondition(lambda self: self.received)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.integers(1, self.received))
        dropped = [lease_id] if lease_id in self.waiting else []
        assert self.queue.cancel([lease_id]) == len(dropped)
        assert self.read() == dropped
        self.waiting = [each for each in self.waiting if each not in dropped]
        self.unwanted |= {lease_id} & set(self.running)

    @precondition(lambda self: not self.is_closed)
    @rule(interrupted=st.sampled_from(["while away", "when back", "not yet"]))
    def lose_the_connection(self, interrupted: str) -> None:
        begun = self.queue.detach()
        assert begun == list(self.running.values())
        self.stream = SendQueue()
        if interrupted == "while away":
            interrupt(begun)
        self.queue.attach(self.stream, 4)
        if interrupted == "when back":
            interrupt(begun)
        if interrupted != "not yet":
            self.unwanted |= set(self.running)
        assert not self.read()
        self.lost += self.waiting
        self.waiting = []

    @rule()
    def drain(self) -> None:
        self.is_draining = True
        assert self.queue.drain("signal") == len(self.waiting)
        assert self.read() == self.waiting
        self.waiting = []

    @precondition(lambda self: self.is_draining and not self.is_closed)
    @rule()
    def close(self) -> None:
        """A cancelled task is answered once, even though its thread finishes later."""
        self.is_closed = True
        self.queue.close()
        assert sorted(self.read()) == sorted(self.running)
        for task in self.running.values():
            assert task.cancellation.cancelled
            assert not self.queue.done(task, _result(task.lease_id))
        assert not self.read()
        self.running = {}

    @invariant()
    def every_task_is_somewhere_once(self) -> None:
        places = [*self.answered, *self.lost, *self.waiting, *self.running]
        assert sorted(places) == list(range(1, self.received + 1))


TestTaskQueueMachine = TaskQueueMachine.TestCase


def test_results_without_a_stream_are_sent_on_the_next() -> None:
    queue = TaskQueue()
    first, second = SendQueue(), SendQueue()
    queue.attach(first, 4)
    for lease_id in (1, 2, 3):
        queue.put(_task(lease_id))
    done, running = queue.get(), queue.get()
    queue.done(done, _result(1))
    # The stream breaks before a message is sent.
    queue.detach()
    queue.done(running, _result(2))
    queue.attach(second, 4)
    # The third task had not started, so other workers get it.
    assert _unsent(second) == ["result 1", "result 2", "credit"]


def test_running_tasks_of_a_lost_coordinator_can_be_interrupted() -> None:
    queue = TaskQueue()
    queue.attach(SendQueue(), 1)
    queue.put(_task(1))
    running = queue.get()
    begun = queue.detach()
    # The task may still finish in time.
    assert not running.cancellation.cancelled
    # Tasks of the next coordinator are not interrupted.
    queue.attach(SendQueue(), 1)
    queue.put(_task(2))
    of_next_coordinator = queue.get()
    interrupt(begun)
    assert running.cancellation.cancelled
    assert not of_next_coordinator.cancellation.cancelled


def test_cancelled_running_task_is_returned_when_it_ends() -> None:
    queue, stream = TaskQueue(), SendQueue()
    queue.attach(stream, 2)
    for lease_id in (1, 2):
        queue.put(_task(lease_id))
    running = queue.get()
    assert queue.cancel([1, 2, 99]) == 1
    assert running.cancellation.cancelled
    assert not queue.done(running, _result(1))
    assert _unsent(stream) == ["credit", "returned [2]", "returned [1]"]


def test_drain_sends_goodbye_and_answers_every_task() -> None:
    queue, stream = TaskQueue(), SendQueue()
    queue.attach(stream, 4)
    for lease_id in (1, 2, 3):
        queue.put(_task(lease_id))
    in_time, too_long = queue.get(), queue.get()
    assert queue.drain("signal") == 1
    queue.put(_task(4))
    queue.done(in_time, _result(1))
    queue.join(0.0)
    queue.close()
    assert too_long.cancellation.cancelled
    assert not queue.done(too_long, _result(2))
    assert _unsent(stream) == [
        "credit",
        "goodbye",
        "returned [3]",
        "returned [4]",
        "result 1",
        "returned [2]",
    ]


def test_heartbeat_is_sent_only_on_a_quiet_stream() -> None:
    queue, stream = TaskQueue(), SendQueue()
    queue.heartbeat()
    queue.attach(stream, 1)
    queue.heartbeat()
    assert next(stream).HasField("credit")
    # No message was sent after that one.
    queue.heartbeat()
    queue.heartbeat()
    queue.heartbeat()
    assert _unsent(stream) == ["heartbeat"]


def test_log_lines_wait_for_a_coordinator_that_accepts_them() -> None:
    queue, first, second = TaskQueue(), SendQueue(), SendQueue()
    queue.log(log_line(1.0, "info", "early"))
    queue.attach(first, 1)
    queue.log(log_line(2.0, "info", "not taken"))
    assert _unsent(first) == ["credit"]
    queue.detach()
    queue.attach(second, 1)
    queue.enable_log_lines()
    queue.log(log_line(3.0, "warning", "x" * 5000))
    lines = [each.log_line for each in second.drain() if each.HasField("log_line")]
    assert [each.text[:9] for each in lines] == ["early", "not taken", "x" * 9]
    assert len(lines[-1].text) == 1000


def test_unsent_log_lines_are_sent_on_the_next_stream() -> None:
    queue, first, second = TaskQueue(), SendQueue(), SendQueue()
    queue.attach(first, 1)
    queue.enable_log_lines()
    queue.log(log_line(1.0, "info", "unsent"))
    queue.detach()
    queue.attach(second, 1)
    assert _unsent(second) == ["credit"]
    third = SendQueue()
    queue.detach()
    queue.attach(third, 1)
    queue.enable_log_lines()
    assert "log_line" in _unsent(third)


def test_send_queue_ends_when_closed_and_empty() -> None:
    stream = SendQueue()
    lease_ids: list[int] = []
    reader = threading.Thread(
        target=lambda: lease_ids.extend(message.result.lease_id for message in stream)
    )
    reader.start()
    stream.put(_result(1))
    stream.put(_result(2))
    stream.close()
    reader.join(60)
    assert lease_ids == [1, 2]
