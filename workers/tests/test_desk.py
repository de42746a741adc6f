"""Where a worker's threads meet."""

from __future__ import annotations

import threading

from remy_farm.v1 import evaluation_pb2, worker_service_pb2
from remy_workers.desk import Desk
from remy_workers.outbox import Outbox
from remy_workers.workload import Work


def _work(lease_id: int) -> Work[None]:
    return Work(lease_id, "job", evaluation_pb2.EvaluationRequest(), None)


def _result(lease_id: int) -> worker_service_pb2.WorkRequest:
    return worker_service_pb2.WorkRequest(result=worker_service_pb2.TaskResult(lease_id=lease_id))


def _said(outbox: Outbox) -> list[str]:
    """What is in a stream's outbox: kinds of messages, with the leases that they answer."""
    told = []
    for message in outbox.drain():
        kind = message.WhichOneof("message") or ""
        if kind == "result":
            kind += f" {message.result.lease_id}"
        elif kind == "returned":
            kind += f" {list(message.returned.lease_ids)}"
        told.append(kind)
    return told


def test_results_without_a_stream_go_to_the_next_one() -> None:
    desk = Desk[None]()
    first, second = Outbox(), Outbox()
    desk.open(first, 4)
    for lease_id in (1, 2, 3):
        desk.receive(_work(lease_id))
    done, running = desk.take(), desk.take()
    desk.hand_in(done, _result(1))
    # The stream breaks before anything is written.
    desk.shut()
    desk.hand_in(running, _result(2))
    desk.open(second, 4)
    # The third had not begun; others have got it.
    assert _said(second) == ["result 1", "result 2", "credit"]


def test_a_task_that_is_cancelled_while_it_runs_is_returned_when_it_ends() -> None:
    desk, outbox = Desk[None](), Outbox()
    desk.open(outbox, 2)
    for lease_id in (1, 2):
        desk.receive(_work(lease_id))
    running = desk.take()
    assert desk.cancel([1, 2, 99]) == 1
    assert not desk.hand_in(running, _result(1))
    assert _said(outbox) == ["credit", "returned [2]", "returned [1]"]


def test_the_end_is_announced_and_leaves_nothing_unanswered() -> None:
    desk, outbox = Desk[None](), Outbox()
    desk.open(outbox, 4)
    for lease_id in (1, 2, 3):
        desk.receive(_work(lease_id))
    in_time, too_long = desk.take(), desk.take()
    assert desk.wind_down("signal") == 1
    desk.receive(_work(4))
    desk.hand_in(in_time, _result(1))
    desk.wait_until_done(0.0)
    desk.close()
    assert not desk.hand_in(too_long, _result(2))
    assert _said(outbox)[:6] == [
        "credit",
        "goodbye",
        "returned [3]",
        "returned [4]",
        "result 1",
        "returned [2]",
    ]


def test_a_heartbeat_is_only_said_when_nothing_else_is() -> None:
    desk, outbox = Desk[None](), Outbox()
    desk.beat()
    desk.open(outbox, 1)
    desk.beat()
    assert next(outbox).HasField("credit")
    # That was a sign of life; there is none since.
    desk.beat()
    desk.beat()
    desk.beat()
    assert _said(outbox) == ["heartbeat"]


def test_an_outbox_ends_once_it_is_closed_and_empty() -> None:
    outbox = Outbox()
    heard: list[int] = []
    reader = threading.Thread(
        target=lambda: heard.extend(message.result.lease_id for message in outbox)
    )
    reader.start()
    outbox.put(_result(1))
    outbox.put(_result(2))
    outbox.close()
    reader.join(60)
    assert heard == [1, 2]
