"""Tests `remy-farm design --sweep`."""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.children import killed_with_parent
from tests.waiting import wait_until

RunJson = Callable[..., dict[str, Any]]
BIN = Path(sys.executable).parent
SWEEPS = (
    "--sweep",
    "objective.delta=0.1,1",
    "--sweep",
    "signals=[send_ewma,rtt_ratio],[rtt_ratio]",
)
NAMES = [
    f"delta={delta},signals={signals}"
    for delta in ("0.1", "1")
    for signals in ("send_ewma+rtt_ratio", "rtt_ratio")
]
FAST = ("--max-steps", 2, "--threads", 1)


def contents(folder: Path) -> dict[str, bytes]:
    """Returns a design's files, without those that depend on the clock."""
    names = ("remycc.json", "remycc.dna", "spec.yaml", "provenance.json", "pareto.csv")
    return {name: (folder / name).read_bytes() for name in names}


def test_sweep_designs_and_compares_its_members(run: Any, spec_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("design", spec_file, "--out", out, *SWEEPS, *FAST)
    assert result.exit_code == 0, result.stderr
    files = {"campaign.json", "campaign.html", "campaign.png"}
    assert {path.name for path in out.iterdir()} == {*NAMES, *files}
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[:2] for row in rows[1:5]] == [[str(n), name] for n, name in enumerate(NAMES, 1)]
    members = json.loads((out / "campaign.json").read_text())["members"]
    assert [member["name"] for member in members] == NAMES
    assert members[1]["settings"] == {"objective.delta": 0.1, "signals": ["rtt_ratio"]}
    assert members[0]["comparison"]["normalized_score"]["count"] > 1
    page = (out / "campaign.html").read_text()
    assert all(name in page for name in NAMES)


def test_member_equals_a_single_design(run: Any, spec_file: Path, tmp_path: Path) -> None:
    out, single = tmp_path / "out", tmp_path / "single"
    assert run("design", spec_file, "--out", out, *SWEEPS, *FAST).exit_code == 0
    text = spec_file.read_text() + "objective: {delta: 0.1}\nsignals: [rtt_ratio]\n"
    spec_file.write_text(text)
    assert run("design", spec_file, "--out", single, *FAST).exit_code == 0
    assert contents(out / NAMES[1]) == contents(single)


def test_resume_skips_finished_members_and_adds_new_ones(
    run: Any, run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    sweep = ("--sweep", "search.seed=1")
    assert run("design", spec_file, "--out", out, *sweep, *FAST).exit_code == 0
    before = (out / "seed=1" / "report.html").stat().st_mtime_ns

    refused = run("design", spec_file, "--out", out, *sweep, *FAST)
    assert refused.exit_code == 2
    assert "already holds a campaign; resume it" in refused.stderr
    grown = ("design", spec_file, "--out", out, "--sweep", "search.seed=2,1", *FAST, "--resume")
    output = run_json(*grown, "--quiet")

    assert [member["name"] for member in output["members"]] == ["seed=2", "seed=1"]
    assert (out / "seed=1" / "report.html").stat().st_mtime_ns == before
    assert "seed=1, 2 of 2 designs: already finished" in run(*grown).stderr


def test_larger_budget_continues_finished_members(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    arguments = ("design", spec_file, "--out", tmp_path / "out", "--sweep", "search.seed=1")
    assert run_json(*arguments, *FAST)["members"][0]["steps"] == 2
    assert run_json(*arguments, "--max-steps", 4, "--resume")["members"][0]["steps"] == 4


def test_ctrl_c_prints_the_resume_command(spec_file: Path, tmp_path: Path) -> None:
    spec_file.write_text(spec_file.read_text().replace("epochs: 2", "epochs: 1000000"))
    out = tmp_path / "out"
    arguments = [
        *("design", str(spec_file), "--out", str(out), "--threads", "1", "--quiet"),
        *("--sweep", "search.seed=1,2", "--sweep", "signals=[rtt_ratio]"),
    ]
    process = subprocess.Popen(
        killed_with_parent(BIN / "remy-farm", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    progress = out / "seed=1,signals=rtt_ratio" / "progress.jsonl"
    wait_until(
        lambda: process.poll() is not None or (progress.exists() and progress.stat().st_size)
    )
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert stdout == ""
    again = shlex.split(stderr.splitlines()[-1])
    assert sorted(again) == sorted(["remy-farm", *arguments, "--resume"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sweep", "objective.delta=1,-1"), "with delta=-1: objective.delta is -1, but must be"),
        (("--sweep", "objective.dleta=1"), "objective.dleta cannot be set to 1: "),
        (("--sweep", "objective.delta"), "must be PATH=VALUE,VALUE,..."),
        (
            ("--sweep", "search.seed=1,2", "--seed", "3"),
            "--seed and a sweep of search.seed exclude each other",
        ),
    ],
)
def test_invalid_sweep_is_refused_before_any_design(
    arguments: tuple[str, ...], message: str, run: Any, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run("design", spec_file, "--out", out, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not out.exists()
