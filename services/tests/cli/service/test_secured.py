"""A coordinator with TLS and tokens: who gets in, and what the doctor says to those who do not."""

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
    """The coordinator, and what its users hold in their hands."""

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
        """The flags that reach it."""
        return ("--coordinator", self.coordinator.address, "--tls-ca", str(self.authority.path))

    def as_a(self, role: str) -> tuple[str, ...]:
        """The flags of somebody with this role."""
        return (*self.tls, "--token-file", str(self._folder / f"{role}.token"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    found = Secured(tmp_path_factory.mktemp("secured"))
    found.coordinator.start()
    yield found
    found.coordinator.close()


@pytest.fixture
def started() -> Iterator[Callable[[Coordinator], Coordinator]]:
    """Starts other coordinators."""
    with ExitStack() as stack:

        def start(coordinator: Coordinator) -> Coordinator:
            stack.callback(coordinator.close)
            coordinator.start()
            return coordinator

        yield start


def checks(tree: dict[str, Any]) -> dict[str, str]:
    return {each["check"]: each["verdict"] for each in tree["checks"]}


def problem(tree: dict[str, Any]) -> str:
    """What is wrong, which is one thing."""
    (found,) = [each for each in tree["checks"] if each["verdict"] == "problem"]
    assert found["advice"]
    assert tree["ok"] is False
    return str(found["text"])


@pytest.fixture
def doctor(run: Any) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Its exit code and what it says with --json."""

    def call(*words: object) -> tuple[int, dict[str, Any]]:
        result = run("doctor", *words, "--json")
        return result.exit_code, json.loads(result.stdout)

    return call


Doctor = Callable[..., tuple[int, dict[str, Any]]]


def test_roles(run: Any, run_json: RunJson, secured: Secured, spec_file: Path) -> None:
    job = run_json("submit", spec_file, *secured.as_a("submitter"))
    assert job["owner"] == "some-submitter"
    assert run_json("status", job["id"], *secured.as_a("viewer"))["id"] == job["id"]
    for words in (
        ("submit", spec_file, *secured.as_a("viewer")),
        ("cancel", job["id"], *secured.as_a("viewer")),
        ("status", job["id"], *secured.as_a("worker")),
        ("status", job["id"], *secured.tls),
    ):
        result = run(*words)
        assert result.exit_code == 4, result.output
        assert len(result.stderr.splitlines()) == 1


def test_a_wrong_token(run: Any, secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMY_FARM_TOKEN", "a-wrong-token-0123456789")
    result = run("list", *secured.tls)
    assert result.exit_code == 4
    assert "a-wrong-token" not in result.output
    assert "a-wrong-token" not in secured.coordinator.log()


def test_a_certificate_that_is_not_trusted(run: Any, secured: Secured, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger", "somebody else")
    words = ("--coordinator", secured.coordinator.address, "--tls-ca", stranger.path)
    result = run("list", *words, "--patience", 0)
    assert result.exit_code == 3
    assert "its certificate is not trusted" in result.stderr


def test_the_doctor_finds_a_sound_set_up(run: Any, doctor: Doctor, secured: Secured) -> None:
    exit_code, tree = doctor(*secured.as_a("submitter"))
    assert exit_code == 0
    assert tree["ok"] is True
    assert set(checks(tree).values()) == {"ok"}
    lines = run("doctor", *secured.as_a("submitter")).stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["OK"] * 8


def test_the_doctor_tells_a_viewer_apart(doctor: Doctor, secured: Secured) -> None:
    exit_code, tree = doctor(*secured.as_a("viewer"))
    assert (exit_code, checks(tree)["token"]) == (0, "warning")


def test_the_doctor_about_tokens(
    doctor: Doctor, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    exit_code, tree = doctor(*secured.tls)
    assert exit_code == 4
    assert "none is set" in problem(tree)
    exit_code, tree = doctor(*secured.as_a("worker"))
    assert exit_code == 4
    assert "whose role is worker" in problem(tree)
    monkeypatch.setenv("REMY_FARM_TOKEN", "a-wrong-token-0123456789")
    exit_code, tree = doctor(*secured.tls)
    assert exit_code == 4
    assert problem(tree).endswith("it came from REMY_FARM_TOKEN")
    assert checks(tree)["store"] == "skipped"


def test_the_doctor_about_tls(doctor: Doctor, secured: Secured, tmp_path: Path) -> None:
    exit_code, tree = doctor("--coordinator", secured.coordinator.address)
    assert exit_code == 3
    assert "speaks TLS, and this client is set to plain text" in problem(tree)
    exit_code, tree = doctor(*secured.tls, "--tls-server-name", "other.example.org")
    assert exit_code == 3
    assert "is for farm.example.org, 127.0.0.1, not for other.example.org" in problem(tree)
    stranger = Authority(tmp_path / "stranger", "somebody else")
    exit_code, tree = doctor(*secured.tls[:2], "--tls-ca", stranger.path)
    assert exit_code == 3
    assert "is not signed by" in problem(tree)


def test_the_doctor_about_an_old_certificate(
    doctor: Doctor, tmp_path: Path, started: Callable[[Coordinator], Coordinator]
) -> None:
    authority = Authority(tmp_path / "ca")
    old = authority.issue("127.0.0.1", begins=timedelta(days=-9), ends=timedelta(days=-2))
    flags = ("--tls-cert", str(old.cert), "--tls-key", str(old.key))
    coordinator = started(Coordinator(tmp_path / "old", *flags))
    exit_code, tree = doctor(*("--coordinator", coordinator.address, "--tls-ca", authority.path))
    assert exit_code == 3
    assert "has expired" in problem(tree)


def test_mutual_tls(
    run: Any,
    doctor: Doctor,
    tmp_path: Path,
    started: Callable[[Coordinator], Coordinator],
) -> None:
    authority = Authority(tmp_path / "ca")
    server, own = authority.issue("127.0.0.1"), authority.issue("ann")
    flags = ("--tls-cert", str(server.cert), "--tls-key", str(server.key))
    coordinator = started(
        Coordinator(tmp_path / "mutual", *flags, "--tls-client-ca", str(authority.path))
    )
    there = ("--coordinator", coordinator.address, "--tls-ca", authority.path)
    mine = ("--tls-cert", own.cert, "--tls-key", own.key)
    assert run("list", *there, *mine).exit_code == 0
    assert run("list", *there, "--patience", 0).exit_code == 3
    assert doctor(*there, *mine)[0] == 0
    exit_code, tree = doctor(*there)
    assert exit_code == 3
    assert "wants to see a certificate of this client" in problem(tree)


def test_the_doctor_misses_workers(
    doctor: Doctor, tmp_path: Path, started: Callable[[Coordinator], Coordinator]
) -> None:
    coordinator = started(Coordinator(tmp_path / "idle", "--evaluator", "workers"))
    exit_code, tree = doctor("--coordinator", coordinator.address)
    assert exit_code == 6
    assert problem(tree).startswith("no worker is connected")


def test_the_doctor_where_nobody_is(run: Any, doctor: Doctor) -> None:
    exit_code, tree = doctor("--coordinator", "127.0.0.1:1")
    assert exit_code == 3
    assert problem(tree) == "nobody listens at 127.0.0.1:1"
    lines = run("doctor", "--coordinator", "127.0.0.1:1").stdout.splitlines()
    assert lines[0].split()[:2] == ["address", "problem"]
    assert lines[1].strip().startswith("-> start the coordinator there")


def test_the_doctor_about_settings(doctor: Doctor, tmp_path: Path) -> None:
    exit_code, tree = doctor("--token-file", tmp_path / "nowhere")
    assert exit_code == 2
    assert str(tmp_path / "nowhere") in problem(tree)


def test_every_command_says_that_plain_text_meets_tls(run: Any, secured: Secured) -> None:
    for words in (["list"], ["watch", "some-job"], ["info"], ["submit", "examples/demo.yaml"]):
        result = run(*words, "--coordinator", secured.coordinator.address)
        assert result.exit_code == 3
        assert "it speaks TLS, and this side is set to plain text" in result.stderr
        assert "--tls-ca" in result.stderr
        assert "trying again" not in result.stderr
