"""Tests `remy-farm design`: its files, options, interruption and progress."""

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from library.tests.driver.joint_spec import JOINT_SPEC
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_spec
from tests.children import killed_with_parent
from tests.waiting import wait_until

RunJson = Callable[..., dict[str, Any]]

BIN = Path(sys.executable).parent
FILES = {
    "remycc.json",
    "remycc.dna",
    "progress.jsonl",
    "pareto.csv",
    "spec.yaml",
    "provenance.json",
    "checkpoint.bin",
    "report.html",
    "score.png",
    "throughput-delay.png",
}


@pytest.fixture
def endless_spec(spec_file: Path) -> Path:
    """A specification whose design runs until it is interrupted."""
    spec_file.write_text(spec_file.read_text().replace("epochs: 2", "epochs: 1000000"))
    return spec_file


@pytest.fixture
def joint_spec(tmp_path: Path) -> Path:
    """A specification of a joint search with a CPU-time budget."""
    path = tmp_path / "joint.yaml"
    path.write_text(JOINT_SPEC)
    return path


def visible_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def test_design_writes_its_files_and_prints_the_gain(
    run: Any, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run("design", spec_file, "--out", out, "--threads", 1)
    assert result.exit_code == 0, result.output
    assert visible_files(out) == FILES
    assert all(name in result.stdout for name in FILES)
    for row in ("score", "throughput / link rate", "delay / RTT", "loss"):
        assert any(line.startswith(row) for line in result.stdout.splitlines())
    assert "finished: the specification's number of epochs has passed" in result.stdout


def test_json_output_has_files_and_gain(run_json: RunJson, spec_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    output = run_json("design", spec_file, "--out", out, "--threads", 2)
    assert output["finished"] is True
    assert output["reason"] == "epochs"
    assert output["epochs"] == 2
    assert set(output["files"]) == FILES
    gain = output["gain"]
    assert gain["specimens"] == 8
    assert gain["score_gain_mean"] == pytest.approx(
        gain["final"]["score_mean"] - gain["first"]["score_mean"]
    )
    assert output["rules"] == read_remycc(out / "remycc.json").table.rule_count


def test_evaluate_reproduces_the_final_score(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    gain = run_json("design", spec_file, "--out", out)["gain"]
    flags = ("--specimens", gain["specimens"], "--seed", gain["seed"])
    again = run_json(
        "evaluate", "--remycc", out / "remycc.json", "--spec", out / "spec.yaml", *flags
    )
    assert again["score_mean"] == gain["final"]["score_mean"]
    assert again["score_stderr"] == gain["final"]["score_stderr"]


def test_resumed_design_has_the_same_result(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    uninterrupted, resumed = tmp_path / "uninterrupted", tmp_path / "resumed"
    run_json("design", spec_file, "--out", uninterrupted)
    first = run_json("design", spec_file, "--out", resumed, "--max-steps", 2)
    assert (first["reason"], first["steps"]) == ("steps", 2)
    second = run_json("design", spec_file, "--out", resumed, "--resume")
    assert second["reason"] == "epochs"
    for name in ("remycc.json", "remycc.dna"):
        assert (uninterrupted / name).read_bytes() == (resumed / name).read_bytes()


def test_seed_option_overrides_the_specification(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    output = run_json("design", spec_file, "--out", tmp_path / "out", "--seed", 77)
    assert output["seed"] == 77
    assert "seed: 77" in (tmp_path / "out" / "spec.yaml").read_text()


def test_steps_option_overrides_the_specification(
    run_json: RunJson, joint_spec: Path, tmp_path: Path
) -> None:
    output = run_json("design", joint_spec, "--out", tmp_path / "out", "--steps", 3)
    assert (output["reason"], output["epochs"]) == ("schedule_complete", 1)
    written_spec = load_spec(tmp_path / "out" / "spec.yaml").search.joint
    assert (written_spec.steps, written_spec.HasField("cpu_seconds")) == (3, False)


def test_steps_option_applies_to_pattern_search(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    text = spec_file.read_text()
    spec_file.write_text(text.replace("mode: paper", "mode: pattern").replace("stop:", "#"))
    out = tmp_path / "out"
    output = run_json("design", spec_file, "--out", out, "--steps", 3)
    assert (output["reason"], output["steps"]) == ("schedule_complete", 3)
    assert load_spec(out / "spec.yaml").search.pattern.steps == 3
    output = run_json("design", spec_file, "--out", out, "--steps", 5, "--resume")
    assert (output["reason"], output["steps"]) == ("schedule_complete", 5)


def test_too_many_steps_are_refused(run: Any, joint_spec: Path, tmp_path: Path) -> None:
    result = run("design", joint_spec, "--out", tmp_path / "out", "--steps", 10_000_001)
    assert result.exit_code == 2
    assert "search.joint.steps is 10000001, but must be" in result.stderr


def test_cpu_time_is_converted_to_steps(
    run_json: RunJson, joint_spec: Path, tmp_path: Path
) -> None:
    """The written specification has a number of steps, so it reproduces the result exactly."""
    first, again = tmp_path / "first", tmp_path / "again"
    output = run_json("design", joint_spec, "--out", first)
    assert output["reason"] == "schedule_complete"
    assert not load_spec(first / "spec.yaml").search.joint.HasField("cpu_seconds")
    run_json("design", first / "spec.yaml", "--out", again)
    for name in ("remycc.json", "spec.yaml"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    assert not (first / "remycc.dna").exists()


def test_default_edition_is_3_and_resume_keeps_the_edition(
    run_json: RunJson, joint_spec: Path, tmp_path: Path
) -> None:
    """A new design uses the newest edition; a resumed one keeps the edition it started with."""
    new, second = (tmp_path / name for name in ("new", "second"))
    run_json("design", joint_spec, "--out", new, "--steps", 3)
    run_json("design", joint_spec, "--out", second, "--set", "edition=2", "--steps", 3)
    for out, edition in ((new, 3), (second, 2)):
        output = run_json("design", joint_spec, "--out", out, "--steps", 4, "--resume")
        assert output["reason"] == "schedule_complete"
        assert load_spec(out / "spec.yaml").edition == edition


def test_max_cpu_seconds_stops_the_design(
    run_json: RunJson, endless_spec: Path, tmp_path: Path
) -> None:
    output = run_json("design", endless_spec, "--out", tmp_path / "out", "--max-cpu-seconds", 0.2)
    assert output["reason"] == "cpu_seconds"
    assert output["cpu_seconds"] >= 0.2


def test_milestones_are_printed_without_a_terminal(
    run: Any, spec_file: Path, tmp_path: Path
) -> None:
    result = run("design", spec_file, "--out", tmp_path / "out")
    lines = result.stderr.splitlines()
    assert lines[0].startswith("epoch 0: ")
    assert lines[1].startswith("epoch 1: ")
    assert lines[2].startswith("finished after 2 epochs")
    assert "\x1b" not in result.stderr


def test_quiet_prints_no_progress(run: Any, spec_file: Path, tmp_path: Path) -> None:
    result = run("design", spec_file, "--out", tmp_path / "out", "--quiet")
    assert result.exit_code == 0
    assert result.stderr == ""


def test_design_does_not_overwrite_another_design(
    run: Any, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run("design", spec_file, "--out", out, "--max-steps", 1).exit_code == 0
    before = {path: path.read_bytes() for path in out.iterdir()}
    again = run("design", spec_file, "--out", out)
    assert again.exit_code == 2
    assert str(out) in again.stderr
    assert "resume" in again.stderr
    assert {path: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize(
    "arguments", [("--seed", "5"), ()], ids=["another seed", "another network"]
)
def test_resume_with_another_specification_is_refused(
    arguments: tuple[str, ...], run: Any, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run("design", spec_file, "--out", out, "--max-steps", 1).exit_code == 0
    before = {path: path.read_bytes() for path in out.iterdir()}
    if not arguments:
        spec_file.write_text(spec_file.read_text().replace("rtt_ms: 100", "rtt_ms: 150"))
    result = run("design", spec_file, "--out", out, "--resume", *arguments)
    assert result.exit_code == 2
    assert "checkpoint" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_corrupt_checkpoint_is_refused(run: Any, spec_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("design", spec_file, "--out", out, "--max-steps", 1).exit_code == 0
    checkpoint = out / "checkpoint.bin"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-3])
    result = run("design", spec_file, "--out", out, "--resume")
    assert result.exit_code == 2
    assert str(checkpoint) in result.stderr
    assert len(result.stderr.splitlines()) == 1


def interrupt_after_first_step(process: "subprocess.Popen[str]", out: Path) -> None:
    """Sends SIGINT once the first step is in progress.jsonl."""
    progress = out / "progress.jsonl"
    wait_until(
        lambda: process.poll() is not None or (progress.exists() and progress.stat().st_size)
    )
    process.send_signal(signal.SIGINT)


def test_ctrl_c_saves_a_checkpoint_and_prints_the_resume_command(
    endless_spec: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a folder"
    process = subprocess.Popen(
        killed_with_parent(
            BIN / "remy-farm", "design", endless_spec, "--out", out, "--threads", "1", "--quiet"
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    interrupt_after_first_step(process, out)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert stdout == ""
    command = shlex.split(stderr.splitlines()[-1])
    assert command == [
        *("remy-farm", "design", str(endless_spec), "--out", str(out), "--threads", "1"),
        *("--quiet", "--resume"),
    ]
    resumed = subprocess.run(
        [BIN / command[0], *command[1:], "--max-steps", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stderr
    assert visible_files(out) == FILES


def test_ctrl_c_with_json_prints_one_object(endless_spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        killed_with_parent(BIN / "remy-farm", "design", endless_spec, "--out", out, "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    interrupt_after_first_step(process, out)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    output = json.loads(stdout)
    assert output["finished"] is False
    assert output["gain"] is None
    assert all((out / name).exists() for name in output["files"])


def test_terminal_shows_the_progress(endless_spec: Path, tmp_path: Path) -> None:
    parent_fd, child_fd = pty.openpty()
    expected = {b"\x1b[", b"epoch ", b"step ", b"candidates", b"packets/s", b"CPU"}
    with open(parent_fd, "rb", buffering=0) as screen:  # noqa: PTH123 - a descriptor has no path
        process = subprocess.Popen(
            killed_with_parent(
                BIN / "remy-farm", "design", endless_spec, "--out", tmp_path / "out"
            ),
            stdout=subprocess.DEVNULL,
            stderr=child_fd,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(child_fd)
        output = b""
        interrupted = False
        try:
            while chunk := screen.read(4096):
                output += chunk
                # The time until the whole status is drawn depends on the machine, so the design
                # runs until then.
                if not interrupted and all(text in output for text in expected):
                    process.send_signal(signal.SIGINT)
                    interrupted = True
        except OSError:  # Linux reports a closed other end as an error.
            pass
        assert process.wait(timeout=120) == 130
    assert interrupted, output.decode()


def test_from_option_starts_with_the_table_of_another_design(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    run_json("design", spec_file, "--out", first)
    run_json("design", spec_file, "--out", second, "--seed", 9, "--from", first / "remycc.json")
    initial_table = read_remycc(second / "first.json").table
    assert initial_table == read_remycc(first / "remycc.json").table


def test_from_and_sweep_exclude_each_other(run: Any, spec_file: Path, tmp_path: Path) -> None:
    flags = ("--sweep", "objective.delta=1,2", "--from", tmp_path / "none.json")
    result = run("design", spec_file, "--out", tmp_path / "out", *flags)
    assert result.exit_code == 2
    assert "--from and --sweep exclude each other" in result.stderr


def test_set_option_overrides_the_specification(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    changes = ("--set", "objective.delta=0.25", "--set", "network.rtt_ms.uniform=[50, 80]")
    run_json("design", spec_file, "--out", out, *changes)
    written_spec = load_spec(out / "spec.yaml")
    assert (written_spec.objective.delta, written_spec.network.rtt_ms.uniform.low) == (0.25, 50)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["--set", "objective.delta"], "--set is 'objective.delta', but must be PATH=VALUE"),
        (["--set", "objective.delt=1"], "'delt' is not a known key; did you mean delta?"),
        (["--set", "search.seed=1", "--seed", "2"], "--seed and --set of search.seed exclude"),
        (
            ["--set", "objective.delta=1", "--sweep", "objective.delta=1,2"],
            "--set and a sweep of objective.delta exclude each other",
        ),
    ],
)
def test_invalid_set_option_is_refused(
    run: Any, spec_file: Path, tmp_path: Path, changes: list[str], sentence: str
) -> None:
    result = run("design", spec_file, "--out", tmp_path / "out", *changes)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (tmp_path / "out").exists()
