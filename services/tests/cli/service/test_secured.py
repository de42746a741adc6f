"""Tests access to a coordinator with TLS and tokens, and the diagnoses of `doctor`."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rpc.tests.certificates import Authority
from services.tests.cli.service.real_coordinator import Coordinator

RunJson = Callable[..., dict[str, Any]]

ROLES = ("viewer", "submitter", "admin", "worker")


class Secured:
    """A coordinator with TLS, and its users' token files."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "ca")
        pair = self.authority.issue("farm.example.org", "127.0.0.1")
        tokens = []
        for role in ROLES:
            token = f"token-of-a-{role}-0123456789"
            self.token_file(folder, role, token)
            digest = hashlib.sha256(token.encode()).hexdigest()
            tokens.append({"name": f"some-{role}", "role": role, "sha256": digest})
        (folder / "tokens.yaml").write_text(json.dumps({"tokens": tokens}))
        self._folder = folder
        self.coordinator = Coordinator(
            folder / "coordinator",
            *("--tls-cert", str(pair.cert), "--tls-key", str(pair.key)),
            *("--tokens-file", str(folder / "tokens.yaml")),
        )

    def token_file(self, folder: Path, role: str, token: str) -> None:
        path = folder / f"{role}.token"
        path.write_text(f"{token}\n")
        path.chmod(0o600)

    @property
    def tls(self) -> tuple[str, ...]:
        """The flags for a TLS connection, without a token."""
        return ("--coordinator", self.coordinator.address, "--tls-ca", str(self.authority.path))

    def flags_of(self, role: str) -> tuple[str, ...]:
        """Returns the flags of a user with this role."""
        return (*self.tls, "--token-file", str(self._folder / f"{role}.token"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    secured_coordinator = Secured(tmp_path_factory.mktemp("secured"))
    secured_coordinator.coordinator.start()
    yield secured_coordinator
    secured_coordinator.coordinator.close()


@pytest.fixture
def started() -> Iterator[Callable[[Coordinator], Coordinator]]:
    """Starts further coordinators, which are closed after the test."""
    with ExitStack() as stack:

        def start(coordinator: Coordinator) -> Coordinator:
            stack.callback(coordinator.close)
            coordinator.start()
            return coordinator

        yield start


def checks(output: dict[str, Any]) -> dict[str, str]:
    return {each["check"]: each["verdict"] for each in output["checks"]}


def problem(output: dict[str, Any]) -> str:
    """Returns the text of the only problem."""
    (found,) = [each for each in output["checks"] if each["verdict"] == "problem"]
    assert found["advice"]
    assert output["ok"] is False
    return str(found["text"])


@pytest.fixture
def doctor(run: Any) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Calls `doctor --json`; returns the exit code and the output."""

    def call(*arguments: object) -> tuple[int, dict[str, Any]]:
        result = run("doctor", *arguments, "--json")
        return result.exit_code, json.loads(result.stdout)

    return call


Doctor = Callable[..., tuple[int, dict[str, Any]]]


def test_roles_limit_the_commands(
    run: Any, run_json: RunJson, secured: Secured, spec_file: Path
) -> None:
    job = run_json("submit", spec_file, *secured.flags_of("submitter"))
    assert job["owner"] == "some-submitter"
    assert run_json("status", job["id"], *secured.flags_of("viewer"))["id"] == job["id"]
    for arguments in (
        ("submit", spec_file, *secured.flags_of("viewer")),
        ("cancel", job["id"], *secured.flags_of("viewer")),
        ("status", job["id"], *secured.flags_of("worker")),
        ("status", job["id"], *secured.tls),
    ):
        result = run(*arguments)
        assert result.exit_code == 4, result.output
        assert len(result.stderr.splitlines()) == 1


def test_wrong_token_is_refused(
    run: Any, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMY_FARM_TOKEN", "a-wrong-token-0123456789")
    result = run("list", *secured.tls)
    assert result.exit_code == 4
    assert "a-wrong-token" not in result.output
    assert "a-wrong-token" not in secured.coordinator.log()


def test_untrusted_certificate_is_refused(run: Any, secured: Secured, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger", "somebody else")
    arguments = ("--coordinator", secured.coordinator.address, "--tls-ca", stranger.path)
    result = run("list", *arguments, "--patience", 0)
    assert result.exit_code == 3
    assert "its certificate is not trusted" in result.stderr


def test_doctor_finds_no_problem(run: Any, doctor: Doctor, secured: Secured) -> None:
    exit_code, output = doctor(*secured.flags_of("submitter"))
    assert exit_code == 0
    assert output["ok"] is True
    assert set(checks(output).values()) == {"ok"}
    lines = run("doctor", *secured.flags_of("submitter")).stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["OK"] * 8


def test_doctor_warns_about_the_role_viewer(doctor: Doctor, secured: Secured) -> None:
    exit_code, output = doctor(*secured.flags_of("viewer"))
    assert (exit_code, checks(output)["token"]) == (0, "warning")


def test_doctor_reports_problems_with_tokens(
    doctor: Doctor, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    exit_code, output = doctor(*secured.tls)
    assert exit_code == 4
    assert "none is set" in problem(output)
    exit_code, output = doctor(*secured.flags_of("worker"))
    assert exit_code == 4
    assert "has role worker" in problem(output)
    monkeypatch.setenv("REMY_FARM_TOKEN", "a-wrong-token-0123456789")
    exit_code, output = doctor(*secured.tls)
    assert exit_code == 4
    assert problem(output).endswith("it came from REMY_FARM_TOKEN")
    assert checks(output)["store"] == "skipped"


def test_doctor_reports_problems_with_tls(doctor: Doctor, secured: Secured, tmp_path: Path) -> None:
    exit_code, output = doctor("--coordinator", secured.coordinator.address)
    assert exit_code == 3
    assert "uses TLS, but this client is set to plain text" in problem(output)
    exit_code, output = doctor(*secured.tls, "--tls-server-name", "other.example.org")
    assert exit_code == 3
    assert "is for farm.example.org, 127.0.0.1, not for other.example.org" in problem(output)
    stranger = Authority(tmp_path / "stranger", "somebody else")
    exit_code, output = doctor(*secured.tls[:2], "--tls-ca", stranger.path)
    assert exit_code == 3
    assert "is not signed by" in problem(output)


def test_doctor_reports_an_expired_certificate(
    doctor: Doctor, tmp_path: Path, started: Callable[[Coordinator], Coordinator]
) -> None:
    authority = Authority(tmp_path / "ca")
    old = authority.issue("127.0.0.1", begins=timedelta(days=-9), ends=timedelta(days=-2))
    flags = ("--tls-cert", str(old.cert), "--tls-key", str(old.key))
    coordinator = started(Coordinator(tmp_path / "old", *flags))
    exit_code, output = doctor(*("--coordinator", coordinator.address, "--tls-ca", authority.path))
    assert exit_code == 3
    assert "has expired" in problem(output)


def test_mutual_tls_requires_a_client_certificate(
    run: Any,
    doctor: Doctor,
    tmp_path: Path,
    started: Callable[[Coordinator], Coordinator],
) -> None:
    authority = Authority(tmp_path / "ca")
    server, client = authority.issue("127.0.0.1"), authority.issue("ann")
    server_flags = ("--tls-cert", str(server.cert), "--tls-key", str(server.key))
    coordinator = started(
        Coordinator(tmp_path / "mutual", *server_flags, "--tls-client-ca", str(authority.path))
    )
    flags = ("--coordinator", coordinator.address, "--tls-ca", authority.path)
    client_flags = ("--tls-cert", client.cert, "--tls-key", client.key)
    assert run("list", *flags, *client_flags).exit_code == 0
    assert run("list", *flags, "--patience", 0).exit_code == 3
    assert doctor(*flags, *client_flags)[0] == 0
    exit_code, output = doctor(*flags)
    assert exit_code == 3
    assert "requires a client certificate" in problem(output)


def test_doctor_reports_missing_workers(
    doctor: Doctor, tmp_path: Path, started: Callable[[Coordinator], Coordinator]
) -> None:
    coordinator = started(Coordinator(tmp_path / "idle", "--evaluator", "workers"))
    exit_code, output = doctor("--coordinator", coordinator.address)
    assert exit_code == 6
    assert problem(output).startswith("no worker is connected")


def test_doctor_reports_an_unreachable_coordinator(run: Any, doctor: Doctor) -> None:
    exit_code, output = doctor("--coordinator", "127.0.0.1:1")
    assert exit_code == 3
    assert problem(output) == "connection to 127.0.0.1:1 refused"
    lines = run("doctor", "--coordinator", "127.0.0.1:1").stdout.splitlines()
    assert lines[0].split()[:2] == ["address", "problem"]
    assert lines[1].strip().startswith("-> start the coordinator there")


def test_doctor_reports_invalid_settings(doctor: Doctor, tmp_path: Path) -> None:
    exit_code, output = doctor("--token-file", tmp_path / "nowhere")
    assert exit_code == 2
    assert str(tmp_path / "nowhere") in problem(output)


def test_plain_text_connection_to_tls_is_reported(run: Any, secured: Secured) -> None:
    for arguments in (["list"], ["watch", "some-job"], ["info"], ["submit", "examples/demo.yaml"]):
        result = run(*arguments, "--coordinator", secured.coordinator.address)
        assert result.exit_code == 3
        assert "the coordinator uses TLS, but this side uses plain text" in result.stderr
        assert "--tls-ca" in result.stderr
        assert "trying again" not in result.stderr
