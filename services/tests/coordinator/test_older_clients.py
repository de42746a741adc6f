"""Tests that requests of older clients work, or fail with the name of the missing field.

A request of an older client is a present one with fields left out.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from typing import Any, TypeAlias

import grpc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.specification import to_yaml
from remy_farm.specification.models import DEFAULT_TABLE
from remy_proto.completion import complete, constraint_of, is_alternative
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.jobs.states import PAUSED, SUCCEEDED
from remy_services.transport.grpc import SimulatorIdentity
from services.tests.coordinator.hostile import DESIGN_METHODS
from services.tests.coordinator.running_server import (
    Client,
    RunningServer,
    named_fields,
    refusal,
    settings_for,
)
from services.tests.coordinator.test_evaluations import small_request, submit_evaluation
from tests.waiting import wait_until

_SPEC = small_joint_spec(steps=3)
_LONG = 1_000_000
_STOP = spec_pb2.Stop(wall_seconds=1e6)
_SUBMITTED: dict[str, Any] = {
    "name": "mine",
    "priority": -3,
    "weight": 2.5,
    "campaign": "sweep",
    "queue_name": "spot",
    "validate_only": True,
}
#: Requests of each method that together set every field. There are finished and paused designs,
#: #: and a finished evaluation.
_FULL: dict[str, list[Any]] = {
    "SubmitJob": [
        messages.SubmitJobRequest(client_request_id="text", spec_text=to_yaml(_SPEC), **_SUBMITTED),
        messages.SubmitJobRequest(client_request_id="spec", spec=_SPEC, **_SUBMITTED),
    ],
    "GetJob": [messages.GetJobRequest(job="over")],
    "ListJobs": [
        messages.ListJobsRequest(
            page_size=1,
            page_token=base64.b64encode(b"9999999999999999999/after-all").decode(),
            states=[SUCCEEDED, PAUSED],
            owner="local",
            name_contains="o",
            campaign="sweep",
        )
    ],
    "WatchJob": [messages.WatchJobRequest(job="over", after_revision=2)],
    "PauseJob": [messages.PauseJobRequest(job="paused")],
    "ResumeJob": [messages.ResumeJobRequest(job="paused")],
    "CancelJob": [messages.CancelJobRequest(job="paused")],
    "ExtendJob": [
        messages.ExtendJobRequest(job="paused", stop=_STOP, joint_steps=2 * _LONG, priority=-3)
    ],
    "ForkJob": [
        messages.ForkJobRequest(
            client_request_id="fork",
            job="over",
            epoch=0,
            name="fork",
            settings=["objective.delta=0.1"],
            priority=7,
        )
    ],
    "DeleteJob": [messages.DeleteJobRequest(job="paused")],
    "GetRemyCC": [
        messages.GetRemyCCRequest(
            job="over", epoch=0, format=messages.REMY_CC_FORMAT_DNA, table=DEFAULT_TABLE
        )
    ],
    "ListEpochs": [messages.ListEpochsRequest(job="over")],
    "ListWorkerLines": [messages.ListWorkerLinesRequest(job="over")],
    "CompareJobs": [messages.CompareJobsRequest(jobs=["over", "paused"])],
    "ExportJob": [messages.ExportJobRequest(job="over")],
    "ImportJob": [messages.ImportJobRequest(part=b"an archive")],
    "SubmitEvaluation": [
        messages.SubmitEvaluationRequest(
            client_request_id="evaluation",
            name="evaluation",
            priority=2,
            weight=2.5,
            queue_name="queue",
            request=small_request(0).SerializeToString(deterministic=True),
            simulator_sha256=SimulatorIdentity.own().sha256,
        )
    ],
    "ReadEvaluation": [messages.ReadEvaluationRequest(job="evaluated", part=0)],
    "UploadTrace": [messages.UploadTraceRequest(part=(5000).to_bytes(8, "little"))],
    "GetServerInfo": [],
}
_CASES = [
    pytest.param(method, request, field, id=f"{method}-{field.name}")
    for method, requests in _FULL.items()
    for request in requests
    for field, _ in request.ListFields()
]


#: Job id by submitted name.
_Ids: TypeAlias = dict[str, str]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a coordinator."""
    with RunningServer(settings_for(tmp_path_factory.mktemp("farm"))) as server:
        yield server.client()


@pytest.fixture(scope="module")
def ids(client: Client) -> _Ids:
    """Job ids by submitted name."""
    paused = client.submit(small_joint_spec(steps=_LONG), name="paused", priority=5).id
    client.call("PauseJob", messages.PauseJobRequest(job=paused))
    over = client.submit(_SPEC, name="over", priority=5, campaign="sweep").id
    client.until_final(over)
    client.until_state(paused, PAUSED)
    evaluated = submit_evaluation(client, [small_request(0)]).id
    client.until_final(evaluated)
    return {"over": over, "paused": paused, "evaluated": evaluated}


def test_the_requests_cover_every_field() -> None:
    assert {method.name for method in DESIGN_METHODS} == set(_FULL)
    for method in DESIGN_METHODS:
        given_fields = {field.name for each in _FULL[method.name] for field, _ in each.ListFields()}
        assert given_fields == {field.name for field in method.input_type.fields}


@pytest.mark.parametrize(("method", "full", "field"), _CASES)
def test_an_omitted_field_has_its_default_or_is_reported(
    client: Client, ids: _Ids, method: str, full: Any, field: Any
) -> None:
    without = _with_ids(full, ids)
    without.ClearField(field.name)
    answer = _answer(client, method, without)
    if (method, field.name) in _NEEDED:
        assert answer == (grpc.StatusCode.INVALID_ARGUMENT, [_NEEDED[method, field.name]])
        return
    assert answer[0] == grpc.StatusCode.OK, answer
    meaning = _copy(without)
    if (method, field.name) in _MEANINGS:
        meaning.MergeFrom(_MEANINGS[method, field.name])
    else:
        setattr(meaning, field.name, getattr(complete(_copy(without)), field.name))
        assert meaning.HasField(field.name)
    if method == "ListJobs":
        # Jobs of earlier calls may end between the two calls.
        wait_until(lambda: _answer(client, method, meaning) == _answer(client, method, without))
    else:
        assert _answer(client, method, meaning) == answer


#: Required fields, with the field that the error names.
_NEEDED = {
    **{(method, "job"): "job" for method in _FULL},
    ("SubmitJob", "spec"): "spec",
    ("SubmitJob", "spec_text"): "spec",
    ("CompareJobs", "jobs"): "jobs",
    ("ImportJob", "part"): "part",
    ("UploadTrace", "part"): "part",
    ("SubmitEvaluation", "request"): "request",
    ("SubmitEvaluation", "simulator_sha256"): "simulator_sha256",
}


#: Values that state explicitly what the absence of a field without default means.
_MEANINGS: dict[tuple[str, str], Any] = {
    ("ListJobs", "states"): messages.ListJobsRequest(states=job_pb2.JobState.keys()[1:]),
    ("ForkJob", "epoch"): messages.ForkJobRequest(epoch=0),
    ("ForkJob", "name"): messages.ForkJobRequest(name="over"),
    ("ForkJob", "priority"): messages.ForkJobRequest(priority=5),
    ("ForkJob", "settings"): messages.ForkJobRequest(settings=["search.mode=joint"]),
    ("GetRemyCC", "epoch"): messages.GetRemyCCRequest(epoch=0),
    ("GetRemyCC", "table"): messages.GetRemyCCRequest(table=DEFAULT_TABLE),
    ("ExtendJob", "stop"): messages.ExtendJobRequest(stop=spec_pb2.Stop()),
    ("ExtendJob", "joint_steps"): messages.ExtendJobRequest(joint_steps=_LONG),
    ("ExtendJob", "priority"): messages.ExtendJobRequest(priority=5),
}


_STREAMS = ("ImportJob", "UploadTrace", "SubmitEvaluation")


def _answer(client: Client, method: str, request: Any) -> tuple[grpc.StatusCode, Any]:
    """Returns status and stable parts of the response, or the fields that the error names."""
    if method == "ExtendJob":
        # Omitted fields keep their value, so it must be the same before both calls.
        first = messages.ExtendJobRequest(
            job="paused", stop=spec_pb2.Stop(), joint_steps=_LONG, priority=5
        )
        client.call(method, first)
    if method in ("SubmitJob", "ForkJob", "SubmitEvaluation") and request.client_request_id:
        # A request id must not be reused for a different request.
        request = _copy(request)
        request.client_request_id = secrets.token_hex(8)
    try:
        response = client.call(method, iter([request]) if method in _STREAMS else request)
        return grpc.StatusCode.OK, _lasting(response)
    except grpc.RpcError as error:
        return refusal(error)[0], named_fields(error)


def _lasting(response: Any) -> Any:
    match response:
        case (
            messages.SubmitJobResponse() | messages.ForkJobResponse() | messages.ExtendJobResponse()
        ):
            job = response.job
            settings = (job.name, job.owner, job.priority, job.weight, job.campaign, job.queue_name)
            return (
                *settings,
                job.fork.job_id,
                job.spec.SerializeToString(deterministic=True),
                bool(job.id),
            )
        case messages.SubmitEvaluationResponse(job=job):
            return job.name, job.priority, job.weight, job.queue_name, bool(job.id)
        case messages.ListJobsResponse():
            return [job.id for job in response.jobs], response.next_page_token
        case messages.GetRemyCCResponse():
            return response
    updates = list(response)
    if any(isinstance(update, messages.ReadEvaluationResponse) for update in updates):
        return updates
    return [update.event for update in updates if update.HasField("event")]


def _with_ids(request: Any, ids: _Ids) -> Any:
    copy = _copy(request)
    names = {field.name for field, _ in request.ListFields()}
    if "job" in names:
        copy.job = ids[request.job]
    if "jobs" in names:
        copy.jobs[:] = [ids[name] for name in request.jobs]
    return copy


def _copy(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


# The fields of a specification, several at a time.


def _paths(message: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field, value in message.ListFields():
        yield (*above, field.name)
        if field.message_type is not None and not field.is_repeated:
            yield from _paths(value, (*above, field.name))


_PATHS = sorted(_paths(_SPEC))


@settings(max_examples=60)
@given(st.sets(st.sampled_from(_PATHS), min_size=1, max_size=8))
@example({path for path in _PATHS if len(path) == 1})
def test_omitted_specification_fields_have_defaults_or_are_reported(
    client: Client, paths: set[tuple[str, ...]]
) -> None:
    spec, expected, blamed = _copy(_SPEC), _copy(_SPEC), set()
    for path in sorted(paths):
        if any(path[:length] in paths for length in range(1, len(path))):
            continue
        message, whole = spec, expected
        for name in path[:-1]:
            message, whole = getattr(message, name), getattr(whole, name)
        message.ClearField(path[-1])
        field = message.DESCRIPTOR.fields_by_name[path[-1]]
        whole.ClearField(path[-1])
        if constraint_of(field).required or constraint_of(field).required_unless:
            blamed.add(".".join(path))
        elif is_alternative(field):
            blamed.add(".".join(path[:-1]))
    request = messages.SubmitJobRequest(spec=spec, validate_only=True)
    if blamed:
        with pytest.raises(grpc.RpcError) as caught:
            client.call("SubmitJob", request)
        assert refusal(caught.value)[0] == grpc.StatusCode.INVALID_ARGUMENT
        assert set(named_fields(caught.value)) == blamed
    else:
        submitted_spec = client.call("SubmitJob", request).job.spec
        assert submitted_spec == complete(expected)
