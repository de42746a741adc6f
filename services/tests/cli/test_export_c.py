"""`remy-farm export --c`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from laboratory.tests.kernel.tables import ABSOLUTE, SCALE_FREE, integers
from services.tests.cli.conftest import Run


def test_a_header_is_written_and_told_of(
    run: Run, run_json: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    out = tmp_path / "remy_table.h"
    told = run_json("export", "--c", SCALE_FREE, "--out", out, "--deadband-us", 40)
    assert told["scale_free"]
    assert told["rules"] == 64
    assert told["table_sha256"] == integers(SCALE_FREE).digest
    assert "#define REMY_DEADBAND_US 40u" in out.read_text()
    said = run("export", "--c", ABSOLUTE, "--out", out).stdout
    assert said == f"106 rules in {out}.\n"
    assert integers(ABSOLUTE).digest in out.read_text()


def test_one_table_is_exported_one_way(run: Run, tmp_path: Path) -> None:
    for words in ((), ("--dna", SCALE_FREE, "--c", SCALE_FREE)):
        refused = run("export", *words, "--out", tmp_path / "out")
        assert refused.exit_code == 2
        assert "give exactly one of --dna, --c and --ebpf" in refused.stderr
    assert not (tmp_path / "out").exists()
