"""Requests that make no sense: refused in a sentence, and the server goes on serving."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from remy_farm.v1 import design_service_pb2, worker_service_pb2
from remy_farm.v1 import design_service_pb2 as messages
from remy_services.jobs.states import SUCCEEDED
from services.tests.coordinator.running_server import Client, RunningServer, refusal, settings_for
from services.tests.designer.small_joint_spec import small_joint_spec

_SPEC = small_joint_spec(steps=3)
#: A fuzzed stream may have to be waited for; that is no answer.
_SECONDS = 5.0
#: What a call that makes no sense may be answered with.
_CODES = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}
_METHODS = [
    *design_service_pb2.DESCRIPTOR.services_by_name["DesignService"].methods,
    *worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"].methods,
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(settings_for(tmp_path)) as server:
        yield server


def _call(channel: grpc.Channel, method: Any, requests: list[bytes]) -> tuple[grpc.StatusCode, str]:
    """How a call with these bytes ends."""
    kind = (
        f"{'stream' if method.client_streaming else 'unary'}_"
        f"{'stream' if method.server_streaming else 'unary'}"
    )
    call = getattr(channel, kind)(f"/{method.containing_service.full_name}/{method.name}")
    request = iter(requests) if method.client_streaming else requests[0]
    try:
        response = call(request, timeout=_SECONDS)
        if method.server_streaming:
            for _ in response:
                pass
    except grpc.RpcError as error:
        return refusal(error)
    return grpc.StatusCode.OK, ""


def _mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(3):
            case 0:
                changed[place:place] = chance.randbytes(chance.randint(1, 5))
            case 1:
                del changed[place : place + chance.randint(1, 5)]
            case _:
                changed[place : place + 1] = bytes([chance.randrange(256)])
    return bytes(changed)


def _sensible(job: str) -> dict[str, bytes]:
    """A request that makes sense, by method."""
    return {
        "SubmitJob": messages.SubmitJobRequest(spec=_SPEC, validate_only=True).SerializeToString(),
        "ForkJob": messages.ForkJobRequest(
            job=job, settings=["objective.delta=2"]
        ).SerializeToString(),
        "ListJobs": messages.ListJobsRequest(page_size=3).SerializeToString(),
        "CompareJobs": messages.CompareJobsRequest(jobs=[job, job]).SerializeToString(),
        "ExtendJob": messages.ExtendJobRequest(job=job, joint_steps=3).SerializeToString(),
    }


def _check(answer: tuple[grpc.StatusCode, str], method: Any) -> None:
    code, message = answer
    assert code in _CODES, (method.name, code, message)
    for telltale in ("Traceback", "Error(", "Exception", "  File ", "<class"):
        assert telltale not in message, (method.name, message)


@pytest.mark.parametrize("seed", range(4))
def test_no_bytes_do_any_harm(server: RunningServer, seed: int) -> None:
    client, channel = server.client(), server.channel()
    job = client.until_final(client.submit(_SPEC).id).id
    chance = random.Random(seed)
    sensible = _sensible(job)
    methods = [each for each in _METHODS if each.containing_service.name == "DesignService"]
    for _ in range(15):
        for method in methods:
            by_job = messages.GetJobRequest(job=job).SerializeToString()
            request = sensible.get(method.name, by_job)
            for data in (chance.randbytes(chance.randint(0, 60)), _mutated(request, chance)):
                _check(_call(channel, method, [data, data]), method)
    assert client.until_final(client.submit(_SPEC).id).state == SUCCEEDED


def test_workers_that_speak_nonsense_are_sent_away(tmp_path: Path) -> None:
    (method,) = worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"].methods
    chance = random.Random(7)
    with RunningServer(settings_for(tmp_path, evaluator="workers")) as server:
        channel = server.channel()
        hello = worker_service_pb2.WorkRequest(hello=worker_service_pb2.Hello(worker_id="w"))
        for _ in range(30):
            requests = [
                _mutated(hello.SerializeToString(), chance),
                chance.randbytes(20),
            ]
            _check(_call(channel, method, requests), method)
        info = server.client().call("GetServerInfo", messages.GetServerInfoRequest())
        assert info.evaluators.workers == 0


def test_messages_that_are_too_large_are_refused(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, maximum_message_bytes=1 << 16)
    with RunningServer(settings) as server:
        client = server.client()
        for request in (
            messages.SubmitJobRequest(spec_text="#" * (1 << 17)),
            messages.SubmitJobRequest(spec_text="#" * (1 << 20)),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                client.call("SubmitJob", request)
            assert refusal(caught.value)[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert client.submit(_SPEC).id


def test_specifications_that_are_too_large_are_refused(client: Client) -> None:
    request = messages.SubmitJobRequest(spec_text="#" * ((256 << 10) + 1))
    with pytest.raises(grpc.RpcError) as caught:
        client.call("SubmitJob", request)
    assert refusal(caught.value) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "spec_text has more than 262144 bytes",
    )


def test_calls_that_are_abandoned_leave_nothing_behind(server: RunningServer) -> None:
    client = server.client()
    job = client.submit(small_joint_spec(steps=1_000_000)).id
    for _ in range(200):
        stream = client.stub.WatchJob(messages.WatchJobRequest(job=job))
        stream.cancel()
        future = client.stub.GetJob.future(messages.GetJobRequest(job=job))
        future.cancel()

    def open_streams() -> int:
        return server.farm.open_streams

    server.until(lambda: open_streams() == 0)
    client.call("CancelJob", messages.CancelJobRequest(job=job))
    client.until_final(job)
    assert len(list(server.farm.catalogue)) == 1
    assert server.farm.scheduler.running == 0
