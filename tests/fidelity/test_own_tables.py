"""Our tables among other protocols behave as studies claim (docs/results/among-others.md)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks.programs import REMY_FARM, ROOT, run_json

_STUDIES = ROOT / "data" / "own-tables"
_FIGURES = sorted(f"{path.parent.name}/{path.stem}" for path in _STUDIES.glob("*/*.yaml"))
#: On recordings that `cellular` has not met.
_RECORDED = ("sigcomm2013/figure-9", "sigcomm2013/figures-7-8")


@pytest.mark.parametrize("figure", _FIGURES)
def test_what_is_claimed_comes_out(figure: str, tmp_path: Path) -> None:
    if figure in _RECORDED and "REMY_REFERENCE_DIR" not in os.environ:
        pytest.skip("REMY_REFERENCE_DIR does not say where the recordings are")
    found: dict[str, Any] = run_json(
        *(REMY_FARM, "reproduce", figure, "--studies", _STUDIES),
        *("--out", tmp_path, "--quick", "--quiet"),
    )
    (verdict,) = found["figures"]
    assert verdict["finding"] == "reproduced", verdict
