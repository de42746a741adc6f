"""Tests `remy-farm export --c`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from laboratory.tests.kernel.tables import ABSOLUTE, SCALE_FREE, integers
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


def test_export_needs_exactly_one_kind(run: Run, tmp_path: Path) -> None:
    for arguments in ((), ("--dna", SCALE_FREE, "--c", SCALE_FREE)):
        refused = run("export", *arguments, "--out", tmp_path / "out")
        assert refused.exit_code == 2
        assert "give exactly one of --dna, --c and --ebpf" in refused.stderr
    assert not (tmp_path / "out").exists()
