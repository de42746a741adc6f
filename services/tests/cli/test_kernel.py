"""`remy-farm kernel check` and `verify`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laboratory.tests.kernel.tables import ABSOLUTE, EXACT_CLOCKS, needs_c
from services.tests.cli.conftest import Run

_SHORT = ("--specimens", 2)


def test_a_table_is_checked_with_a_sentence_each(
    run: Run, run_json: Callable[..., dict[str, Any]]
) -> None:
    told = run_json("kernel", "check", ABSOLUTE, *_SHORT, "--force")
    checks = {finding["check"]: finding for finding in told["findings"]}
    assert {"kernel", "fixed point", "smallest RTT", "paces", "windows", "jitter"} <= set(checks)
    assert set(checks["jitter"]["values"]["scores_by_jitter_ms"]) == {"0", "0.1", "0.5"}
    lines = run("kernel", "check", ABSOLUTE, *_SHORT, "--force").stdout.splitlines()
    assert len(lines) == len(checks)
    assert all(line.endswith(".") for line in lines)


def test_a_table_that_is_refused_ends_with_6_unless_forced(run: Run) -> None:
    words = ("kernel", "check", EXACT_CLOCKS / "remycc.json", *_SHORT)
    refused = run(*words)
    assert refused.exit_code == 6
    assert "which no real clock does" in refused.stdout
    assert run(*words, "--force").exit_code == 0


@needs_c
def test_the_arithmetic_is_verified(run: Run, run_json: Callable[..., dict[str, Any]]) -> None:
    told = run_json("kernel", "verify", ABSOLUTE, "--vectors", 5000)
    assert told["same"]
    assert told["c"]["records"] == 5000
    assert "plain C" in run("kernel", "verify", ABSOLUTE, "--vectors", 5000).stdout


def test_either_a_table_or_the_noise_is_measured(run: Run) -> None:
    for words in ((), (ABSOLUTE, "--noise")):
        refused = run("kernel", "measure", *words)
        assert refused.exit_code == 2
        assert "give either FILE or --noise" in refused.stderr


def test_noise_is_measured_on_a_link_of_its_own(run: Run) -> None:
    for words in (("--rate-mbps", 3), ("--set", "buffer.packets=3"), ("--network", "x.yaml")):
        refused = run("kernel", "measure", "--noise", *words)
        assert refused.exit_code == 2
        assert "--noise uses its own link" in refused.stderr


def test_what_cannot_be_emulated_is_refused_before_anything_is_loaded(run: Run) -> None:
    link = "links=[{rate_mbps: 3, jitter_box: {periodic: {}}}]"
    refused = run("kernel", "measure", ABSOLUTE, "--set", link)
    assert refused.exit_code == 2
    assert "jitter_box.periodic.period_ms is missing" in refused.stderr
