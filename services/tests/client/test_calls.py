import hashlib
import socket
import time

import grpc
import pytest
from google.rpc import error_details_pb2

from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_rpc.settings import Address, Token
from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import BadRequest, NotAllowed, Refused, ServerFailed, Unreachable
from services.tests.client.scripted_service import Failure, ScriptedService, retry_later

JOB = job_pb2.Job(id="j1", name="demo", state=job_pb2.JOB_STATE_RUNNING)
TOKEN_ADVICE = "a token is given by --token-file, REMY_FARM_TOKEN or the configuration file"
NOT_FOUND = Failure(grpc.StatusCode.NOT_FOUND, "there is no job 'demo'")


def violation(field: str, description: str) -> error_details_pb2.BadRequest.FieldViolation:
    return error_details_pb2.BadRequest.FieldViolation(field=field, description=description)


def test_requests_are_retried_until_the_coordinator_is_available(
    service: ScriptedService, client: DesignClient, troubles: list[str]
) -> None:
    service.script("GetJob", retry_later(0.01), retry_later(0.01), messages.GetJobResponse(job=JOB))
    assert client.get("demo") == JOB
    assert len(service.requests) == 3
    assert troubles == ["starting up; trying again"]


def test_the_retry_delay_of_the_coordinator_is_respected(
    service: ScriptedService, client: DesignClient
) -> None:
    service.script("GetJob", retry_later(0.3), messages.GetJobResponse(job=JOB))
    began = time.monotonic()
    client.get("demo")
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("method", ["SubmitJob", "ForkJob"])
def test_retries_of_a_submission_have_the_same_request_id(
    method: str, service: ScriptedService, client: DesignClient
) -> None:
    service.script(method, retry_later(0.01), getattr(messages, f"{method}Response")(job=JOB))
    if method == "SubmitJob":
        client.submit(messages.SubmitJobRequest(name="demo"))
        client.submit(messages.SubmitJobRequest(name="demo"))
    else:
        client.fork(messages.ForkJobRequest(job="demo"))
        client.fork(messages.ForkJobRequest(job="demo"))
    first, repeated, another = [
        request.client_request_id
        for request in service.requests
        if isinstance(request, (messages.SubmitJobRequest, messages.ForkJobRequest))
    ]
    assert first == repeated
    assert first not in ("", another)


def test_a_retried_deletion_accepts_not_found(
    service: ScriptedService, client: DesignClient
) -> None:
    service.script("DeleteJob", retry_later(0.01), NOT_FOUND)
    client.delete("demo")
    with pytest.raises(Refused, match="there is no job 'demo'"):
        client.delete("demo")


@pytest.mark.parametrize(
    ("failure", "kind", "sentence"),
    [
        (NOT_FOUND, Refused, "there is no job 'demo'"),
        (
            Failure(
                grpc.StatusCode.INVALID_ARGUMENT,
                "the specification is refused",
                (
                    error_details_pb2.BadRequest(
                        field_violations=[
                            violation("spec.network.rtt_ms", "is -5"),
                            violation("spec.signals[1]", "is twice."),
                        ]
                    ),
                ),
            ),
            BadRequest,
            "the specification is refused: spec.network.rtt_ms is -5; spec.signals[1] is twice",
        ),
        (
            Failure(
                grpc.StatusCode.INVALID_ARGUMENT,
                "page_size is -1, but must be at most 1000",
                (
                    error_details_pb2.BadRequest(
                        field_violations=[violation("page_size", "is -1, but must be at most 1000")]
                    ),
                ),
            ),
            BadRequest,
            "page_size is -1, but must be at most 1000",
        ),
        (
            Failure(
                grpc.StatusCode.INVALID_ARGUMENT,
                "2 jobs are named 'demo'; use an id: j1, j2",
                (
                    error_details_pb2.BadRequest(
                        field_violations=[violation("job", "is ambiguous")]
                    ),
                ),
            ),
            BadRequest,
            "2 jobs are named 'demo'; use an id: j1, j2",
        ),
        (
            Failure(
                grpc.StatusCode.FAILED_PRECONDITION,
                "demo cannot be paused",
                (
                    error_details_pb2.PreconditionFailure(
                        violations=[
                            error_details_pb2.PreconditionFailure.Violation(
                                type="STATE", subject="demo", description="it has SUCCEEDED"
                            )
                        ]
                    ),
                ),
            ),
            Refused,
            "demo cannot be paused: it has SUCCEEDED",
        ),
        (
            Failure(grpc.StatusCode.UNAUTHENTICATED, "the token is unknown"),
            NotAllowed,
            f"the token is unknown; {TOKEN_ADVICE}",
        ),
        (
            Failure(grpc.StatusCode.PERMISSION_DENIED, "a viewer may not cancel jobs"),
            NotAllowed,
            "a viewer may not cancel jobs",
        ),
        (Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many jobs"), Refused, "too many jobs"),
    ],
    ids=lambda value: value.code.name if isinstance(value, Failure) else "",
)
def test_error_messages_are_one_sentence(
    failure: Failure,
    kind: type[Exception],
    sentence: str,
    service: ScriptedService,
    client: DesignClient,
) -> None:
    service.script("GetJob", failure)
    with pytest.raises(kind) as raised:
        client.get("demo")
    assert str(raised.value) == sentence
    assert len(service.requests) == 1


def test_internal_errors_are_not_refusals(service: ScriptedService, client: DesignClient) -> None:
    service.script("GetJob", Failure(grpc.StatusCode.INTERNAL, "a defect, number 7"))
    with pytest.raises(ServerFailed, match=r"failed \(a defect, number 7\); its log says more"):
        client.get("demo")


def test_an_unimplemented_method_is_refused(service: ScriptedService, client: DesignClient) -> None:
    service.script("GetJob", Failure(grpc.StatusCode.UNIMPLEMENTED, "Method not found!"))
    with pytest.raises(Refused, match="it is an older coordinator, or not a coordinator"):
        client.get("demo")


def test_a_refused_connection_is_unreachable() -> None:
    settings = ConnectionSettings(Address("127.0.0.1", 1))
    troubles: list[str] = []
    with (
        Connection(settings, patience_seconds=1, on_trouble=troubles.append) as connection,
        pytest.raises(Unreachable) as raised,
    ):
        DesignClient(connection).get("demo")
    assert str(raised.value) == (
        "the coordinator at 127.0.0.1:1 cannot be reached (Connection refused); "
        "'remy-farm doctor' looks for the cause"
    )
    assert len(troubles) == 1


def test_a_silent_server_exceeds_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = ConnectionSettings(Address("127.0.0.1", silent.getsockname()[1]))
        with (
            Connection(settings, deadline_seconds=0.2) as connection,
            pytest.raises(Unreachable, match=r"did not answer within 0\.2 s"),
        ):
            DesignClient(connection).get("demo")


def test_the_token_is_sent_and_never_shown(service: ScriptedService, troubles: list[str]) -> None:
    service.script(
        "GetJob", retry_later(0.01), Failure(grpc.StatusCode.PERMISSION_DENIED, "not for viewers")
    )
    settings = ConnectionSettings(service.address, None, Token("secret-token", "a file"))
    with (
        Connection(settings, patience_seconds=60, on_trouble=troubles.append) as connection,
        pytest.raises(NotAllowed) as raised,
    ):
        DesignClient(connection).get("demo")
    assert [each["authorization"] for each in service.metadata] == ["Bearer secret-token"] * 2
    assert "secret-token" not in "".join((*troubles, str(raised.value), repr(raised.value)))


def test_all_pages_are_listed(service: ScriptedService, client: DesignClient) -> None:
    service.script(
        "ListJobs",
        messages.ListJobsResponse(jobs=[job_pb2.Job(id="3")], next_page_token="p2"),
        messages.ListJobsResponse(jobs=[job_pb2.Job(id="2")], next_page_token="p3"),
        messages.ListJobsResponse(jobs=[job_pb2.Job(id="1")]),
    )
    found = client.list_all(messages.ListJobsRequest(owner="ann"))
    assert [job.id for job in found] == ["3", "2", "1"]
    sent = [
        request for request in service.requests if isinstance(request, messages.ListJobsRequest)
    ]
    assert [(each.page_token, each.owner) for each in sent] == [
        ("", "ann"),
        ("p2", "ann"),
        ("p3", "ann"),
    ]


def test_a_corrupt_remycc_is_refused(service: ScriptedService, client: DesignClient) -> None:
    content = b"{}"
    good = messages.GetRemyCCResponse(content=content, sha256=hashlib.sha256(content).digest())
    bad = messages.GetRemyCCResponse(content=b"{ }", sha256=good.sha256)
    service.script("GetRemyCC", good, bad)
    assert client.remycc("demo", epoch=None, file_format=messages.REMY_CC_FORMAT_JSON) == good
    with pytest.raises(ServerFailed, match="is corrupt"):
        client.remycc("demo", epoch=None, file_format=messages.REMY_CC_FORMAT_JSON)
