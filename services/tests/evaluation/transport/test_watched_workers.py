"""Calls that somebody else makes for the process that simulates: what their ends mean."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from remy_farm.v1 import worker_service_pb2, worker_service_pb2_grpc
from remy_services.evaluation import Share
from remy_services.evaluation.transport.grpc import SimulatorIdentity, WorkerFleet
from services.tests.evaluation.requests import numbered_request
from tests.waiting import wait_in_loop

_IDENTITY = SimulatorIdentity("1", "digest")
_ENDED = worker_service_pb2.WorkRequest(ended=worker_service_pb2.Ended())


def _hello(*, watched: bool) -> worker_service_pb2.WorkRequest:
    return worker_service_pb2.WorkRequest(
        hello=worker_service_pb2.Hello(
            worker_id="one",
            threads=1,
            simulator_version=_IDENTITY.version,
            simulator_digest=_IDENTITY.digest,
            watched=watched,
        )
    )


async def _how_it_left(
    *, watched: bool, last_words: list[worker_service_pb2.WorkRequest], breaks: bool
) -> dict[str, int]:
    """What is counted of a worker whose call ends, or breaks, while it has a task."""
    fleet = WorkerFleet(simulator=_IDENTITY)
    server = grpc.aio.server()
    fleet.add_to(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    evaluating = asyncio.create_task(fleet.evaluate(Share("job"), numbered_request(1, 1)))
    has_task = asyncio.Event()

    async def says() -> AsyncIterator[worker_service_pb2.WorkRequest]:
        yield _hello(watched=watched)
        yield worker_service_pb2.WorkRequest(credit=worker_service_pb2.Credit(tasks=1))
        await has_task.wait()
        for message in last_words:
            yield message
        if breaks:
            await asyncio.Event().wait()

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        # What is generated has no types.
        make_stub: Any = worker_service_pb2_grpc.WorkerServiceStub
        call = make_stub(channel).Work(says())
        async for response in call:
            if response.WhichOneof("message") == "task":
                has_task.set()
                if breaks:
                    call.cancel()
                    break
    await wait_in_loop(lambda: not fleet.snapshot().workers)
    left = dict(fleet.snapshot().counts.workers_left)
    evaluating.cancel()
    await asyncio.gather(evaluating, return_exceptions=True)
    await fleet.close()
    await server.stop(None)
    return left


@pytest.mark.parametrize(
    ("watched", "last_words", "breaks", "how"),
    [
        (False, [], True, "lost"),
        (False, [], False, "lost"),
        (True, [], True, "goodbye"),
        (True, [], False, "goodbye"),
        (True, [_ENDED], False, "lost"),
    ],
)
def test_who_is_watched_has_ended_only_if_the_watcher_says_so(
    watched: bool, last_words: list[worker_service_pb2.WorkRequest], breaks: bool, how: str
) -> None:
    left = asyncio.run(_how_it_left(watched=watched, last_words=last_words, breaks=breaks))
    assert left == {how: 1}
