"""Measures RemyCCs in this machine's Linux kernel over an emulated link.

A table that was designed with exact clocks is the control: it must fail, because a real link has
noise. If it did not fail, the other results would mean nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laboratory.tests.kernel.tables import ABSOLUTE, EXACT_CLOCKS, needs_kernel
from library.tests.remycc.tables import REFERENCE
from remy_farm.remycc import read_remycc
from remy_laboratory.kernel.emulated import Link
from remy_laboratory.kernel.fixed_point import IntegerTable
from remy_laboratory.kernel.linux import ebpf_files, write_ebpf
from remy_laboratory.kernel.measuring import Row, Workload, build_emulator, measure
from remy_laboratory.kernel.running import Scope, running_table

pytestmark = [
    needs_kernel,
    pytest.mark.skipif(not os.environ.get("REMY_NIGHTLY"), reason="make nightly runs it"),
]
PUBLISHED = REFERENCE / "RemyCC-2013-delta1.dna"


def measure_alone(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Row:
    """Measures one flow of a table for 30 s on 15 Mbit/s and 150 ms, three times."""
    monkeypatch.setattr("remy_laboratory.kernel.running.STATES", folder / "states")
    exported = folder / "exported"
    name = f"remyn{os.getpid()}"
    write_ebpf(exported, ebpf_files(IntegerTable.from_rule_table(read_remycc(path).table), name))
    with running_table(exported, Scope()):
        row = measure(
            build_emulator(folder),
            Link(),
            Workload(1),
            name,
            repeats=3,
            seed=1,
            on_message=print,
        )
    if row.disturbed:
        pytest.skip(f"{row.disturbed} of {row.runs} runs were disturbed; the machine is busy")
    return row


def test_table_designed_with_noise_uses_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measure_alone(ABSOLUTE, tmp_path, monkeypatch).total_mbps >= 11.5


@pytest.mark.parametrize(
    ("path", "maximum_mbps"),
    [
        pytest.param(EXACT_CLOCKS / "remycc.json", 6.0, id="ours"),
        pytest.param(
            PUBLISHED,
            3.0,
            id="published",
            marks=pytest.mark.skipif(
                not PUBLISHED.exists(), reason="REMY_REFERENCE_DIR has no RemyCC-2013-delta1.dna"
            ),
        ),
    ],
)
def test_table_designed_with_exact_clocks_leaves_the_link_idle(
    path: Path, maximum_mbps: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measure_alone(path, tmp_path, monkeypatch).total_mbps <= maximum_mbps
