"""Tests that invalid requests are refused with a sentence and do not harm the server."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import worker_service_pb2
from remy_proto.v1.design_service_pb2_grpc import DesignServiceStub
from remy_services.coordinator.access import Role
from remy_services.jobs.states import SUCCEEDED
from services.tests.coordinator.hostile import (
    DESIGN_METHODS,
    WORK,
    call_with_bytes,
    mutate,
    valid_request,
)
from services.tests.coordinator.role_tokens import TOKENS, bearer, tokens_file
from services.tests.coordinator.running_server import Client, RunningServer, refusal, settings_for

_SPEC = small_joint_spec(steps=3)
_MESSAGE_BYTES = 1 << 16
_LOOKS = 5
_TOKEN = bearer(TOKENS[Role.SUBMITTER])
#: Allowed statuses of invalid calls.
_CODES = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(settings_for(tmp_path)) as server:
        yield server


def _check(answer: tuple[grpc.StatusCode, str], method: Any) -> None:
    code, message = answer
    assert code in _CODES, (method.name, code, message)
    for telltale in ("Traceback", "Error(", "Exception", "  File ", "<class"):
        assert telltale not in message, (method.name, message)


@pytest.mark.parametrize("seed", range(4))
def test_fuzzed_requests_do_no_harm(server: RunningServer, seed: int) -> None:
    client, channel = server.client(), server.channel()
    job = client.until_final(client.submit(_SPEC).id).id
    chance = random.Random(seed)
    for _ in range(15):
        for method in DESIGN_METHODS:
            request = mutate(valid_request(method, job, _SPEC), chance)
            for data in (chance.randbytes(chance.randint(0, 60)), request):
                _check(call_with_bytes(channel, method, [data, data]), method)
    assert client.until_final(client.submit(_SPEC).id).state == SUCCEEDED


def test_workers_with_fuzzed_messages_are_rejected(tmp_path: Path) -> None:
    chance = random.Random(7)
    with RunningServer(settings_for(tmp_path, evaluator="workers")) as server:
        channel = server.channel()
        hello = worker_service_pb2.WorkRequest(hello=worker_service_pb2.Hello(worker_id="w"))
        for _ in range(30):
            requests = [
                mutate(hello.SerializeToString(), chance),
                chance.randbytes(20),
            ]
            code, message = call_with_bytes(channel, WORK, requests)
            # UNIMPLEMENTED is only for workers with another simulator.
            assert code != grpc.StatusCode.UNIMPLEMENTED or "has simulator" in message
            if code != grpc.StatusCode.UNIMPLEMENTED:
                _check((code, message), WORK)
        info = server.client().call("GetServerInfo", messages.GetServerInfoRequest())
        assert info.evaluators.workers == 0


def test_oversized_messages_are_refused(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, maximum_message_bytes=_MESSAGE_BYTES)
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


def test_oversized_specifications_are_refused(client: Client) -> None:
    request = messages.SubmitJobRequest(spec_text="#" * ((256 << 10) + 1))
    with pytest.raises(grpc.RpcError) as caught:
        client.call("SubmitJob", request)
    assert refusal(caught.value) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "spec_text has more than 262144 bytes",
    )


def test_abandoned_calls_leave_nothing_behind(server: RunningServer) -> None:
    client = server.client()
    job = client.submit(small_joint_spec(steps=1_000_000)).id
    for _ in range(200):
        stream = client.stub.WatchJob(messages.WatchJobRequest(job=job))
        stream.cancel()
        future = client.stub.GetJob.future(messages.GetJobRequest(job=job))
        future.cancel()
    server.until(lambda: server.farm.open_streams == 0)
    client.call("CancelJob", messages.CancelJobRequest(job=job))
    client.until_final(job)
    assert len(list(server.farm.catalogue)) == 1
    server.until(lambda: server.farm.scheduler.running == 0)


def _memory_blocks(client: Client, job: str) -> int:
    """Returns the process's allocated memory blocks.

    Takes the minimum of several samples, because threads keep objects of their last operation.
    """
    counts = []
    for _ in range(_LOOKS):
        client.get(job)
        gc.collect()
        # gc.get_objects would expose tuples that other threads are still building.
        counts.append(sys.getallocatedblocks())
    return min(counts)


def _hostile_round(server: RunningServer, channel: grpc.Channel, job: str, seed: int) -> int:
    """Makes fuzzed calls of all methods; returns their number."""
    chance, calls = random.Random(seed), 0
    for method in DESIGN_METHODS:
        # A valid fork would create a job.
        name = "none" if method.name == "ForkJob" else job
        request = mutate(valid_request(method, name, _SPEC), chance)
        for data, metadata in (
            (request, _TOKEN),
            (request, bearer("wrong")),
            (chance.randbytes(chance.randint(0, 60)), _TOKEN),
        ):
            call_with_bytes(channel, method, [data, data], metadata)
            calls += 1
    stub: Any = DesignServiceStub(channel)  # type: ignore[no-untyped-call]
    for _ in DESIGN_METHODS:
        stub.WatchJob(messages.WatchJobRequest(job=job), metadata=_TOKEN).cancel()
        calls += 1
    call_with_bytes(channel, DESIGN_METHODS[0], [bytes(_MESSAGE_BYTES + 1)], _TOKEN)
    server.until(lambda: server.farm.open_streams == 0)
    return calls + 1


def test_hostile_calls_leave_nothing_in_memory(tmp_path: Path) -> None:
    settings = settings_for(
        tmp_path, tokens_file=tokens_file(tmp_path), maximum_message_bytes=_MESSAGE_BYTES
    )
    with RunningServer(settings) as server:
        channel = server.channel()
        client = Client(channel, TOKENS[Role.SUBMITTER])
        job = client.until_final(client.submit(_SPEC).id).id
        for seed in range(5):
            _hostile_round(server, channel, job, seed)
        before = _memory_blocks(client, job)
        calls = sum(_hostile_round(server, channel, job, seed) for seed in range(5, 25))
        # A leak of one block per call would exceed this bound, which allows for fluctuation.
        assert _memory_blocks(client, job) - before < calls / 2
        assert client.until_final(client.submit(_SPEC).id).state == SUCCEEDED
