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
    """A design that ends only when it is told to."""
    spec_file.write_text(spec_file.read_text().replace("epochs: 2", "epochs: 1000000"))
    return spec_file


@pytest.fixture
def joint_spec(tmp_path: Path) -> Path:
    """A joint search whose length is given as CPU time."""
    path = tmp_path / "joint.yaml"
    path.write_text(JOINT_SPEC)
    return path


def visible_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def test_leaves_its_files_and_says_what_it_gained(
    run: Any, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run("design", spec_file, "--out", out, "--threads", 1)
    assert result.exit_code == 0, result.output
    assert visible_files(out) == FILES
    assert all(name in result.stdout for name in FILES)
    for row in ("score", "throughput / link rate", "delay / RTT"):
        assert any(line.startswith(row) for line in result.stdout.splitlines())
    assert "finished: the specification's number of epochs has passed" in result.stdout


def test_json_is_one_object_that_names_files_and_gain(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    tree = run_json("design", spec_file, "--out", out, "--threads", 2)
    assert tree["finished"] is True
    assert tree["reason"] == "epochs"
    assert tree["epochs"] == 2
    assert set(tree["files"]) == FILES
    gain = tree["gain"]
    assert gain["specimens"] == 8
    assert gain["score_gain_mean"] == pytest.approx(
        gain["final"]["score_mean"] - gain["first"]["score_mean"]
    )
    assert tree["rules"] == read_remycc(out / "remycc.json").table.rule_count


def test_evaluate_makes_the_final_score_again(
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


def test_a_resumed_design_is_the_same_design(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    run_json("design", spec_file, "--out", straight)
    first = run_json("design", spec_file, "--out", resumed, "--max-steps", 2)
    assert (first["reason"], first["steps"]) == ("steps", 2)
    second = run_json("design", spec_file, "--out", resumed, "--resume")
    assert second["reason"] == "epochs"
    for name in ("remycc.json", "remycc.dna"):
        assert (straight / name).read_bytes() == (resumed / name).read_bytes()


def test_the_seed_takes_the_place_of_the_specifications(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    tree = run_json("design", spec_file, "--out", tmp_path / "out", "--seed", 77)
    assert tree["seed"] == 77
    assert "seed: 77" in (tmp_path / "out" / "spec.yaml").read_text()


def test_the_steps_take_the_place_of_the_specifications(
    run_json: RunJson, joint_spec: Path, tmp_path: Path
) -> None:
    tree = run_json("design", joint_spec, "--out", tmp_path / "out", "--steps", 3)
    assert (tree["reason"], tree["epochs"]) == ("schedule_complete", 1)
    kept = load_spec(tmp_path / "out" / "spec.yaml").search.joint
    assert (kept.steps, kept.HasField("cpu_seconds")) == (3, False)


def test_steps_are_those_of_a_pattern_search_too(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    text = spec_file.read_text()
    spec_file.write_text(text.replace("mode: paper", "mode: pattern").replace("stop:", "#"))
    out = tmp_path / "out"
    tree = run_json("design", spec_file, "--out", out, "--steps", 3)
    assert (tree["reason"], tree["steps"]) == ("schedule_complete", 3)
    assert load_spec(out / "spec.yaml").search.pattern.steps == 3
    tree = run_json("design", spec_file, "--out", out, "--steps", 5, "--resume")
    assert (tree["reason"], tree["steps"]) == ("schedule_complete", 5)


def test_too_many_steps_are_refused(run: Any, joint_spec: Path, tmp_path: Path) -> None:
    result = run("design", joint_spec, "--out", tmp_path / "out", "--steps", 10_000_001)
    assert result.exit_code == 2
    assert "search.joint.steps is 10000001, but must be" in result.stderr


def test_cpu_time_is_turned_into_steps_once(
    run_json: RunJson, joint_spec: Path, tmp_path: Path
) -> None:
    """The specification beside the result makes the result again, without a clock."""
    first, again = tmp_path / "first", tmp_path / "again"
    tree = run_json("design", joint_spec, "--out", first)
    assert tree["reason"] == "schedule_complete"
    assert not load_spec(first / "spec.yaml").search.joint.HasField("cpu_seconds")
    run_json("design", first / "spec.yaml", "--out", again)
    for name in ("remycc.json", "spec.yaml"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    assert not (first / "remycc.dna").exists()


def test_a_specification_without_an_edition_is_of_the_third_and_goes_on_as_it_began(
    run_json: RunJson, joint_spec: Path, tmp_path: Path
) -> None:
    """With the same file a new design is of the newest edition, and those of others go on."""
    new, second = (tmp_path / name for name in ("new", "second"))
    run_json("design", joint_spec, "--out", new, "--steps", 3)
    run_json("design", joint_spec, "--out", second, "--set", "edition=2", "--steps", 3)
    for out, edition in ((new, 3), (second, 2)):
        tree = run_json("design", joint_spec, "--out", out, "--steps", 4, "--resume")
        assert tree["reason"] == "schedule_complete"
        assert load_spec(out / "spec.yaml").edition == edition


def test_cpu_time_is_a_budget(run_json: RunJson, endless_spec: Path, tmp_path: Path) -> None:
    tree = run_json("design", endless_spec, "--out", tmp_path / "out", "--max-cpu-seconds", 0.2)
    assert tree["reason"] == "cpu_seconds"
    assert tree["cpu_seconds"] >= 0.2


def test_milestones_are_lines_where_there_is_no_terminal(
    run: Any, spec_file: Path, tmp_path: Path
) -> None:
    result = run("design", spec_file, "--out", tmp_path / "out")
    lines = result.stderr.splitlines()
    assert lines[0].startswith("epoch 0: ")
    assert lines[1].startswith("epoch 1: ")
    assert lines[2].startswith("finished after 2 epochs")
    assert "\x1b" not in result.stderr


def test_quiet_is_silent(run: Any, spec_file: Path, tmp_path: Path) -> None:
    result = run("design", spec_file, "--out", tmp_path / "out", "--quiet")
    assert result.exit_code == 0
    assert result.stderr == ""


def test_a_second_design_does_not_overwrite_the_first(
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


@pytest.mark.parametrize("words", [("--seed", "5"), ()], ids=["another seed", "another network"])
def test_a_checkpoint_of_another_specification_is_refused(
    words: tuple[str, ...], run: Any, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run("design", spec_file, "--out", out, "--max-steps", 1).exit_code == 0
    before = {path: path.read_bytes() for path in out.iterdir()}
    if not words:
        spec_file.write_text(spec_file.read_text().replace("rtt_ms: 100", "rtt_ms: 150"))
    result = run("design", spec_file, "--out", out, "--resume", *words)
    assert result.exit_code == 2
    assert "checkpoint" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_a_damaged_checkpoint_is_refused(run: Any, spec_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("design", spec_file, "--out", out, "--max-steps", 1).exit_code == 0
    checkpoint = out / "checkpoint.bin"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-3])
    result = run("design", spec_file, "--out", out, "--resume")
    assert result.exit_code == 2
    assert str(checkpoint) in result.stderr
    assert len(result.stderr.splitlines()) == 1


def interrupt_when_under_way(process: "subprocess.Popen[str]", out: Path) -> None:
    """Presses Ctrl-C once the first step is on record."""
    progress = out / "progress.jsonl"
    wait_until(
        lambda: process.poll() is not None or (progress.exists() and progress.stat().st_size)
    )
    process.send_signal(signal.SIGINT)


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(
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
    interrupt_when_under_way(process, out)
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


def test_ctrl_c_with_json_still_prints_one_object(endless_spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        killed_with_parent(BIN / "remy-farm", "design", endless_spec, "--out", out, "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    interrupt_when_under_way(process, out)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    tree = json.loads(stdout)
    assert tree["finished"] is False
    assert tree["gain"] is None
    assert all((out / name).exists() for name in tree["files"])


def test_a_terminal_shows_where_the_design_stands(endless_spec: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    wanted = {b"\x1b[", b"epoch ", b"step ", b"candidates", b"packets/s", b"CPU"}
    with open(ours, "rb", buffering=0) as screen:  # noqa: PTH123 - a descriptor has no path
        process = subprocess.Popen(
            killed_with_parent(
                BIN / "remy-farm", "design", endless_spec, "--out", tmp_path / "out"
            ),
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(theirs)
        shown = b""
        told = False
        try:
            while chunk := screen.read(4096):
                shown += chunk
                # How soon the status is first drawn depends on the machine, so the design goes on
                # for as long as that takes.
                if not told and all(word in shown for word in wanted):
                    process.send_signal(signal.SIGINT)
                    told = True
        except OSError:  # How Linux reports that the other end was closed.
            pass
        assert process.wait(timeout=120) == 130
    assert told, shown.decode()


def test_a_design_may_begin_with_the_table_of_another(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    run_json("design", spec_file, "--out", first)
    run_json("design", spec_file, "--out", second, "--seed", 9, "--from", first / "remycc.json")
    begun = read_remycc(second / "first.json").table
    assert begun == read_remycc(first / "remycc.json").table


def test_a_sweep_does_not_begin_with_the_table_of_another(
    run: Any, spec_file: Path, tmp_path: Path
) -> None:
    flags = ("--sweep", "objective.delta=1,2", "--from", tmp_path / "none.json")
    result = run("design", spec_file, "--out", tmp_path / "out", *flags)
    assert result.exit_code == 2
    assert "--from and --sweep exclude each other" in result.stderr


def test_a_setting_takes_the_place_of_the_specifications(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    changes = ("--set", "objective.delta=0.25", "--set", "network.rtt_ms.uniform=[50, 80]")
    run_json("design", spec_file, "--out", out, *changes)
    kept = load_spec(out / "spec.yaml")
    assert (kept.objective.delta, kept.network.rtt_ms.uniform.low) == (0.25, 50)


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
def test_a_setting_that_cannot_be_is_refused(
    run: Any, spec_file: Path, tmp_path: Path, changes: list[str], sentence: str
) -> None:
    result = run("design", spec_file, "--out", tmp_path / "out", *changes)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (tmp_path / "out").exists()
