"""Tests that commands and library calls give byte-identical results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import remy_farm as rf

ROOT = Path(__file__).resolve().parents[3]

RunJson = Callable[..., dict[str, Any]]

NETWORK = """\
rtt_ms: 50
links:
- {name: core, rate_mbps: 10, buffer: {packets: 50}}
senders:
- {protocol: cubic, traffic: {always: {}}}
- {protocol: newreno, count: 2, traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}}
"""


def test_design_command_equals_the_library_call(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    output = run_json("design", spec_file, "--out", tmp_path / "command", "--seed", 3)
    design = rf.design(rf.load_spec(spec_file), seed=3, directory=tmp_path / "call")
    for name in ("remycc.json", "pareto.csv", "spec.yaml", "provenance.json"):
        assert (tmp_path / "call" / name).read_bytes() == (tmp_path / "command" / name).read_bytes()
    assert (output["steps"], output["rules"]) == (design.steps, len(design.table))
    gain = design.gain().score()
    assert gain is not None
    assert output["gain"]["score_gain_mean"] == gain.mean


def test_command_resumes_a_design_of_the_library(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    spec, out = rf.load_spec(spec_file), tmp_path / "design"
    rf.design(spec, directory=out, callback=lambda progress: progress.step == 2)
    output = run_json("design", spec_file, "--out", out, "--resume")
    assert rf.load_design(out).table == rf.design(spec).table
    assert output["finished"]


def test_campaign_command_equals_the_library_call(
    run_json: RunJson, spec_file: Path, tmp_path: Path
) -> None:
    sweep = "objective.delta=1,10"
    output = run_json("design", spec_file, "--out", tmp_path / "all", "--sweep", sweep)
    swept = rf.sweep(rf.load_spec(spec_file), {"objective.delta": [1, 10]})
    frame = swept.to_pandas()
    assert [each["comparison"]["score"]["mean"] for each in output["members"]] == [
        *frame["score_mean"]
    ]
    assert rf.load_sweep(tmp_path / "all").names == swept.names


@pytest.mark.parametrize(
    ("flags", "contender"),
    [(("--remycc", "FILE"), "FILE"), (("--sender", "cubic,variant=linux"), "cubic,variant=linux")],
)
def test_evaluate_command_equals_the_library_call(
    run_json: RunJson,
    remycc_file: Path,
    tmp_path: Path,
    flags: tuple[str, ...],
    contender: str,
) -> None:
    spec_file = tmp_path / "exact.yaml"
    spec = rf.load_spec(ROOT / "examples" / "general-purpose-delta1.yaml")
    spec.save(spec_file)
    arguments = [str(remycc_file) if flag == "FILE" else flag for flag in flags]
    output = run_json("evaluate", *arguments, "--spec", spec_file, "--specimens", 3, "--seed", 5)
    given: rf.Table | str = rf.load_table(remycc_file) if contender == "FILE" else contender
    (score,) = rf.evaluate(given, rf.load_spec(spec_file), networks=3, seed=5)
    assert output["digest"] == score.digest
    summary = score.summary().score
    assert summary is not None
    assert (output["score_mean"], output["score_stderr"]) == (summary.mean, summary.standard_error)


def test_simulate_command_equals_the_library_call(run_json: RunJson, tmp_path: Path) -> None:
    path = tmp_path / "network.yaml"
    path.write_text(NETWORK)
    output = run_json("simulate", "--network", path, "--seconds", 5, "--seed", 2)
    run = rf.simulate(rf.load_network(path), seconds=5, seed=2)
    assert {**run.to_dict(), "cpu_seconds": 0} == {**output, "cpu_seconds": 0}
    assert run.digest == output["digest"]


def test_simulate_options_equal_the_library_call(run_json: RunJson, remycc_file: Path) -> None:
    flags = ("--rate-mbps", 10, "--rtt-ms", 50, "--buffer-packets", 40, "--on-ms", 500)
    senders = ("--sender", f"remycc:{remycc_file}", "--sender", "cubic=2")
    output = run_json("simulate", *senders, *flags, "--off-ms", 500, "--seconds", 5)
    network = rf.Network(
        rate_mbps=10,
        rtt_ms=50,
        buffer={"packets": 40},
        traffic={"exponential_time": {"mean_ms": 500}, "mean_off_ms": 500},
        senders=[rf.load_table(remycc_file), "cubic=2"],
    )
    assert rf.simulate(network, seconds=5).digest == output["digest"]


def test_inspect_command_equals_the_library_call(
    run_json: RunJson, remycc_file: Path, spec_file: Path
) -> None:
    flags = ("--spec", spec_file, "--specimens", 2)
    explanation = rf.explain(rf.load_table(remycc_file), rf.load_spec(spec_file), networks=2)
    assert run_json("inspect", remycc_file, *flags) == explanation.to_dict()
    output = run_json("inspect", remycc_file, *flags, "--signals", "--merge")
    assert output["signal_worth"] == explanation.signal_worth().to_dict()
    assert output["merging"] == {**explanation.merged().to_dict(), "written": None}
