"""Alerts fire in the tested cases only, and have a severity and a runbook."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks.programs import ROOT
from tests.headings import anchors
from tests.observability.programs import promtool
from tests.observability.queries import (
    RULES,
    Tree,
    recorded_series,
    rule_files,
    rule_groups,
    rules,
    series_in,
)

CASES = sorted((RULES / "tests").glob("*.yaml"))
ALERTS = [rule for rule in rules() if "alert" in rule]


def run(*arguments: object) -> None:
    done = subprocess.run(
        [promtool(), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_are_well_formed() -> None:
    run("check", "rules", *rule_files())


@pytest.mark.parametrize("group", rule_groups(), ids=lambda group: group["name"])
def test_rule_uses_only_series_recorded_earlier_in_its_group(group: Tree) -> None:
    """Groups are evaluated in any order, so that a series of another group may be outdated."""
    recorded: set[str] = set()
    for rule in group["rules"]:
        assert series_in(rule["expr"]) & recorded_series() <= recorded, rule
        recorded |= {rule["record"]} if "record" in rule else set()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_alerts_fire_and_stay_silent(path: Path) -> None:
    run("test", "rules", path)


def test_every_alert_has_cases_with_and_without_firing() -> None:
    fires: set[str] = set()
    silent: set[str] = set()
    for path in CASES:
        for case in yaml.safe_load(path.read_text())["tests"]:
            for check in case["alert_rule_test"]:
                (fires if check["exp_alerts"] else silent).add(check["alertname"])
    names = {rule["alert"] for rule in ALERTS}
    assert fires == names
    assert silent == names


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_alert_has_a_severity_and_a_runbook(rule: dict[str, dict[str, str]]) -> None:
    assert rule["labels"]["severity"] in {"page", "ticket", "info"}
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["description"].endswith(".")
    assert rule["annotations"]["description"] != rule["annotations"]["summary"]
    document, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert anchor in anchors(ROOT / document)
