"""Every command on jobs, against a real coordinator."""

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
    """The id of a job that is at work, and will be until it is told to end."""
    job_id = run_json("submit", endless_spec)["id"]
    assert isinstance(job_id, str)
    until(job_id, has_stepped)
    return job_id


def test_submitted_here_and_designed_there_it_is_the_same_remycc(
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


def test_traces_that_a_specification_names_are_uploaded_with_it(
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


def test_the_beginning_of_an_id_is_enough_for_every_command(
    run: Any, run_json: RunJson, spec_file: Path, tmp_path: Path, until: Until
) -> None:
    first = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    other = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    # The first digits are the second in which a job was submitted, the others are drawn: four
    # digits short of the whole, nobody else's id begins so, not even that of the fork made below.
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
    for name, words in calls.items():
        if name in settled:
            until(first, _is(settled[name]))
        result = run(name, *words)
        assert result.exit_code == 0, (name, result.output)
    assert run("status", first).exit_code == 6
    assert run_json("status", other)["state"] == "succeeded"


def _is(state: str) -> Callable[[dict[str, Any]], bool]:
    return lambda job: bool(job["state"] == state)


def _takes_a_job(name: str) -> bool:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return any(isinstance(each.type, JobName) for each in command.params)


def test_submit_says_how_to_watch(run: Any, run_json: RunJson, spec_file: Path) -> None:
    result = run("submit", spec_file, "--name", "for-people")
    assert result.exit_code == 0
    job_id = run_json("status", "for-people")["id"]
    assert result.stdout == f"for-people ({job_id}) is submitted\n"
    assert result.stderr == f"to watch: remy-farm watch {job_id}\n"


def test_submit_only_to_be_checked(run: Any, run_json: RunJson, spec_file: Path) -> None:
    result = run("submit", spec_file, "--name", "never-stored", "--validate-only")
    assert (result.exit_code, result.stdout) == (0, "the coordinator would accept 1 job\n")
    tree = run_json("submit", spec_file, "--name", "never-stored", "--validate-only")
    assert (tree["id"], tree["name"]) == ("", "never-stored")
    assert run("status", "never-stored").exit_code == 6


def test_status_for_people(run: Any, finished: str) -> None:
    result = run("status", finished)
    lines = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert lines["job"].strip() == f"small ({finished})"
    assert lines["state"].strip().startswith("succeeded: the specification's number of epochs")
    assert {"owner", "progress", "score", "submitted", "started", "ended"} <= set(lines)


def test_an_ambiguous_name_is_refused_with_ids(
    run: Any, run_json: RunJson, spec_file: Path
) -> None:
    ids = [run_json("submit", spec_file, "--name", "twin")["id"] for _ in range(2)]
    result = run("status", "twin")
    assert result.exit_code == 2
    assert all(each in result.stderr for each in ids)


def test_pause_resume_cancel(run_json: RunJson, endless: str, until: Until) -> None:
    assert run_json("pause", endless)["state"] in ("pausing", "paused")
    paused = until(endless, lambda job: job["state"] == "paused")
    assert run_json("resume", endless)["state"] in ("pending", "scheduling", "running")
    until(endless, lambda job: job["progress"]["step"] > paused["progress"]["step"])
    assert run_json("cancel", endless)["state"] in ("cancelling", "cancelled")
    until(endless, lambda job: job["state"] == "cancelled")


def test_what_cannot_be_done_now_is_refused(run: Any, finished: str) -> None:
    result = run("pause", finished)
    assert result.exit_code == 6
    assert len(result.stderr.splitlines()) == 1
    assert "cannot be paused" in result.stderr


def test_an_extended_job_goes_on_under_its_id(
    run_json: RunJson, finished: str, until: Until
) -> None:
    steps = run_json("status", finished)["progress"]["step"]
    job = run_json("extend", finished, "--max-epochs", 4)
    assert (job["id"], job["spec"]["stop"]["epochs"]) == (finished, 4)
    job = until(finished, lambda job: job["state"] == "succeeded")
    assert job["progress"]["step"] > steps


def test_a_fork_begins_with_a_table_of_another(
    run_json: RunJson, finished: str, tmp_path: Path
) -> None:
    words = ("--epoch", 0, "--set", "objective.delta=3", "--set", "search.seed=9")
    job = run_json("fork", finished, *words, "--name", "forked", "--priority", 2)
    assert job["fork"] == {"job_id": finished, "epoch": 0}
    assert (job["name"], job["priority"]) == ("forked", 2)
    assert job["spec"]["objective"]["delta"] == 3
    assert job["spec"]["search"]["seed"] == 9


def test_a_fork_with_a_bad_setting_names_it(run: Any, finished: str) -> None:
    result = run("fork", finished, "--set", "objective.delta=-1")
    assert result.exit_code == 2
    assert "objective.delta" in result.stderr


def test_a_deleted_job_is_gone(run: Any, run_json: RunJson, finished: str) -> None:
    assert run_json("delete", finished, "--yes") == {"deleted": finished, "name": "small"}
    assert run("status", finished).exit_code == 6
    assert run("delete", finished, "--yes").exit_code == 6


def test_list_filters_and_pages(run: Any, run_json: RunJson, spec_file: Path) -> None:
    ids = [run_json("submit", spec_file, "--name", f"listed-{n}")["id"] for n in range(3)]
    found = run_json("list", "--name", "listed-", "--limit", 2)
    assert [job["id"] for job in found["jobs"]] == ids[:0:-1]
    assert found["has_more"] is True
    found = run_json("list", "--name", "listed-", "--all")
    assert [job["id"] for job in found["jobs"]] == ids[::-1]
    assert found["has_more"] is False
    assert all(job["spec"] is None for job in found["jobs"])
    assert run_json("list", "--name", "listed-", "--state", "failed")["jobs"] == []
    assert run_json("list", "--name", "listed-", "--owner", "nobody-of-that-name")["jobs"] == []
    result = run("list", "--name", "listed-", "--limit", 2)
    head, *rows = result.stdout.splitlines()
    assert head.split()[:4] == ["name", "id", "state", "owner"]
    assert [row.split()[:2] for row in rows] == [["listed-2", ids[2]], ["listed-1", ids[1]]]
    assert "--all" in result.stderr


def test_compare(run: Any, run_json: RunJson, spec_file: Path) -> None:
    one = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    spec_file.write_text(spec_file.read_text().replace("rtt_ms: 100", "rtt_ms: 120"))
    other = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    tree = run_json("compare", one, other)
    assert [job["id"] for job in tree["jobs"]] == [one, other]
    assert tree["differences"] == [{"path": "network.rtt_ms", "values": ["100", "120"]}]
    result = run("compare", one, other)
    assert result.stdout.splitlines()[-1].split() == ["network.rtt_ms", "100", "120"]
    assert run("compare", one).exit_code == 2


def test_fetch_an_epoch(run: Any, run_json: RunJson, finished: str, tmp_path: Path) -> None:
    out = tmp_path / "first.json"
    tree = run_json("fetch", finished, "--epoch", 0, "-o", out)
    assert (tree["file"], tree["epoch"]) == (str(out), 0)
    assert read_remycc(out).table.rule_count == tree["rules"]
    result = run("fetch", finished, "--epoch", 99, "-o", tmp_path / "none.json")
    assert result.exit_code == 6
    assert "99" in result.stderr
    assert not (tmp_path / "none.json").exists()


def test_a_job_moves_to_another_coordinator(
    run: Any, run_json: RunJson, endless: str, until: Until, tmp_path: Path
) -> None:
    run_json("pause", endless)
    paused = until(endless, lambda job: job["state"] == "paused")
    archive = tmp_path / "small.job"
    tree = run_json("export-job", endless, "-o", archive)
    assert tree == {"job": endless, "file": str(archive), "bytes": archive.stat().st_size}
    assert run("import-job", archive).exit_code == 6

    elsewhere = Coordinator(tmp_path / "elsewhere")
    elsewhere.start()
    try:
        there = ("--coordinator", elsewhere.address)
        job = run_json("import-job", archive, *there)
        assert (job["id"], job["state"]) == (endless, "paused")
        assert job["progress"]["step"] == paused["progress"]["step"]
        assert run_json("cancel", endless, *there)["state"] == "cancelled"
    finally:
        elsewhere.close()
    run_json("cancel", endless)


def test_what_is_no_archive_is_refused(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "no.job"
    path.write_text("not a job")
    result = run("import-job", path)
    assert result.exit_code == 2
    assert str(path) in result.stderr


def test_info(run: Any, run_json: RunJson, farm: Coordinator) -> None:
    tree = run_json("info")
    assert tree["store"]["kind"] == "sqlite"
    assert tree["evaluators"]["kind"] == "local"
    lines = run("info").stdout.splitlines()
    assert lines[0].endswith(f" at {farm.address}")
    assert json.dumps(tree)
