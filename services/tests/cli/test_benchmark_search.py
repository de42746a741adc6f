"""Tests `remy-farm benchmark-search`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from library.tests.remycc.tables import REFERENCE, needs_reference
from remy_farm.remycc import read_remycc

RunJson = Callable[..., dict[str, Any]]
SHORT = (
    *("--steps", 2, "--set", "search.joint.steps_per_epoch=1", "--set"),
    *("search.joint.validation_specimens=4", "--set", "search.simulated_seconds=1"),
    *("--specimens", 4, "--threads", 2),
)


def test_benchmark_scores_a_remycc_file(run_json: RunJson, run: Any, remycc_file: Path) -> None:
    flags = ("benchmark-search", "--remycc", remycc_file, "--specimens", 8)
    output = run_json(*flags, "--threads", 1)
    assert (output["specimens"], output["simulated_seconds"], output["delta"]) == (8, 100, 1)
    (table,) = output["tables"]
    assert table["file"] == str(remycc_file)
    assert table["rules"] == 8
    assert table["mean_stderr"] > 0
    assert sum(group["specimens"] for group in table["groups"]) == 8
    assert run_json(*flags, "--threads", 3) == output
    assert run_json(*flags, "--delta", 10)["tables"][0]["mean"] < table["mean"]
    text = run(*flags).stdout
    assert remycc_file.name in text
    assert "n=10-16" in text


def test_searches_write_curves_and_tables(run: Any, run_json: RunJson, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("benchmark-search", "--seeds", "1-2", *SHORT, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert {path.name for path in out.iterdir()} == {
        *("curve.csv", "curve.png", "summary.json", "seed-1", "seed-2"),
        *("seed-1.json", "seed-2.json"),
    }
    assert "-0.43" in result.stdout
    output = json.loads((out / "summary.json").read_text())
    assert [search["seed"] for search in output["searches"]] == [1, 2]
    assert [each["score"] for each in output["searches"][0]["first_passed"]] == [
        *(-0.43, -0.3, -0.25, -0.22)
    ]
    # The last point of the curve has the score of the final table.
    (table,) = run_json("benchmark-search", "--remycc", out / "seed-2.json", "--specimens", 4)[
        "tables"
    ]
    assert table["mean"] == output["searches"][1]["mean"]
    assert read_remycc(out / "seed-2" / "remycc.json") == read_remycc(out / "seed-2.json")


@pytest.mark.parametrize(
    ("setting", "edition", "signals"),
    [
        ("edition=2", 2, "[send_ratio, rtt_ratio, slow_rec_ratio]"),
        ("rules=absolute", 3, "[send_ewma, rec_ewma, rtt_ratio]"),
        ("signals=[rtt_ratio]", 3, "[rtt_ratio]"),
    ],
)
def test_set_option_selects_rules_signals_and_edition(
    setting: str, edition: int, signals: str, run: Any, tmp_path: Path
) -> None:
    result = run("benchmark-search", "--seeds", 1, "--set", setting, *SHORT, "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    lines = (tmp_path / "seed-1" / "spec.yaml").read_text().splitlines()
    rules = "absolute" if "ewma" in signals else "scale_free"
    assert {f"edition: {edition}", f"signals: {signals}", f"rules: {rules}"} <= {*lines}
    assert (tmp_path / "seed-1.dna").exists() == (rules == "absolute")


@pytest.mark.parametrize(
    ("length", "reason"), [(("--steps", 2), "schedule"), (("--cpu-seconds", 1e-6), "CPU")]
)
def test_length_options_apply_to_pattern_search(
    length: tuple[object, ...], reason: str, run: Any, tmp_path: Path
) -> None:
    arguments = ("--set", "search.mode=pattern", "--set", "search.pattern.validation_specimens=4")
    flags = ("--set", "search.simulated_seconds=1", "--specimens", 4, "--threads", 1)
    result = run("benchmark-search", "--seeds", "1", *arguments, *flags, *length, "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    events = (tmp_path / "seed-1" / "progress.jsonl").read_text()
    assert reason.lower() in events.splitlines()[-1].lower()


def test_benchmark_does_not_overwrite_a_search(run: Any, tmp_path: Path) -> None:
    arguments = ("benchmark-search", "--seeds", "7", *SHORT, "--out", tmp_path)
    assert run(*arguments).exit_code == 0
    again = run(*arguments)
    assert again.exit_code == 2
    assert "seed-7 already holds a design" in again.stderr


@needs_reference
def test_measured_published_scores_replace_quoted_ones(
    run_json: RunJson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMY_REFERENCE_DIR", str(REFERENCE.parent))
    arguments = ("--published", "--seeds", "1", *SHORT, "--delta", 0.1, "--out", tmp_path)
    output = run_json("benchmark-search", *arguments)
    best = max(table["mean"] for table in output["tables"])
    assert [each["score"] for each in output["searches"][0]["first_passed"]] == [best]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "one of --remycc, --published and --seeds is needed"),
        (("--seeds", "1"), "--seeds needs --out"),
        (("--remycc", "x", "--out", "y"), "--out needs --seeds"),
        (("--seeds", "3-1", "--out", "y"), "'3-1' is not a range of 1 to 1000 seeds"),
        (("--seeds", "1,1", "--out", "y"), "has duplicate seeds"),
        (("--seeds", "a", "--out", "y"), "'a' is not a list of seeds such as 1-5 or 1,3,8"),
        (
            ("--seeds", "1", "--out", "y", "--steps", "1", "--cpu-seconds", "1"),
            "--steps and --cpu-seconds exclude each other",
        ),
        (
            ("--seeds", "1", "--out", "y", "--set", "network.rtt_ms=1"),
            "must be PATH=VALUE with a path that begins with search, signals, rules or edition",
        ),
        (
            ("--seeds", "1", "--out", "y", "--set", "search.joint.step=1"),
            "search.joint.step cannot be set to 1: 'step' is not a known key; did you mean steps?",
        ),
    ],
)
def test_invalid_arguments_are_refused(arguments: tuple[str, ...], message: str, run: Any) -> None:
    result = run("benchmark-search", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_published_option_needs_the_reference_directory(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REMY_REFERENCE_DIR", str(tmp_path))
    result = run("benchmark-search", "--published")
    assert result.exit_code == 2
    assert "REMY_REFERENCE_DIR is " in result.stderr
