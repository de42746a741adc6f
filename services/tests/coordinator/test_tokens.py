"""Tests the tokens file: reading, errors and reloading."""

from __future__ import annotations

import hashlib
from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from remy_farm.files import FileError
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.coordinator.access import Caller, Role, Tokens
from services.tests.coordinator.running_server import Client, RunningServer, refusal, settings_for

_TOKEN = "a-token-that-is-long-enough"
_SHA256 = hashlib.sha256(_TOKEN.encode()).hexdigest()


def _entry(name: str, sha256: str) -> str:
    return f"{{name: {name}, role: viewer, sha256: {sha256}}}"


def _file(folder: Path, text: str) -> Path:
    path = folder / "tokens.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_tokens_are_given_by_hash_or_by_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("another-token-in-a-file\n")
    path = _file(
        tmp_path,
        f"tokens:\n  - {{name: ada, role: admin, sha256: {_SHA256}}}\n"
        "  - {name: bob, role: worker, file: secret}\n",
    )
    tokens = Tokens.read(path)
    assert tokens.find_caller(_TOKEN) == Caller("ada", Role.ADMIN)
    assert tokens.find_caller("another-token-in-a-file") == Caller("bob", Role.WORKER)
    assert tokens.find_caller(_SHA256) is None
    assert tokens.find_caller("") is None
    assert tokens.paths == (path, tmp_path / "secret")


def test_json_is_accepted(tmp_path: Path) -> None:
    path = _file(
        tmp_path, f'{{"tokens": [{{"name": "a", "role": "viewer", "sha256": "{_SHA256}"}}]}}'
    )
    assert Tokens.read(path).find_caller(_TOKEN) == Caller("a", Role.VIEWER)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must be a mapping with the key tokens, a list"),
        ("tokens: {}", "must be a mapping with the key tokens, a list"),
        ("tokens: []\nmore: 1", "must be a mapping with the key tokens, a list"),
        ("tokens: [", "is not YAML"),
        ("tokens: [1]", "tokens[0] must be a mapping with keys from name, role, sha256, file"),
        ("tokens: [{name: a, rolle: admin}]", "tokens[0] must be a mapping with keys from"),
        ("tokens: [{name: a b, role: admin, sha256: x}]", "tokens[0].name must be"),
        ("tokens: [{role: admin, sha256: x}]", "tokens[0].name must be"),
        ("tokens: [{name: a, role: root, sha256: x}]", "tokens[0].role must be one of viewer"),
        ("tokens: [{name: a, role: admin}]", "must have either sha256 or file"),
        ("tokens: [{name: a, role: admin, sha256: abc}]", "must be 64 hexadecimal digits"),
        ("tokens: [{name: a, role: admin, file: none}]", "none: cannot be read"),
        ("tokens: [{name: a, role: admin, file: short}]", "at least 16 ASCII characters"),
        (
            f"tokens: [{_entry('a', _SHA256)}, {_entry('b', _SHA256.upper())}]",
            "gives several names the same token",
        ),
    ],
)
def test_invalid_files_are_refused_without_revealing_secrets(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "short").write_text("shortsecret")
    with pytest.raises(FileError) as caught:
        Tokens.read(_file(tmp_path, text))
    assert problem in str(caught.value)
    assert "shortsecret" not in str(caught.value)


def test_valid_changes_are_reloaded_and_invalid_ones_ignored(tmp_path: Path) -> None:
    path = _file(tmp_path, f"tokens: [{{name: ada, role: admin, sha256: {_SHA256}}}]")

    def code(token: str) -> grpc.StatusCode:
        try:
            client = Client(server.channel(), token)
            client.call("GetServerInfo", messages.GetServerInfoRequest())
        except grpc.RpcError as error:
            return refusal(error)[0]
        return grpc.StatusCode.OK

    def replace(text: str) -> None:
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").replace(path)

    with (
        capture_logs() as events,
        RunningServer(settings_for(tmp_path, tokens_file=path)) as server,
    ):
        assert code(_TOKEN) == grpc.StatusCode.OK
        assert code("the-next-token-in-use") == grpc.StatusCode.UNAUTHENTICATED
        digest = hashlib.sha256(b"the-next-token-in-use").hexdigest()
        replace(f"tokens: [{{name: ada, role: admin, sha256: {digest}}}]")
        server.until(lambda: code("the-next-token-in-use") == grpc.StatusCode.OK)
        assert code(_TOKEN) == grpc.StatusCode.UNAUTHENTICATED

        replace("nonsense")
        unusable = "the new tokens cannot be used"
        server.until(lambda: any(event["event"] == unusable for event in events))
        assert code("the-next-token-in-use") == grpc.StatusCode.OK
        third = hashlib.sha256(b"the-third-token-in-use").hexdigest()
        replace(f"tokens: [{{name: ada, role: admin, sha256: {third}}}]")
        server.until(lambda: code("the-third-token-in-use") == grpc.StatusCode.OK)
