"""Tests `remy-farm export --c`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from laboratory.tests.kernel.tables import ABSOLUTE, SCALE_FREE, integers
from remy_farm.remycc import RemyCC, write_remycc
from remy_simulator import RuleTable
from services.tests.cli.conftest import Run


def test_export_writes_a_c_header(
    run: Run, run_json: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    out = tmp_path / "remy_table.h"
    output = run_json("export", "--c", SCALE_FREE, "--out", out, "--deadband-us", 40)
    assert output["scale_free"]
    assert output["rules"] == 64
    assert output["table_sha256"] == integers(SCALE_FREE).digest
    assert "#define REMY_DEADBAND_US 40u" in out.read_text()
    text = run("export", "--c", ABSOLUTE, "--out", out).stdout
    assert text == f"106 rules in {out}.\n"
    assert integers(ABSOLUTE).digest in out.read_text()


def test_export_of_a_table_with_a_path_model_needs_rules_alone(run: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "with.json", tmp_path / "remy_table.h"
    model = (16.0, 0.03125, 6.0, 0.875, 2.0, 50.0, 0.5, 1.75, 1.1)
    write_remycc(source, RemyCC(RuleTable([0], [([], (0.5, 7.0, 1.5))], path_model=model)))
    for target in (("--c", source), ("--ebpf", source, "--name", "remy_one")):
        refused = run("export", *target, "--out", out)
        assert refused.exit_code == 2
        assert "the table has a path model" in refused.stderr
        assert "--rules-alone" in refused.stderr
    assert not out.exists()
    assert run("export", "--c", source, "--out", out, "--rules-alone").exit_code == 0
    assert "least_window_packets 2" in run("inspect", source).stdout


def test_export_needs_exactly_one_kind(run: Run, tmp_path: Path) -> None:
    for arguments in ((), ("--dna", SCALE_FREE, "--c", SCALE_FREE)):
        refused = run("export", *arguments, "--out", tmp_path / "out")
        assert refused.exit_code == 2
        assert "give exactly one of --dna, --c and --ebpf" in refused.stderr
    assert not (tmp_path / "out").exists()
