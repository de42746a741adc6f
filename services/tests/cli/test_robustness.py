"""Tests `inspect --certify`, `design --certify` and `attack`."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remy_farm.specification import load_spec
from remy_laboratory.studies.draws import Draws, Half
from remy_laboratory.studies.league import Score, read_set
from remy_laboratory.studies.networks import merge_networks
from remy_laboratory.studies.robustness import (
    REQUIRED_DRAWS,
    SAFE_TO_RUN,
    certificate_text,
    read_requirements,
)

ROOT = Path(__file__).resolve().parents[3]

RunJson = Callable[..., dict[str, Any]]

REQUIREMENT = """\
title: Utilization
source: nobody
network: {rtt_ms: 20, buffer: {bdp: 1},
  traffic: {exponential_time: {mean_ms: 1.0e+9}, mean_off_ms: 1}, starts_apart_ms: 0}
grid: {rate_mbps: [2, 6]}
score: utilization
at_least: %s
seconds: 3
runs: 2
"""
WITH_RIVAL = """\
title: Share with a rival
source: nobody
network: {rtt_ms: 20, buffer: {bdp: 1},
  traffic: {exponential_time: {mean_ms: 1.0e+9}, mean_off_ms: 1}, starts_apart_ms: 100}
rival: newreno
places:
- {name: one link, network: {rate_mbps: 4}}
- name: ACKs on a return link
  network:
    ack_bytes: 40
    links: [{name: there, rate_mbps: 4, delay_ms: 10}, {name: back, rate_mbps: 100, delay_ms: 10}]
    routes: [{links: [0], return_links: [1]}]
score: share_of_fair
at_least: 0.0001
seconds: 3
runs: 1
"""


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    """Two requirements that any table meets."""
    folder = tmp_path / "robustness"
    folder.mkdir()
    (folder / "beside.yaml").write_text(WITH_RIVAL)
    (folder / "use.yaml").write_text(REQUIREMENT % 0.01)
    return folder


def test_certificate_of_a_robust_table_is_reproducible(
    remycc_file: Path, requirements: Path, tmp_path: Path, run: Any, run_json: RunJson
) -> None:
    def certify(name: str, threads: int) -> dict[str, bytes]:
        arguments = ("--certify", tmp_path / name, "--robustness", requirements)
        result = run("inspect", remycc_file, *arguments, "--threads", threads)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.splitlines()[-1] == "small meets 2 requirements on 4 networks."
        files = [path for path in (tmp_path / name).rglob("*") if path.suffix in (".json", ".html")]
        return {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in files}

    files = certify("a", 1)
    assert set(files) == {"certificate.json", "certificate.html"}
    assert certify("b", 2) == files
    output = run_json(
        "inspect", remycc_file, "--certify", tmp_path / "a", "--robustness", requirements
    )
    assert output == json.loads(files["certificate.json"])
    # The digest is that of the certificate without its key `sha256`.
    digest = output.pop("sha256")
    assert digest == hashlib.sha256(certificate_text(output).encode()).hexdigest()
    text = (requirements / "use.yaml").read_bytes()
    assert output["requirements"][1]["set_sha256"] == hashlib.sha256(text).hexdigest()
    page = files["certificate.html"].decode()
    assert digest in page
    assert output["table_sha256"] in page


def test_table_that_fails_is_refused_with_the_failing_network(
    remycc_file: Path, requirements: Path, tmp_path: Path, run: Any, run_json: RunJson
) -> None:
    (requirements / "use.yaml").write_text(REQUIREMENT % 2)
    out = tmp_path / "out"
    arguments = ("--certify", out, "--robustness", requirements)
    result = run("inspect", remycc_file, *arguments)
    assert result.exit_code == 6
    assert "small is refused: use: utilization" in result.stderr
    assert "but must be at least 2 (2 networks beyond)" in result.stderr
    output = json.loads((out / "certificate.json").read_text())
    assert output["holds"] is False
    worst = min(output["requirements"][1]["networks"], key=lambda each: each["values"]["score"])
    page = (out / "certificate.html").read_text()
    commands = [line for line in page.splitlines() if "remy-farm simulate" in line]
    (command,) = [line for line in commands if f"rate_mbps={worst['network'].split()[0]} " in line]
    simulation = run_json(*shlex.split(command.partition("remy-farm ")[2].removesuffix("</pre>")))
    # The command shows the first run; the second is alike, because the flow is always on.
    utilization = simulation["senders"][0]["throughput_mbps"] / float(worst["network"].split()[0])
    assert utilization == pytest.approx(worst["values"]["score"], rel=0.02)


def test_design_that_fails_certification_is_written_and_refused(
    spec_file: Path, requirements: Path, tmp_path: Path, run: Any
) -> None:
    out = tmp_path / "out"
    arguments = ("design", spec_file, "--out", out, "--threads", 1, "--certify")
    assert run(*arguments, "--robustness", requirements).exit_code == 0
    (requirements / "use.yaml").write_text(REQUIREMENT % 2)
    result = run(*arguments, "--robustness", requirements, "--resume")
    assert result.exit_code == 6
    assert "out is refused: use: utilization" in result.stderr
    assert (out / "remycc.json").exists()
    assert (out / "certificate" / "certificate.html").exists()


@pytest.mark.parametrize(
    ("change", "arguments", "sentence"),
    [
        (None, ["--signals"], "--certify has its own networks"),
        ("at_least: 0.01\n", [], "at_least is missing, and so is at_most"),
        ("", ["--robustness", "/nonexistent"], "has no requirements"),
    ],
)
def test_certify_refuses_invalid_requirements_and_options(
    change: str | None,
    arguments: list[str],
    sentence: str,
    remycc_file: Path,
    requirements: Path,
    tmp_path: Path,
    run: Any,
) -> None:
    if change:
        path = requirements / "use.yaml"
        path.write_text(path.read_text().replace(change, ""))
    certify = ("--certify", tmp_path / "out", "--robustness", requirements)
    result = run("inspect", remycc_file, *certify, *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_networks_of_requirements_and_league_are_disjoint() -> None:
    def networks(folder: str, *chosen: Draws) -> set[str]:
        return {
            json.dumps(merge_networks(on.network, {}), sort_keys=True, default=str)
            for path in sorted((ROOT / "data" / folder).glob("*.yaml"))
            for draws in chosen
            for on in read_set(path).networks(draws, quick=False)
        }

    required = networks("robustness", REQUIRED_DRAWS)
    fixed = {"beside-cubic", "loss", "starvation"}
    names = {path.stem for path in (ROOT / "data" / "robustness").glob("*.yaml")}
    sets = [read_set(path) for path in (ROOT / "data" / "league").glob("*.yaml")]
    drawn = {each.name for each in sets if each.draws is not None}
    assert names == fixed | drawn
    assert len(required) > 76 + len(drawn)
    assert not required & networks("league", *(Draws(half) for half in Half))


def test_safe_to_run_names_all_requirements() -> None:
    folder = ROOT / "data" / "robustness"
    everything = read_requirements(folder)
    assert len(everything) == 14
    assert read_requirements(folder, [SAFE_TO_RUN]) == everything
    chosen = read_requirements(folder, ["rtt-steps", "loss"])
    assert [each.league.name for each in chosen] == ["loss", "rtt-steps"]
    (steps,) = [each for each in chosen if each.league.name == "rtt-steps"]
    # A requirement that is like a set has its digest too.
    assert steps.sha256 != hashlib.sha256((folder / "rtt-steps.yaml").read_bytes()).hexdigest()
    assert steps.league.score == Score.FAIR_POWER
    assert steps.league.title == read_set(ROOT / "data" / "league" / "rtt-steps.yaml").title


def test_requirements_are_selected_by_name(
    remycc_file: Path, spec_file: Path, requirements: Path, tmp_path: Path, run: Any
) -> None:
    (requirements / "use.yaml").write_text(REQUIREMENT % 2)
    options = ("--robustness", requirements)
    inspect = ("inspect", remycc_file, "--certify", tmp_path / "a", *options)
    assert run(*inspect, "--require", "beside").exit_code == 0
    for names in (["use"], ["beside", "--require", "use"], ["safe-to-run"]):
        result = run(*inspect, "--require", *names)
        assert result.exit_code == 6
        assert "small is refused: use: utilization is" in result.stderr
    unknown = run(*inspect, "--require", "other")
    assert unknown.exit_code == 2
    assert (
        "requirement other does not exist; the requirements are beside, use, and safe-to-run "
        "for all of them"
    ) in unknown.stderr
    # A design is certified if a requirement is named.
    design = ("design", spec_file, "--out", tmp_path / "b", "--threads", 1, *options)
    assert run(*design, "--require", "beside").exit_code == 0
    assert run(*design, "--require", "safe-to-run", "--resume").exit_code == 6


def test_requirement_may_bound_several_measures(
    remycc_file: Path, requirements: Path, tmp_path: Path, run: Any, run_json: RunJson
) -> None:
    bounds = "at_least: {utilization: 0.01, score: 0.01}\nat_most: {loss: 1, rtt_p95_ms: 1}\n"
    text = (REQUIREMENT % 0.01).replace("at_least: 0.01\n", bounds)
    (requirements / "use.yaml").write_text(text)
    arguments = ("--certify", tmp_path / "a", "--robustness", requirements, "--require", "use")
    result = run("inspect", remycc_file, *arguments)
    assert result.exit_code == 6
    assert "use: rtt p95 ms is" in result.stderr
    assert "must be at most 1 (2 networks beyond)" in result.stderr
    assert result.stderr.count("must be") == 1
    certificate = json.loads((tmp_path / "a" / "certificate.json").read_text())
    (requirement,) = certificate["requirements"]
    assert [each["quantity"] for each in requirement["bounds"]] == [
        "utilization",
        "score",
        "loss",
        "rtt_p95_ms",
    ]
    assert all(each["values"]["rtt_p95_ms"] > 20 for each in requirement["networks"])
    assert requirement["networks_drawn"] == "fixed"


SPACE = """\
name: space
network: {rate_mbps: {uniform: [1, 10]}, rtt_ms: 40, senders: 2, buffer: {packets: 20},
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 500}}
objective: {delta: 1}
search: {simulated_seconds: 2}
"""


def test_design_is_hardened_with_the_networks_of_an_attack(
    remycc_file: Path, spec_file: Path, tmp_path: Path, run: Any, run_json: RunJson
) -> None:
    space, attack_file = tmp_path / "space.yaml", tmp_path / "attack.yaml"
    space.write_text(SPACE)
    arguments = ("--spec", space, "--networks", 16, "--rounds", 2, "--runs", 1, "--find", 2)
    result = run("attack", remycc_file, *arguments, "--out", attack_file)
    assert result.exit_code == 0, result.stderr
    assert "round 2 of 2: worst loss" in result.stderr
    output = run_json("attack", remycc_file, *arguments, "--threads", 1)
    assert all(each["network"] in result.stdout for each in output["networks"])
    measured = run_json("attack", remycc_file, "--spec", space, "--on", attack_file)
    assert measured["networks"] == output["networks"]
    out = tmp_path / "out"
    design = ("design", spec_file, "--out", out, "--harden", attack_file, "--harden-share", 0.5)
    assert run(*design, "--threads", 1).exit_code == 0
    weights = [model.weight for model in load_spec(out / "spec.yaml").models]
    assert weights == [0.5, 0.25, 0.25]
    again = run(*design, "--resume")
    assert again.exit_code == 0, again.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--against", "remycc:other.json"], "must be a protocol"),
        (["--against", "cubic=2"], "must be a protocol"),
        (["--networks", 2, "--rounds", 3], "--networks 2 is less than --rounds 3"),
    ],
)
def test_attack_refuses_invalid_arguments(
    arguments: list[object], sentence: str, remycc_file: Path, spec_file: Path, run: Any
) -> None:
    result = run("attack", remycc_file, "--spec", spec_file, *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
