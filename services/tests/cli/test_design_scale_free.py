"""Tests designs of scale-free rules on the command line."""

import re
from pathlib import Path
from typing import Any

import pytest

from services.tests.cli.conftest import Run

SPEC = """\
name: scale-free
network:
  rate_mbps: {log_uniform: [2, 20]}
  rtt_ms: 100
  senders: 2
  traffic:
    exponential_time: {mean_ms: 500}
    mean_off_ms: 500
search:
  simulated_seconds: 2
  joint: {steps: 6, steps_per_epoch: 3, validation_specimens: 8}
"""


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "scale-free.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def exportable(tmp_path: Path) -> Path:
    """A specification whose signals a .dna file can express."""
    path = tmp_path / "exportable.yaml"
    path.write_text(f"{SPEC}signals: [send_ratio, rtt_ratio, slow_rec_ratio]\n")
    return path


def test_design_of_scale_free_rules_writes_no_dna_file(
    spec_file: Path, run_json: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    output = run_json("design", spec_file, "--out", out, "--quiet")

    assert sorted(output["files"]) == sorted(path.name for path in out.glob("[!.]*"))
    assert "remycc.json" in output["files"]
    assert "remycc.dna" not in output["files"]


def test_text_output_lists_the_written_files(spec_file: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"

    text = run("design", spec_file, "--out", out, "--quiet").stdout

    listed = text.rsplit(f"In {out}: ", 1)[1].strip().split(", ")
    assert sorted(listed) == sorted(path.name for path in out.glob("[!.]*"))


def test_resumed_design_has_the_same_result(spec_file: Path, run_json: Any, tmp_path: Path) -> None:
    uninterrupted, resumed = tmp_path / "uninterrupted", tmp_path / "resumed"
    run_json("design", spec_file, "--out", uninterrupted, "--quiet")

    assert run_json("design", spec_file, "--out", resumed, "--max-steps", 2)["reason"] == "steps"
    run_json("design", spec_file, "--out", resumed, "--resume", "--threads", 2)

    assert (resumed / "remycc.json").read_bytes() == (uninterrupted / "remycc.json").read_bytes()


def test_from_option_needs_a_table_with_the_specified_rules(
    spec_file: Path, remycc_file: Path, run: Run, tmp_path: Path
) -> None:
    arguments = ("design", spec_file, "--out", tmp_path / "out", "--from", remycc_file, "--quiet")
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert (
        "the first table has absolute rules; the specification's `rules` must be the same, but are "
        "scale_free"
    ) in refused.stderr
    assert run(*arguments, "--set", "rules=absolute").exit_code == 0


def test_every_command_accepts_a_scale_free_table(
    spec_file: Path, run: Run, run_json: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run_json("design", spec_file, "--out", out, "--quiet")
    table = out / "remycc.json"

    assert run_json("inspect", table)["rules"]
    scored = run_json("evaluate", "--remycc", table, "--spec", spec_file, "--specimens", 8)
    assert scored["specimens"] == 8
    network = ("--senders", 2, "--rate-mbps", 10, "--rtt-ms", 100)
    traffic = ("--on-ms", 500, "--off-ms", 500, "--seconds", 5)
    assert run_json("simulate", "--remycc", table, *network, *traffic)

    refused = run("convert", table, tmp_path / "table.dna")
    assert refused.exit_code == 2
    assert "its rules are scale-free, but a .dna file can hold only" in refused.stderr
    assert "keep it as .json" in refused.stderr
    refused = run("export", "--dna", table, "--out", tmp_path / "table.dna")
    assert refused.exit_code == 2
    assert "it uses the signal age, which a .dna file cannot hold" in refused.stderr
    assert "design it with slow_rec_ratio in place of age" in refused.stderr
    assert not (tmp_path / "table.dna").exists()


def test_export_writes_a_dna_file_and_reports_the_loss(
    exportable: Path, run: Run, run_json: Any, tmp_path: Path
) -> None:
    out, dna = tmp_path / "out", tmp_path / "table.dna"
    run_json("design", exportable, "--out", out, "--quiet")

    refused = run("convert", out / "remycc.json", dna)
    assert refused.exit_code == 2
    assert "remy-farm export --dna" in refused.stderr
    output = run_json("export", "--dna", out / "remycc.json", "--out", dna, "--specimens", 16)

    networks = ("--spec", exportable, "--specimens", 16)
    absolute = run_json("evaluate", "--remycc", dna, *networks)
    original = run_json("evaluate", "--remycc", out / "remycc.json", *networks)
    assert output["exported"]["score_mean"] == absolute["score_mean"]
    assert output["scale_free"]["score_mean"] == original["score_mean"]
    change = absolute["score_mean"] - original["score_mean"]
    assert output["score_difference_mean"] == pytest.approx(change)
    text = run("export", "--dna", out / "remycc.json", "--out", dna, "--specimens", 16).stdout
    printed_change = re.search(r"The score changed by ([+-]\d\.\d+) ± ", text)
    assert printed_change is not None
    assert float(printed_change[1]) == pytest.approx(change, abs=0.006)


def test_export_needs_a_specification(
    exportable: Path, run: Run, run_json: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run_json("design", exportable, "--out", out, "--quiet")
    table = (out / "remycc.json").rename(tmp_path / "alone.json")

    refused = run("export", "--dna", table, "--out", tmp_path / "table.dna")
    assert refused.exit_code == 2
    assert "--spec is needed" in refused.stderr
    named = ("--spec", exportable, "--specimens", 8)
    assert run("export", "--dna", table, "--out", tmp_path / "table.dna", *named).exit_code == 0
    again = run("export", "--dna", tmp_path / "table.dna", "--out", tmp_path / "b.dna", *named)
    assert again.exit_code == 2
    assert "its rules are already absolute; convert writes them as .dna" in again.stderr
