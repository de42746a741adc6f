"""Tests `remy-farm inspect` of scale-free rules, in their relative units."""

from pathlib import Path
from typing import Any

import pytest

from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.remycc import RemyCC, read_remycc, write_remycc
from remy_simulator import RuleTable

FEW = ("--specimens", 4)


@pytest.fixture
def scale_free_file(tmp_path: Path) -> Path:
    path = tmp_path / "six.json"
    write_remycc(path, RemyCC(six_scale_free_rules()))
    return path


def test_text_output_has_relative_units(run: Any, scale_free_file: Path) -> None:
    head, start, *_, last = run("inspect", scale_free_file).stdout.splitlines()[:7]
    assert head.split() == (
        "rule send_ratio rtt_ratio slow_rec_ratio window multiple increment interval "
        "settles at paced at use".split()
    )
    assert start.split() == (
        "0 any < 0.5 any 0 +30 packets 0.01875 ms 30 packets 640 Mbit/s -".split()
    )
    assert last.split() == ("5 any >= 0.5 age >= 40 ACKs 0.7 +33 % 0.9 x 110 % 1.111 x -".split())


def test_json_keys_have_the_units(run_json: Any, scale_free_file: Path) -> None:
    rules = run_json("inspect", scale_free_file)["rules"]
    assert {key: rules[0][key] for key in ("window_increment", "intersend_ms")} == {
        "window_increment": 30,
        "intersend_ms": 0.01875,
    }
    assert rules[0]["pacing_rate_mbps"] == 640
    del rules[5]["region"]
    assert rules[5] == {
        "rule": 5,
        "window_multiple": 0.7,
        "window_increment_percent": pytest.approx(33),
        "intersend_ratio": pytest.approx(0.9),
        "settled_window_percent": pytest.approx(110),
        "pacing_rate_ratio": pytest.approx(1 / 0.9),
        "uses": None,
        "use_share": None,
    }


def test_differences_signals_and_merges_have_relative_units(
    run: Any, run_json: Any, scale_free_file: Path, spec_file: Path, tmp_path: Path
) -> None:
    other, merged = tmp_path / "other.json", tmp_path / "merged.json"
    table = read_remycc(scale_free_file).table
    write_remycc(other, RemyCC(table.with_action(5, (0.7, 33.0, 1.25))))
    difference = run("inspect", scale_free_file, "--diff", other).stdout
    assert "0.9 x -> 1.25 x" in difference
    assert "1 of 6 regions differ in action" in difference
    (change,) = run_json("inspect", scale_free_file, "--diff", other)["changes"]
    assert change["after"]["pacing_rate_ratio"] == 0.8

    arguments = ("--spec", spec_file, *FEW)
    output = run_json("inspect", scale_free_file, *arguments, "--signals", "--merge-out", merged)
    assert sorted(each["signal"] for each in output["signal_worth"]["signals"]) == [
        "rtt_ratio",
        "send_ratio",
        "slow_rec_ratio",
    ]
    assert all("intersend_ratio" in merge for merge in output["merging"]["merges"])
    assert read_remycc(merged).table.rules == table.rules
    assert "interval" in run("inspect", scale_free_file, *arguments, "--merge").stdout


def test_diff_of_absolute_and_scale_free_rules_is_refused(
    run: Any, scale_free_file: Path, remycc_file: Path
) -> None:
    result = run("inspect", scale_free_file, "--diff", remycc_file)
    assert result.exit_code == 2
    assert "one has absolute rules and one has scale-free rules" in result.stderr


def test_extended_signals_have_their_units(run: Any, tmp_path: Path) -> None:
    bounds = [(4, 3.0), (5, 0.02), (6, 0.015), (7, 0.25), (8, 0.9)]
    for rules, cells in (
        (1, ["< 3 ms", "< 0.02 ms", "< 1.5 %", "< 0.25 packets", "< 90 %"]),
        (2, ["< 3 packets", "< 2 %", "< 1.5 %", "< 25 %", "< 90 %"]),
    ):
        nodes = [([bound], (0.0, 0.0, 0.0)) for bound in bounds]
        rule: tuple[list[tuple[int, float]], tuple[float, float, float]] = ([], (0.5, 1.0, 1.0))
        table = RuleTable([2, *(axis for axis, _ in bounds)], [*nodes, *[rule] * 6], rules=rules)
        write_remycc(tmp_path / "signals.json", RemyCC(table))
        _, first, *_ = run("inspect", tmp_path / "signals.json").stdout.splitlines()
        assert " ".join(first.split()).startswith(" ".join(["0 any", *cells]))
