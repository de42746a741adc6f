"""Tests `remy-farm kernel check`, `verify` and `measure`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laboratory.tests.kernel.tables import ABSOLUTE, EXACT_CLOCKS, needs_c
from services.tests.cli.conftest import Run

_SHORT = ("--specimens", 2)


def test_check_prints_a_sentence_per_check(
    run: Run, run_json: Callable[..., dict[str, Any]]
) -> None:
    output = run_json("kernel", "check", ABSOLUTE, *_SHORT, "--force")
    checks = {finding["check"]: finding for finding in output["findings"]}
    assert {"kernel", "fixed-point range", "RTT resolution", "paces", "windows", "jitter"} <= set(
        checks
    )
    assert set(checks["jitter"]["values"]["scores_by_jitter_ms"]) == {"0", "0.1", "0.5"}
    lines = run("kernel", "check", ABSOLUTE, *_SHORT, "--force").stdout.splitlines()
    assert len(lines) == len(checks)
    assert all(line.endswith(".") for line in lines)


def test_refused_table_exits_with_6_unless_forced(run: Run) -> None:
    arguments = ("kernel", "check", EXACT_CLOCKS / "remycc.json", *_SHORT)
    refused = run(*arguments)
    assert refused.exit_code == 6
    assert "which no real clock does" in refused.stdout
    assert run(*arguments, "--force").exit_code == 0


@needs_c
def test_verify_finds_no_difference(run: Run, run_json: Callable[..., dict[str, Any]]) -> None:
    output = run_json("kernel", "verify", ABSOLUTE, "--vectors", 5000)
    assert output["same"]
    assert output["c"]["records"] == 5000
    assert "plain C" in run("kernel", "verify", ABSOLUTE, "--vectors", 5000).stdout


def test_measure_needs_either_a_file_or_noise(run: Run) -> None:
    for arguments in ((), (ABSOLUTE, "--noise")):
        refused = run("kernel", "measure", *arguments)
        assert refused.exit_code == 2
        assert "give either FILE or --noise" in refused.stderr


def test_measure_noise_refuses_network_options(run: Run) -> None:
    for arguments in (("--rate-mbps", 3), ("--set", "buffer.packets=3"), ("--network", "x.yaml")):
        refused = run("kernel", "measure", "--noise", *arguments)
        assert refused.exit_code == 2
        assert "--noise uses its own link" in refused.stderr


def test_invalid_link_is_refused_before_anything_is_loaded(run: Run) -> None:
    link = "links=[{rate_mbps: 3, jitter_box: {periodic: {}}}]"
    refused = run("kernel", "measure", ABSOLUTE, "--set", link)
    assert refused.exit_code == 2
    assert "jitter_box.periodic.period_ms is missing" in refused.stderr
