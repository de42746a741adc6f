"""Tests errors and exit codes when a coordinator refuses a call or is unreachable."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from services.tests.client.scripted_service import Failure, ScriptedService, retry_later
from tests.waiting import TIMEOUT_SECONDS

JOB = job_pb2.Job(id="j1", name="demo", state=job_pb2.JOB_STATE_PAUSED)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedService]:
    scripted = ScriptedService()
    server = scripted.serve()
    monkeypatch.setenv("REMY_FARM_COORDINATOR", str(scripted.address))
    yield scripted
    server.stop(grace=None).wait()


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [
        ("INVALID_ARGUMENT", 2),
        ("OUT_OF_RANGE", 2),
        ("UNAUTHENTICATED", 4),
        ("PERMISSION_DENIED", 4),
        ("NOT_FOUND", 6),
        ("ALREADY_EXISTS", 6),
        ("FAILED_PRECONDITION", 6),
        ("RESOURCE_EXHAUSTED", 6),
        ("UNIMPLEMENTED", 6),
        ("INTERNAL", 1),
        ("UNKNOWN", 1),
    ],
)
@pytest.mark.parametrize("arguments", [("status", "demo"), ("status", "demo", "--json")])
def test_exit_code_depends_on_the_kind_of_failure(
    status: str, exit_code: int, arguments: tuple[str, ...], service: ScriptedService, run: Any
) -> None:
    service.script("GetJob", Failure(grpc.StatusCode[status], "the reason"))
    result = run(*arguments)
    assert result.exit_code == exit_code
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "the reason" in result.stderr


@pytest.mark.parametrize("arguments", [("list",), ("doctor",), ("status", "demo", "--json")])
def test_unknown_variable_is_refused(
    arguments: tuple[str, ...], service: ScriptedService, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMY_FARM_WORKER_THREADS", "1")
    monkeypatch.setenv("REMY_FARM_PATEINCE", "1")
    result = run(*arguments)
    assert result.exit_code == 2
    assert "the environment has REMY_FARM_PATEINCE, which is not a setting" in result.output
    assert "did you mean REMY_FARM_PATIENCE?" in result.output


def test_unreachable_coordinator_exits_with_3(run: Any) -> None:
    result = run("list", "--coordinator", "127.0.0.1:1", "--patience", 0)
    assert result.exit_code == 3
    assert result.stderr == (
        "remy-farm: the coordinator at 127.0.0.1:1 cannot be reached (Connection refused); "
        "'remy-farm doctor' looks for the cause\n"
    )


def test_call_is_retried_while_the_coordinator_is_briefly_unreachable(
    service: ScriptedService, run: Any
) -> None:
    service.script("GetJob", retry_later(0.01), messages.GetJobResponse(job=JOB))
    result = run("status", "demo", "--patience", 60, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["id"] == "j1"
    assert result.stderr == "remy-farm: starting up; trying again\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--coordinator", "a b"), "must be HOST:PORT"),
        (("--token-file", "/nowhere"), "the token file /nowhere"),
        (("--tls-ca", "/nowhere"), "--tls-ca: /nowhere"),
        (("--tls-cert", "cert.pem"), "--tls-key is missing"),
        (("--insecure", "--tls-ca", "ca.pem"), "exclude each other"),
    ],
)
def test_invalid_connection_settings_are_refused(
    arguments: tuple[str, ...], problem: str, run: Any
) -> None:
    result = run("list", *arguments)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_configuration_file_sets_address_and_token(
    service: ScriptedService, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.script("GetJob", messages.GetJobResponse(job=JOB))
    monkeypatch.delenv("REMY_FARM_COORDINATOR")
    folder = tmp_path / "config" / "remy-farm"
    folder.mkdir(parents=True)
    (folder / "token").write_text("secret-token\n")
    (folder / "config.yaml").write_text(f"coordinator: {service.address}\ntoken_file: token\n")
    assert run("status", "demo").exit_code == 0
    assert service.metadata[-1]["authorization"] == "Bearer secret-token"
    monkeypatch.setenv("REMY_FARM_CONFIG", str(tmp_path / "nowhere"))
    assert run("status", "demo").exit_code == 2


def test_delete_without_a_terminal_needs_yes(service: ScriptedService, run: Any) -> None:
    result = run("delete", "demo")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert service.requests == []


def test_extend_keeps_the_other_budgets(service: ScriptedService, run: Any) -> None:
    job = job_pb2.Job(id="j1", name="demo", state=job_pb2.JOB_STATE_SUCCEEDED)
    job.spec.stop.epochs = 4
    job.spec.stop.cpu_seconds = 100
    service.script("GetJob", messages.GetJobResponse(job=job))
    service.script("ExtendJob", messages.ExtendJobResponse(job=job))
    assert run("extend", "demo", "--max-epochs", 8, "--steps", 50).exit_code == 0
    request = service.requests[-1]
    assert isinstance(request, messages.ExtendJobRequest)
    assert (request.stop.epochs, request.stop.cpu_seconds) == (8, 100)
    assert request.joint_steps == 50
    assert run("extend", "demo", "--steps", 60).exit_code == 0
    request = service.requests[-1]
    assert isinstance(request, messages.ExtendJobRequest)
    assert not request.HasField("stop")
    assert run("extend", "demo").exit_code == 2


def test_corrupt_remycc_does_not_change_the_file(
    service: ScriptedService, run: Any, tmp_path: Path
) -> None:
    service.script("GetRemyCC", messages.GetRemyCCResponse(content=b"{}", sha256=b"other"))
    out = tmp_path / "demo.json"
    out.write_text("before")
    result = run("fetch", "demo", "-o", out)
    assert result.exit_code == 1
    assert "is corrupt" in result.stderr
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_fetch_refuses_an_unknown_suffix(service: ScriptedService, run: Any) -> None:
    result = run("fetch", "demo", "-o", "demo.txt")
    assert result.exit_code == 2
    assert "demo.txt must be a name that ends in .json or .dna" in result.stderr
    assert service.requests == []


def test_failed_sweep_reports_the_submitted_jobs(
    service: ScriptedService, run: Any, spec_file: Path
) -> None:
    service.script(
        "SubmitJob",
        messages.SubmitJobResponse(job=JOB),
        Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "ann has 10 jobs, and 10 are allowed"),
    )
    result = run("submit", spec_file, "--sweep", "objective.delta=0.1,1,10")
    assert result.exit_code == 6
    lines = result.stderr.splitlines()
    assert lines[0].startswith(
        "remy-farm: 1 of 3 jobs were submitted before this error, in campaign small-"
    )
    assert lines[1] == "remy-farm: ann has 10 jobs, and 10 are allowed"


def test_sweep_submits_a_job_per_combination(
    service: ScriptedService, run: Any, spec_file: Path
) -> None:
    service.script("SubmitJob", messages.SubmitJobResponse(job=JOB))
    arguments = ("--sweep", "objective.delta=0.1,1", "--sweep", "signals=[rtt_ratio],[send_ewma]")
    assert run("submit", spec_file, *arguments, "--priority", -2, "--weight", 3).exit_code == 0
    sent = [each for each in service.requests if isinstance(each, messages.SubmitJobRequest)]
    assert [each.name for each in sent] == [
        "small_delta-0.1_signals-rtt_ratio",
        "small_delta-0.1_signals-send_ewma",
        "small_delta-1_signals-rtt_ratio",
        "small_delta-1_signals-send_ewma",
    ]
    assert [each.spec.objective.delta for each in sent] == [0.1, 0.1, 1, 1]
    assert len({each.campaign for each in sent}) == 1
    assert len({each.client_request_id for each in sent}) == 4
    assert {(each.priority, each.weight) for each in sent} == {(-2, 3)}


def test_invalid_specification_is_refused_without_a_call(
    service: ScriptedService, run: Any, spec_file: Path
) -> None:
    spec_file.write_text(spec_file.read_text().replace("rtt_ms: 100", "rtt_ms: -5"))
    result = run("submit", spec_file)
    assert result.exit_code == 2
    assert "network.rtt_ms" in result.stderr
    assert service.requests == []


def test_completion_of_job_names(service: ScriptedService) -> None:
    from click.shell_completion import BashComplete

    from remy_cli.main import main

    service.script("ListJobs", messages.ListJobsResponse(jobs=[JOB, job_pb2.Job(name="other")]))
    complete = BashComplete(main, {}, "remy-farm", "_REMY_FARM_COMPLETE")
    completions = complete.get_completions(["status"], "de")
    assert [(item.value, item.help) for item in completions] == [("demo", "paused")]


def test_completion_without_a_coordinator_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from click.shell_completion import BashComplete

    from remy_cli.main import main

    monkeypatch.setenv("REMY_FARM_COORDINATOR", "127.0.0.1:1")
    complete = BashComplete(main, {}, "remy-farm", "_REMY_FARM_COMPLETE")
    assert complete.get_completions(["status"], "de") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str, run: Any) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"_REMY_FARM_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.parametrize("module", ["submit", "jobs", "watch", "doctor"])
def test_job_commands_import_neither_numpy_nor_matplotlib(module: str) -> None:
    script = f"import sys, remy_cli.{module}\nprint({{'numpy', 'matplotlib'}} & set(sys.modules))\n"
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert process.stdout.strip() == "set()"
