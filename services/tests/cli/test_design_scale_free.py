"""A design of scale-free rules at the command line, from its specification to its report."""

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
    """The same with signals that a .dna file has something for."""
    path = tmp_path / "exportable.yaml"
    path.write_text(f"{SPEC}signals: [send_ratio, rtt_ratio, slow_rec_ratio]\n")
    return path


def test_it_has_no_dna_file_and_names_none(spec_file: Path, run_json: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"

    tree = run_json("design", spec_file, "--out", out, "--quiet")

    assert sorted(tree["files"]) == sorted(path.name for path in out.glob("[!.]*"))
    assert "remycc.json" in tree["files"]
    assert "remycc.dna" not in tree["files"]


def test_people_are_told_the_files_that_there_are(
    spec_file: Path, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    said = run("design", spec_file, "--out", out, "--quiet").stdout

    listed = said.rsplit(f"In {out}: ", 1)[1].strip().split(", ")
    assert sorted(listed) == sorted(path.name for path in out.glob("[!.]*"))


def test_stopped_and_resumed_it_is_the_same_design(
    spec_file: Path, run_json: Any, tmp_path: Path
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    run_json("design", spec_file, "--out", whole, "--quiet")

    assert run_json("design", spec_file, "--out", stopped, "--max-steps", 2)["reason"] == "steps"
    run_json("design", spec_file, "--out", stopped, "--resume", "--threads", 2)

    assert (stopped / "remycc.json").read_bytes() == (whole / "remycc.json").read_bytes()


def test_a_table_of_other_rules_is_begun_with_where_the_specification_has_them(
    spec_file: Path, remycc_file: Path, run: Run, tmp_path: Path
) -> None:
    words = ("design", spec_file, "--out", tmp_path / "out", "--from", remycc_file, "--quiet")
    refused = run(*words)
    assert refused.exit_code == 2
    assert (
        "the first table has absolute rules; the specification's `rules` must be the same, but are "
        "scale_free"
    ) in refused.stderr
    assert run(*words, "--set", "rules=absolute").exit_code == 0


def test_every_command_takes_its_table(
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
    assert "its rules are scale-free, which a .dna file cannot say" in refused.stderr
    assert "keep it as .json" in refused.stderr
    refused = run("export", "--dna", table, "--out", tmp_path / "table.dna")
    assert refused.exit_code == 2
    assert "it looks at age, which a .dna file cannot say" in refused.stderr
    assert "design it with slow_rec_ratio in place of age" in refused.stderr
    assert not (tmp_path / "table.dna").exists()


def test_its_export_is_a_dna_file_with_its_loss_told(
    exportable: Path, run: Run, run_json: Any, tmp_path: Path
) -> None:
    out, dna = tmp_path / "out", tmp_path / "table.dna"
    run_json("design", exportable, "--out", out, "--quiet")

    refused = run("convert", out / "remycc.json", dna)
    assert refused.exit_code == 2
    assert "remy-farm export --dna" in refused.stderr
    told = run_json("export", "--dna", out / "remycc.json", "--out", dna, "--specimens", 16)

    networks = ("--spec", exportable, "--specimens", 16)
    absolute = run_json("evaluate", "--remycc", dna, *networks)
    original = run_json("evaluate", "--remycc", out / "remycc.json", *networks)
    assert told["exported"]["score_mean"] == absolute["score_mean"]
    assert told["scale_free"]["score_mean"] == original["score_mean"]
    change = absolute["score_mean"] - original["score_mean"]
    assert told["score_difference_mean"] == pytest.approx(change)
    said = run("export", "--dna", out / "remycc.json", "--out", dna, "--specimens", 16).stdout
    told_change = re.search(r"The score changed by ([+-]\d\.\d+) ± ", said)
    assert told_change is not None
    assert float(told_change[1]) == pytest.approx(change, abs=0.006)


def test_an_export_needs_the_networks_that_its_table_is_for(
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
    assert "its rules are absolute already; convert writes them as .dna" in again.stderr
