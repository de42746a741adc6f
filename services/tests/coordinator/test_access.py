"""Tests access control of every method of every service, for every role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2, worker_service_pb2
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.coordinator.access import METHOD_ROLES, OPEN, Role
from services.tests.coordinator.role_tokens import TOKENS, bearer, tokens_file
from services.tests.coordinator.running_server import (
    TIMEOUT_SECONDS,
    Client,
    RunningServer,
    refusal,
    settings_for,
)

_SERVICES: list[Any] = [
    design_service_pb2.DESCRIPTOR.services_by_name["DesignService"],
    worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"],
    health_pb2.DESCRIPTOR.services_by_name["Health"],
    reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"],
]
_METHODS = {
    f"/{service.full_name}/{method.name}": method
    for service in _SERVICES
    for method in service.methods
}
_DENIED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_VIEW = {
    "GetJob",
    "ListJobs",
    "WatchJob",
    "GetRemyCC",
    "ListEpochs",
    "CompareJobs",
    "ReadEvaluation",
}
_VIEW |= {"ListWorkerLines", "ExportJob", "GetServerInfo"}
_CHANGE = {"SubmitJob", "PauseJob", "ResumeJob", "CancelJob", "ExtendJob", "ForkJob"}
_CHANGE |= {"DeleteJob", "ImportJob", "UploadTrace", "SubmitEvaluation"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A coordinator with workers that requires tokens."""
    folder = tmp_path_factory.mktemp("guarded")
    settings = settings_for(folder, tokens_file=tokens_file(folder), evaluator="workers")
    with RunningServer(settings) as server:
        yield server


@pytest.fixture(scope="module")
def channel(guarded: RunningServer) -> grpc.Channel:
    """A channel to the coordinator that requires tokens."""
    return guarded.channel()


def _code(channel: grpc.Channel, path: str, metadata: list[tuple[str, str]]) -> grpc.StatusCode:
    """Returns the status of a call with an empty request."""
    method: MethodDescriptor = _METHODS[path]
    kind = (
        f"{'stream' if method.client_streaming else 'unary'}_"
        f"{'stream' if method.server_streaming else 'unary'}"
    )
    call: Any = getattr(channel, kind)(path)
    request = iter([b""]) if method.client_streaming else b""
    try:
        response = call(request, metadata=metadata, timeout=TIMEOUT_SECONDS)
        if method.server_streaming:
            next(response)
            response.cancel()
    except grpc.RpcError as error:
        return refusal(error)[0]
    except StopIteration:
        pass
    return grpc.StatusCode.OK


def _expected(path: str) -> frozenset[Role]:
    """Returns the roles that may call a method, independently of METHOD_ROLES."""
    service, _, method = path.rpartition("/")
    if method in _VIEW:
        return frozenset({Role.VIEWER, Role.SUBMITTER, Role.ADMIN})
    if method in _CHANGE:
        return frozenset({Role.SUBMITTER, Role.ADMIN})
    if service.endswith("WorkerService"):
        return frozenset({Role.WORKER, Role.ADMIN})
    if service.endswith("ServerReflection"):
        return frozenset(Role)
    assert service.endswith("Health")
    return OPEN


def test_method_roles_list_exactly_the_served_methods() -> None:
    assert set(METHOD_ROLES) == set(_METHODS)


@pytest.mark.parametrize("path", sorted(_METHODS))
def test_roles_of_each_method(path: str) -> None:
    assert METHOD_ROLES[path] == _expected(path)


@pytest.mark.parametrize("path", sorted(_METHODS))
@pytest.mark.parametrize(
    "metadata",
    [
        [],
        bearer("wrong"),
        bearer(""),
        [("authorization", TOKENS[Role.ADMIN])],
        [("authorization", f"Basic {TOKENS[Role.ADMIN]}")],
        [*bearer(TOKENS[Role.ADMIN]), *bearer("wrong")],
    ],
    ids=["none", "wrong", "empty", "bare", "basic", "two"],
)
def test_calls_without_valid_token_are_unauthenticated(
    channel: grpc.Channel, path: str, metadata: list[tuple[str, str]]
) -> None:
    code = _code(channel, path, metadata)
    if METHOD_ROLES[path] is OPEN:
        assert code not in _DENIED
    else:
        assert code == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("path", sorted(_METHODS))
@pytest.mark.parametrize("role", Role)
def test_each_role_may_call_only_its_methods(channel: grpc.Channel, path: str, role: Role) -> None:
    code = _code(channel, path, bearer(TOKENS[role]))
    if METHOD_ROLES[path] is OPEN or role in METHOD_ROLES[path]:
        assert code not in _DENIED
    else:
        assert code == grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    "path",
    [
        "/remy_farm.v1.DesignService/MakeCoffee",
        "/nothing.Nowhere/Nothing",
        "/grpc.health.v1",
    ],
)
def test_unknown_methods_require_a_token_too(channel: grpc.Channel, path: str) -> None:
    call: Any = channel.unary_unary(path)
    for metadata, code in (
        ([], grpc.StatusCode.UNAUTHENTICATED),
        (bearer(TOKENS[Role.ADMIN]), grpc.StatusCode.UNIMPLEMENTED),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            call(b"", metadata=metadata, timeout=TIMEOUT_SECONDS)
        assert refusal(caught.value)[0] == code


class TestOwnership:
    """Tests that jobs belong to their submitters."""

    @pytest.fixture
    def owners(self, tmp_path: Path) -> Iterator[dict[str, Client]]:
        """Clients by token name."""
        path = tmp_path / "tokens.yaml"
        names = {"ada": "submitter", "bob": "submitter", "root": "admin"}
        for name in names:
            (tmp_path / f"{name}.token").write_text(f"the-token-of-{name}-is-this\n")
        path.write_text(
            "tokens:\n"
            + "".join(
                f"  - {{name: {name}, role: {role}, file: {name}.token}}\n"
                for name, role in names.items()
            )
        )
        with RunningServer(settings_for(tmp_path, tokens_file=path)) as server:
            yield {name: Client(server.channel(), f"the-token-of-{name}-is-this") for name in names}

    @pytest.mark.parametrize(
        ("method", "request_type"),
        [
            ("PauseJob", messages.PauseJobRequest),
            ("ResumeJob", messages.ResumeJobRequest),
            ("CancelJob", messages.CancelJobRequest),
            ("ExtendJob", messages.ExtendJobRequest),
            ("DeleteJob", messages.DeleteJobRequest),
        ],
    )
    def test_only_owner_and_administrators_may_change_a_job(
        self, owners: dict[str, Client], method: str, request_type: Any
    ) -> None:
        job = owners["ada"].submit(small_joint_spec(steps=2))
        assert job.owner == "ada"
        owners["ada"].until_final(job.id)
        for name, may in (("bob", False), ("ada", True), ("root", True)):
            try:
                owners[name].call(method, request_type(job=job.id))
                code = grpc.StatusCode.OK
            except grpc.RpcError as error:
                code = refusal(error)[0]
            assert (code != grpc.StatusCode.PERMISSION_DENIED) == may

    def test_other_users_may_read_and_fork(self, owners: dict[str, Client]) -> None:
        job = owners["ada"].submit(small_joint_spec(steps=2))
        owners["bob"].until_final(job.id)
        fork = owners["bob"].call("ForkJob", messages.ForkJobRequest(job=job.id)).job
        assert fork.owner == "bob"

    def test_request_ids_are_scoped_to_the_submitter(self, owners: dict[str, Client]) -> None:
        made = [
            owners[name].submit(small_joint_spec(steps=2), client_request_id="1").id
            for name in ("ada", "bob")
        ]
        assert made[0] != made[1]

    def test_server_info_names_the_caller(self, owners: dict[str, Client]) -> None:
        info = owners["bob"].call("GetServerInfo", messages.GetServerInfoRequest())
        assert (info.caller, info.role) == ("bob", "submitter")
