"""Tests every command on jobs with a real coordinator."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from remy_cli.connecting import JobName
from remy_cli.main import main
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_spec, spec_from_tree
from services.tests.cli.service.real_coordinator import Coordinator

RunJson = Callable[..., dict[str, Any]]
Until = Callable[[str, Callable[[dict[str, Any]], bool]], dict[str, Any]]

COMMANDS = main.list_commands(click.Context(main))

pytestmark = pytest.mark.usefixtures("farm")


def has_stepped(job: dict[str, Any]) -> bool:
    return job["progress"] is not None and job["progress"]["step"] > 0


@pytest.fixture
def finished(run_json: RunJson, spec_file: Path) -> str:
    """The id of a job that has succeeded."""
    job_id = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    assert isinstance(job_id, str)
    return job_id


@pytest.fixture
def endless(run_json: RunJson, endless_spec: Path, until: Until) -> str:
    """The id of a job that runs until it is cancelled."""
    job_id = run_json("submit", endless_spec)["id"]
    assert isinstance(job_id, str)
    until(job_id, has_stepped)
    return job_id


def test_submitted_design_gives_the_same_remycc_as_a_local_one(
    run: Any, run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    job = run_json("submit", spec_file, "--watch", "--quiet")
    assert (job["state"], job["stop_reason"]) == ("succeeded", "epochs")
    assert spec_from_tree(job["spec"]) == load_spec(spec_file)
    run_json("design", spec_file, "--out", tmp_path / "out")
    for name in ("remycc.json", "remycc.dna"):
        fetched = tmp_path / f"fetched-{name}"
        assert run("fetch", job["id"], "-o", fetched).exit_code == 0
        assert fetched.read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_submit_uploads_the_traces_of_a_specification(
    run_json: RunJson, run: Any, spec_file: Path, tmp_path: Path
) -> None:
    (spec_file.parent / "link.trace").write_text("".join(f"{each}\n" for each in range(1, 9000)))
    link = "links: [{trace: {path: link.trace, semantics: mahimahi}, buffer: {packets: 50}}]"
    lines = spec_file.read_text().splitlines()
    spec_file.write_text("\n".join(f"  {link}" if "rate_mbps" in line else line for line in lines))
    job = run_json("submit", spec_file, "--watch", "--quiet")
    assert job["state"] == "succeeded"
    run_json("design", spec_file, "--out", tmp_path / "out")
    fetched = tmp_path / "fetched.json"
    assert run("fetch", job["id"], "-o", fetched).exit_code == 0
    assert fetched.read_bytes() == (tmp_path / "out" / "remycc.json").read_bytes()


def test_every_command_accepts_a_prefix_of_an_id(
    run: Any, run_json: RunJson, spec_file: Path, tmp_path: Path, until: Until
) -> None:
    first = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    other = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    # An id starts with the second of the submission, followed by random digits. A prefix without
    # the last four digits is unique, even among jobs of the same second.
    unique = first[:-4]
    calls: dict[str, tuple[object, ...]] = {
        "status": (unique,),
        "watch": (unique,),
        "compare": (unique, other),
        "history": (unique,),
        "logs": (unique,),
        "fetch": (unique, "-o", tmp_path / "remycc.json"),
        "export-job": (unique, "-o", tmp_path / "job.bin"),
        "fork": (unique, "--name", "forked"),
        "extend": (unique, "--max-epochs", 1_000_000),
        "pause": (unique,),
        "resume": (unique,),
        "cancel": (unique,),
        "delete": (unique, "--yes"),
    }
    assert set(calls) == {name for name in COMMANDS if _takes_a_job(name)}
    settled = {"resume": "paused", "delete": "cancelled"}
    for name, arguments in calls.items():
        if name in settled:
            until(first, _is(settled[name]))
        result = run(name, *arguments)
        assert result.exit_code == 0, (name, result.output)
    assert run("status", first).exit_code == 6
    assert run_json("status", other)["state"] == "succeeded"


def _is(state: str) -> Callable[[dict[str, Any]], bool]:
    return lambda job: bool(job["state"] == state)


def _takes_a_job(name: str) -> bool:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return any(isinstance(each.type, JobName) for each in command.params)


def test_submit_prints_the_watch_command(run: Any, run_json: RunJson, spec_file: Path) -> None:
    result = run("submit", spec_file, "--name", "for-people")
    assert result.exit_code == 0
    job_id = run_json("status", "for-people")["id"]
    assert result.stdout == f"for-people ({job_id}) is submitted\n"
    assert result.stderr == f"to watch: remy-farm watch {job_id}\n"


def test_validate_only_submits_nothing(run: Any, run_json: RunJson, spec_file: Path) -> None:
    result = run("submit", spec_file, "--name", "never-stored", "--validate-only")
    assert (result.exit_code, result.stdout) == (0, "the coordinator would accept 1 job\n")
    output = run_json("submit", spec_file, "--name", "never-stored", "--validate-only")
    assert (output["id"], output["name"]) == ("", "never-stored")
    assert run("status", "never-stored").exit_code == 6


def test_status_as_text(run: Any, finished: str) -> None:
    result = run("status", finished)
    lines = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert lines["job"].strip() == f"small ({finished})"
    assert lines["state"].strip().startswith("succeeded: the specification's number of epochs")
    assert {"owner", "progress", "score", "submitted", "started", "ended"} <= set(lines)


def test_ambiguous_name_is_refused_with_the_ids(
    run: Any, run_json: RunJson, spec_file: Path
) -> None:
    ids = [run_json("submit", spec_file, "--name", "twin")["id"] for _ in range(2)]
    result = run("status", "twin")
    assert result.exit_code == 2
    assert all(each in result.stderr for each in ids)


def test_job_is_paused_resumed_and_cancelled(run_json: RunJson, endless: str, until: Until) -> None:
    assert run_json("pause", endless)["state"] in ("pausing", "paused")
    paused = until(endless, lambda job: job["state"] == "paused")
    assert run_json("resume", endless)["state"] in ("pending", "scheduling", "running")
    until(endless, lambda job: job["progress"]["step"] > paused["progress"]["step"])
    assert run_json("cancel", endless)["state"] in ("cancelling", "cancelled")
    until(endless, lambda job: job["state"] == "cancelled")


def test_pause_of_a_finished_job_is_refused(run: Any, finished: str) -> None:
    result = run("pause", finished)
    assert result.exit_code == 6
    assert len(result.stderr.splitlines()) == 1
    assert "cannot be paused" in result.stderr


def test_extended_job_continues_under_its_id(
    run_json: RunJson, finished: str, until: Until
) -> None:
    steps = run_json("status", finished)["progress"]["step"]
    job = run_json("extend", finished, "--max-epochs", 4)
    assert (job["id"], job["spec"]["stop"]["epochs"]) == (finished, 4)
    job = until(finished, lambda job: job["state"] == "succeeded")
    assert job["progress"]["step"] > steps


def test_fork_starts_with_a_table_of_the_other_job(
    run_json: RunJson, finished: str, tmp_path: Path
) -> None:
    arguments = ("--epoch", 0, "--set", "objective.delta=3", "--set", "search.seed=9")
    job = run_json("fork", finished, *arguments, "--name", "forked", "--priority", 2)
    assert job["fork"] == {"job_id": finished, "epoch": 0}
    assert (job["name"], job["priority"]) == ("forked", 2)
    assert job["spec"]["objective"]["delta"] == 3
    assert job["spec"]["search"]["seed"] == 9


def test_fork_with_an_invalid_setting_is_refused(run: Any, finished: str) -> None:
    result = run("fork", finished, "--set", "objective.delta=-1")
    assert result.exit_code == 2
    assert "objective.delta" in result.stderr


def test_deleted_job_is_not_found(run: Any, run_json: RunJson, finished: str) -> None:
    assert run_json("delete", finished, "--yes") == {"deleted": finished, "name": "small"}
    assert run("status", finished).exit_code == 6
    assert run("delete", finished, "--yes").exit_code == 6


def test_list_filters_and_limits_jobs(run: Any, run_json: RunJson, spec_file: Path) -> None:
    ids = [run_json("submit", spec_file, "--name", f"listed-{n}")["id"] for n in range(3)]
    listed = run_json("list", "--name", "listed-", "--limit", 2)
    assert [job["id"] for job in listed["jobs"]] == ids[:0:-1]
    assert listed["has_more"] is True
    listed = run_json("list", "--name", "listed-", "--all")
    assert [job["id"] for job in listed["jobs"]] == ids[::-1]
    assert listed["has_more"] is False
    assert all(job["spec"] is None for job in listed["jobs"])
    assert run_json("list", "--name", "listed-", "--state", "failed")["jobs"] == []
    assert run_json("list", "--name", "listed-", "--owner", "nobody-of-that-name")["jobs"] == []
    result = run("list", "--name", "listed-", "--limit", 2)
    head, *rows = result.stdout.splitlines()
    assert head.split()[:4] == ["name", "id", "state", "owner"]
    assert [row.split()[:2] for row in rows] == [["listed-2", ids[2]], ["listed-1", ids[1]]]
    assert "--all" in result.stderr


def test_compare_reports_the_differing_settings(
    run: Any, run_json: RunJson, spec_file: Path
) -> None:
    one = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    spec_file.write_text(spec_file.read_text().replace("rtt_ms: 100", "rtt_ms: 120"))
    other = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    output = run_json("compare", one, other)
    assert [job["id"] for job in output["jobs"]] == [one, other]
    assert output["differences"] == [{"path": "network.rtt_ms", "values": ["100", "120"]}]
    result = run("compare", one, other)
    assert result.stdout.splitlines()[-1].split() == ["network.rtt_ms", "100", "120"]
    assert run("compare", one).exit_code == 2


def test_fetch_saves_the_table_of_an_epoch(
    run: Any, run_json: RunJson, finished: str, tmp_path: Path
) -> None:
    out = tmp_path / "first.json"
    output = run_json("fetch", finished, "--epoch", 0, "-o", out)
    assert (output["file"], output["epoch"]) == (str(out), 0)
    assert read_remycc(out).table.rule_count == output["rules"]
    result = run("fetch", finished, "--epoch", 99, "-o", tmp_path / "none.json")
    assert result.exit_code == 6
    assert "99" in result.stderr
    assert not (tmp_path / "none.json").exists()


def test_exported_job_continues_on_another_coordinator(
    run: Any, run_json: RunJson, endless: str, until: Until, tmp_path: Path
) -> None:
    run_json("pause", endless)
    paused = until(endless, lambda job: job["state"] == "paused")
    archive = tmp_path / "small.job"
    output = run_json("export-job", endless, "-o", archive)
    assert output == {"job": endless, "file": str(archive), "bytes": archive.stat().st_size}
    assert run("import-job", archive).exit_code == 6

    elsewhere = Coordinator(tmp_path / "elsewhere")
    elsewhere.start()
    try:
        flags = ("--coordinator", elsewhere.address)
        job = run_json("import-job", archive, *flags)
        assert (job["id"], job["state"]) == (endless, "paused")
        assert job["progress"]["step"] == paused["progress"]["step"]
        assert run_json("cancel", endless, *flags)["state"] == "cancelled"
    finally:
        elsewhere.close()
    run_json("cancel", endless)


def test_invalid_archive_is_refused(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "no.job"
    path.write_text("not a job")
    result = run("import-job", path)
    assert result.exit_code == 2
    assert str(path) in result.stderr


def test_info_prints_versions_store_and_workers(
    run: Any, run_json: RunJson, farm: Coordinator
) -> None:
    output = run_json("info")
    assert output["store"]["kind"] == "sqlite"
    assert output["evaluators"]["kind"] == "local"
    lines = run("info").stdout.splitlines()
    assert lines[0].endswith(f" at {farm.address}")
    assert json.dumps(output)
