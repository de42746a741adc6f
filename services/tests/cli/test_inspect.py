"""Tests `remy-farm inspect` of absolute rules."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remy_farm.remycc import RemyCC, write_remycc
from remy_simulator import RuleTable

RunJson = Callable[..., dict[str, Any]]


def test_inspect_prints_region_and_action_of_every_rule(run: Any, remycc_file: Path) -> None:
    result = run("inspect", remycc_file)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == (
        "rule send_ewma rec_ewma rtt_ratio window multiple increment intersend ms "
        "settles at Mbit/s use".split()
    )
    assert lines[1].split() == "0 < 2 < 3 < 1.25 0.9 +4 1.5 40 8 -".split()
    assert lines[8].split() == "7 >= 2 >= 3 >= 1.25 0.9 +4 1.5 40 8 -".split()
    assert "8 rules" in result.stdout


def test_json_has_exact_bounds(run_json: RunJson, remycc_file: Path) -> None:
    output = run_json("inspect", remycc_file)
    assert output["signals"] == ["send_ewma", "rec_ewma", "rtt_ratio"]
    assert len(output["rules"]) == 8
    assert output["rules"][1] == {
        "rule": 1,
        "region": {
            "send_ewma": {"lower": 2.0, "upper": 163840.0},
            "rec_ewma": {"lower": 0.0, "upper": 3.0},
            "rtt_ratio": {"lower": 0.0, "upper": 1.25},
        },
        "window_multiple": 0.9,
        "window_increment": 4.0,
        "intersend_ms": 1.5,
        "settled_window_packets": pytest.approx(40),
        "pacing_rate_mbps": 8.0,
        "uses": None,
        "use_share": None,
    }


def test_spec_option_adds_the_use_of_every_rule(
    run_json: RunJson, remycc_file: Path, spec_file: Path
) -> None:
    rules = run_json("inspect", remycc_file, "--spec", spec_file, "--specimens", 4)["rules"]
    total = sum(rule["uses"] for rule in rules)
    assert total > 0
    assert [rule["use_share"] for rule in rules] == pytest.approx(
        [rule["uses"] / total for rule in rules]
    )


@pytest.mark.parametrize(("threshold", "is_beyond"), [(1 + 5e-7, True), (1.01, False)])
def test_share_of_look_ups_beyond_clock_resolution(
    run: Any,
    run_json: RunJson,
    spec_file: Path,
    tmp_path: Path,
    threshold: float,
    is_beyond: bool,
) -> None:
    # The first two rules are divided just above the minimum RTT, or by 1 % of it.
    table = RuleTable([2], [([], (0.9, 4.0, 1.5))]).split(0, [(2, threshold)]).split(1, [(2, 2.0)])
    path = tmp_path / "table.json"
    write_remycc(path, RemyCC(table))
    assert run_json("inspect", path)["share_beyond_clocks"] is None
    flags = ("inspect", path, "--spec", spec_file, "--specimens", 4)
    output = run_json(*flags)
    beyond = sum(rule["use_share"] for rule in output["rules"][:2]) if is_beyond else 0
    assert output["share_beyond_clocks"] == pytest.approx(beyond)
    assert (beyond > 0.1) == is_beyond
    assert ("which real clocks cannot measure" in run(*flags).output) == is_beyond


def test_rules_are_sorted_by_use(run: Any, remycc_file: Path, spec_file: Path) -> None:
    result = run("inspect", remycc_file, "--spec", spec_file, "--specimens", 4)
    shares = [float(line.removesuffix("%").split()[-1]) for line in result.stdout.splitlines()[1:9]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=0.5)
