"""Tests `remy-farm validate`."""

from pathlib import Path
from typing import Any

from remy_farm.specification import load_spec, parse_spec


def test_validate_prints_the_specification_with_all_defaults(run: Any, spec_file: Path) -> None:
    result = run("validate", spec_file)
    assert result.exit_code == 0
    assert "epochs_per_split: 4" in result.stdout
    assert parse_spec(result.stdout) == load_spec(spec_file)


def test_validate_prints_a_line_per_violation(run: Any, spec_file: Path) -> None:
    text = spec_file.read_text()
    spec_file.write_text(
        text.replace("rtt_ms: 100", "rtt_ms: -5").replace("mean_off_ms: 1000", "mean_of_ms: 1000")
    )
    result = run("validate", spec_file)
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) >= 2
    assert all(line.startswith(f"remy-farm: {spec_file}: ") for line in lines)
    assert any("network.rtt_ms" in line and "-5" in line for line in lines)
    assert any("mean_of_ms" in line for line in lines)
