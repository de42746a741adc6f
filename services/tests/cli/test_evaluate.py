"""Tests `remy-farm evaluate`."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


RunJson = Callable[..., dict[str, Any]]


def evaluate(run_json: RunJson, remycc: Path, spec: Path, *arguments: object) -> dict[str, Any]:
    flags = ("--remycc", remycc, "--spec", spec, "--specimens", 12, "--seed", 5)
    output = run_json("evaluate", *flags, *arguments)
    del output["cpu_seconds"]
    return output


def test_json_has_the_documented_keys(
    run_json: RunJson, remycc_file: Path, spec_file: Path
) -> None:
    output = evaluate(run_json, remycc_file, spec_file)
    assert {"score_mean", "score_stderr", "specimens", "digest"} <= set(output)
    assert output["specimens"] == 12
    assert math.isfinite(output["score_mean"])
    assert output["score_stderr"] > 0


def test_scores_do_not_depend_on_threads(
    run_json: RunJson, remycc_file: Path, spec_file: Path
) -> None:
    one, two, seven = (
        evaluate(run_json, remycc_file, spec_file, "--threads", threads) for threads in (1, 2, 7)
    )
    assert one == two == seven


def test_groups_by_number_of_senders_add_up_to_the_total(
    run_json: RunJson, remycc_file: Path, spec_file: Path
) -> None:
    output = evaluate(run_json, remycc_file, spec_file)
    groups = output["by_senders"]
    assert [group["senders"] for group in groups] == [1, 2]
    assert sum(group["specimens"] for group in groups) == 12
    scored = [group["specimens"] - group["specimens_left_out"] for group in groups]
    total = sum(weight * group["score_mean"] for weight, group in zip(scored, groups, strict=True))
    assert output["score_mean"] == pytest.approx(total / sum(scored))


def test_one_specimen_has_no_standard_error(
    run_json: RunJson, remycc_file: Path, spec_file: Path
) -> None:
    output = evaluate(run_json, remycc_file, spec_file, "--specimens", 1)
    assert output["score_stderr"] is None


def test_text_output_has_the_score_with_its_error_and_the_medians(
    run: Any, remycc_file: Path, spec_file: Path
) -> None:
    flags = ("--remycc", remycc_file, "--spec", spec_file, "--specimens", 12, "--seed", 5)
    result = run("evaluate", *flags)
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[0] for row in rows[:4]] == ["senders", "1", "2", "all"]
    assert "\N{PLUS-MINUS SIGN}" in result.stdout
    assert "throughput / link rate" in result.stdout


def test_tables_designed_together_are_scored_together(run_json: RunJson, remycc_file: Path) -> None:
    flags = ("--spec", ROOT / "examples" / "diversity.yaml", "--specimens", 11)
    other = ROOT / "data" / "remyccs" / "one-x" / "rules.json"
    one_way, other_way = (
        run_json("evaluate", "--remycc", first, "--remycc", second, *flags)
        for first, second in ((remycc_file, other), (other, remycc_file))
    )
    assert math.isfinite(one_way["score_mean"])
    assert one_way["digest"] != other_way["digest"]


def test_number_of_tables_must_be_that_of_the_specification(
    run: Callable[..., Any], remycc_file: Path
) -> None:
    spec = ROOT / "examples" / "diversity.yaml"
    for given in (1, 3):
        flags = ("--spec", spec, "--specimens", 11)
        result = run("evaluate", *(f"--remycc={remycc_file}" for _ in range(given)), *flags)
        assert result.exit_code == 2
        assert "(throughput, delay)" in result.stderr
