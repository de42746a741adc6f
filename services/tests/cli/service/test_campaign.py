"""Tests a sweep that is submitted as a campaign of jobs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunJson = Callable[..., dict[str, Any]]

SWEEP = ("--sweep", "objective.delta=0.1,1", "--sweep", "search.seed=1,2")

pytestmark = pytest.mark.usefixtures("farm")


def test_campaign_of_jobs_equals_a_local_campaign(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    submitted = run_json("submit", spec_file, *SWEEP, "--watch", "--quiet")
    local = run_json("design", spec_file, *SWEEP, "--out", tmp_path / "out", "--quiet")
    assert [job["state"] for job in submitted["jobs"]] == ["succeeded"] * 4
    for served, embedded in zip(submitted["members"], local["members"], strict=True):
        for key in ("settings", "spec_digest", "reason", "steps", "epochs", "rules", "comparison"):
            assert served[key] == embedded[key], key
    assert [member["name"] for member in submitted["members"]] == [
        "small_delta-0.1_seed-1",
        "small_delta-0.1_seed-2",
        "small_delta-1_seed-1",
        "small_delta-1_seed-2",
    ]


def test_campaign_can_be_watched_later_by_name(
    run: Any, run_json: RunJson, spec_file: Path
) -> None:
    campaign = run_json("submit", spec_file, *SWEEP)["campaign"]
    assert {job["campaign"] for job in run_json("list", "--campaign", campaign)["jobs"]} == {
        campaign
    }
    result = run("watch", "--campaign", campaign)
    assert result.exit_code == 0, result.stderr
    assert "small_delta-1_seed-2 has succeeded" in result.stderr
    rows = [line.split()[:2] for line in result.stdout.splitlines()]
    assert ["4", "small_delta-1_seed-2"] in rows
    assert "remy-farm fetch" in result.stdout


def test_unknown_campaign_is_refused(run: Any) -> None:
    result = run("watch", "--campaign", "nothing")
    assert result.exit_code == 6
    assert "there is no campaign 'nothing'" in result.stderr


def test_cancelled_member_fails_the_watch(run: Any, run_json: RunJson, endless_spec: Path) -> None:
    submitted = run_json("submit", endless_spec, "--sweep", "search.seed=1,2")
    for job in submitted["jobs"]:
        run_json("cancel", job["id"])
    result = run("watch", "--campaign", submitted["campaign"], "--json", "--quiet")
    assert result.exit_code == 5
    assert {job["state"] for job in json.loads(result.stdout)["jobs"]} == {"cancelled"}


def test_watch_needs_either_a_job_or_a_campaign(run: Any) -> None:
    assert run("watch").exit_code == 2
    assert run("watch", "a", "--campaign", "b").exit_code == 2
