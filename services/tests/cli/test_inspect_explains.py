"""Tests `remy-farm inspect` with --signals, --merge and --diff."""

import json
from pathlib import Path
from typing import Any

import pytest

from remy_cli import inspect
from remy_farm.analysis.explain import NetworkSample
from remy_farm.remycc import RemyCC, read_remycc, write_remycc
from remy_simulator import RuleTable

FEW = ("--specimens", 4)


@pytest.fixture
def other_file(tmp_path: Path, remycc_file: Path) -> Path:
    """The small RemyCC with a different action in rule 1."""
    path = tmp_path / "other.dna"
    remycc = read_remycc(remycc_file)
    write_remycc(path, RemyCC(remycc.table.with_action(1, (0.5, 2.0, 6.0))))
    return path


def test_rules_show_settled_window_and_rate(run: Any, remycc_file: Path, other_file: Path) -> None:
    first, second = run("inspect", other_file).stdout.splitlines()[1:3]
    assert first.split()[-3:] == ["40", "8", "-"]
    assert second.split()[-3:] == ["4", "2", "-"]


def test_signals_contribute_nothing_if_all_rules_are_equal(
    run_json: Any, remycc_file: Path, spec_file: Path
) -> None:
    output = run_json("inspect", remycc_file, "--spec", spec_file, *FEW, "--signals")
    assert (output["specimens"], output["seed"]) == (4, 1)
    worth = output["signal_worth"]
    evaluated = run_json("evaluate", "--remycc", remycc_file, "--spec", spec_file, *FEW)
    assert worth["score_mean"] == evaluated["score_mean"]
    assert worth["score_stderr"] == evaluated["score_stderr"]
    assert worth["signals"] == [
        {
            "signal": signal,
            "score_without_mean": evaluated["score_mean"],
            "score_without_stderr": evaluated["score_stderr"],
            "difference_mean": 0.0,
            "difference_stderr": 0.0,
        }
        for signal in ("send_ewma", "rec_ewma", "rtt_ratio")
    ]


def test_merge_out_writes_the_merged_rules(
    run_json: Any, remycc_file: Path, spec_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "merged.dna"
    arguments = ("inspect", remycc_file, "--spec", spec_file, *FEW, "--merge-out", out)
    merging = run_json(*arguments)["merging"]
    assert (merging["rules"], merging["rules_merged"]) == (8, 1)
    assert merging["written"] == str(out)
    assert merging["difference_mean"] == merging["fresh"]["difference_mean"] == 0
    assert merging["score_mean"] != merging["fresh"]["score_mean"]
    (merge,) = merging["merges"]
    assert merge["accepted"]
    assert merge["rules"] == 8
    assert merge["use_share"] == 1
    assert read_remycc(out).table == RuleTable([0, 1, 2], [([], (0.9, 4.0, 1.5))])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("merged.txt", "merged.txt is not the name of a RemyCC file; it must end in .dna or .json"),
        ("no/merged.dna", "no is not a directory"),
    ],
)
def test_unwritable_merge_out_is_refused_before_any_evaluation(
    name: str,
    message: str,
    run: Any,
    remycc_file: Path,
    spec_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trials: list[RuleTable] = []
    monkeypatch.setattr(NetworkSample, "trial", lambda _, table: trials.append(table))
    flags = ("--spec", spec_file, *FEW, "--merge-out", tmp_path / name)
    result = run("inspect", remycc_file, *flags)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not trials


def test_progress_is_printed_on_standard_error(
    run: Any, remycc_file: Path, spec_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "_SECONDS_BETWEEN_LINES", 0.0)
    arguments = ("--spec", spec_file, *FEW, "--signals", "--merge")
    result = run("inspect", remycc_file, *arguments, "--json")
    json.loads(result.stdout)
    assert result.stderr.splitlines() == [
        "signals: 0 of 3 evaluated",
        "signals: 1 of 3 evaluated",
        "signals: 2 of 3 evaluated",
        "merges, round 1: 0 of 1 evaluated",
        "merges, round 1, together: 0 of 1 evaluated",
    ]


def test_merge_without_merge_out_writes_nothing(
    run_json: Any, remycc_file: Path, spec_file: Path, tmp_path: Path
) -> None:
    before = set(tmp_path.iterdir())
    output = run_json("inspect", remycc_file, "--spec", spec_file, *FEW, "--merge")
    assert output["merging"]["written"] is None
    assert set(tmp_path.iterdir()) == before


def test_diff_reports_the_changed_rule(
    run_json: Any, remycc_file: Path, other_file: Path, spec_file: Path
) -> None:
    plain = run_json("inspect", remycc_file, "--diff", other_file)
    assert plain["same_regions"]
    assert (plain["regions"], plain["regions_changed"]) == (8, 1)
    assert plain["share_of_lookups_changed"] is None
    (change,) = plain["changes"]
    assert (change["before"]["rule"], change["after"]["rule"]) == (1, 1)
    assert change["before"]["window_increment"] == 4
    assert change["after"]["intersend_ms"] == 6
    assert change["region"]["send_ewma"] == {"lower": 2.0, "upper": 163840.0}

    arguments = ("--spec", spec_file, *FEW)
    measured = run_json("inspect", remycc_file, "--diff", other_file, *arguments)
    rules = run_json("inspect", remycc_file, *arguments)["rules"]
    assert measured["share_of_lookups_changed"] == rules[1]["use_share"]
    gain = measured["score_other_mean"] - measured["score_mean"]
    assert measured["difference_mean"] == pytest.approx(gain)


def test_text_output_has_the_results_of_json(
    run: Any, remycc_file: Path, other_file: Path, spec_file: Path
) -> None:
    arguments = ("--spec", spec_file, *FEW)
    both = run("inspect", remycc_file, *arguments, "--signals", "--merge")
    assert both.exit_code == 0
    assert "rtt_ratio" in both.stdout
    assert "8 rules, 1 after merging" in both.stdout
    assert both.stdout.count("paired by specimen") == 2
    difference = run("inspect", remycc_file, "--diff", other_file, *arguments)
    assert "0.9 -> 0.5" in difference.stdout
    assert "1 of 8 regions differ in action; the tables have the same regions." in difference.stdout


@pytest.mark.parametrize("flag", ["--signals", "--merge"])
def test_signals_and_merge_need_a_specification(run: Any, remycc_file: Path, flag: str) -> None:
    result = run("inspect", remycc_file, flag)
    assert result.exit_code == 2
    assert f"{flag} measures scores, which needs --spec" in result.stderr


def test_diff_excludes_signals(run: Any, remycc_file: Path, spec_file: Path) -> None:
    result = run("inspect", remycc_file, "--spec", spec_file, "--diff", remycc_file, "--signals")
    assert result.exit_code == 2
    assert "--diff" in result.stderr


def test_diff_of_tables_that_overlay_too_deeply_is_refused(run: Any, tmp_path: Path) -> None:
    # The overlay of the two tables is 80 levels deep, but the maximum is 64.
    deep = tmp_path / "deep.json"
    wide = tmp_path / "wide.json"
    write_remycc(deep, RemyCC(staircase(0, 40)))
    write_remycc(wide, RemyCC(staircase(1, 40)))
    result = run("inspect", deep, "--diff", wide)
    assert result.exit_code == 2
    assert str(deep) in result.stderr
    assert "64 levels" in result.stderr


def staircase(axis: int, steps: int) -> RuleTable:
    """Returns a table with `steps` splits of one axis, each one level deeper."""
    table = RuleTable([0, 1], [([], (1.0, 1.0, 1.0))])
    for step in range(1, steps + 1):
        table = table.split(table.rule_count - 1, [(axis, float(step))])
    return table
