"""The noise of RTTs as a specification has it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from laboratory.tests.kernel.tables import needs_kernel
from remy_farm.specification import load_spec
from remy_laboratory.kernel.measuring import MeasureError, build_emulator
from remy_laboratory.kernel.noise import MOST_NOISE_US, draw_noise, from_counts, measure_noise

ROOT = Path(__file__).resolve().parents[3]

# The least is 7 us above the base.
COUNTS = [0] * 7 + [40, 30, 20] + [0] * 90 + [9] + [0] * 900 + [1] + [0] * 15_000


def test_noise_counts_from_the_least_rtt() -> None:
    noise = from_counts(COUNTS, 120.0, 3, 0)
    assert noise.acks == 100
    assert noise.acks_by_us[:3] == (40, 30, 20)
    assert [noise.percentile_us(share) for share in (0.4, 0.5, 0.9, 0.99, 1.0)] == [
        *(0, 1, 2, 93, 994),
    ]


def test_a_specification_takes_the_block(tmp_path: Path) -> None:
    noise = from_counts(COUNTS, 120.0, 3, 0)
    tree = yaml.safe_load((ROOT / "examples" / "general-purpose-noise.yaml").read_text())
    tree["network"].update(yaml.safe_load(noise.block()))
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(tree))
    found = load_spec(tmp_path / "spec.yaml").network.measurement
    assert found.jitter.log_normal.median_ms.exact == 0.001
    assert found.jitter.log_normal.percentile_99_ms.exact == 0.093
    assert found.timestamp_resolution_ms.exact == 0.001


def test_the_histogram_is_kept() -> None:
    tree = from_counts(COUNTS, 120.0, 3, 1).tree()
    assert tree["acks_by_us"] == {"0": 40, "1": 30, "2": 20, "93": 9, "994": 1}
    assert (tree["disturbed"], tree["emulator_late_99_us"]) == (1, 120.0)


def test_noise_without_an_ack_is_told() -> None:
    with pytest.raises(MeasureError, match="no RTT was measured"):
        from_counts([0] * MOST_NOISE_US, 0.0, 1, 0)


def test_noise_is_drawn(tmp_path: Path) -> None:
    draw_noise(tmp_path / "noise.png", from_counts(COUNTS, 120.0, 3, 0))
    assert (tmp_path / "noise.png").read_bytes().startswith(b"\x89PNG")


@needs_kernel
def test_this_machine_has_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remy_laboratory.kernel.running.STATES", tmp_path / "states")
    noise = measure_noise(
        build_emulator(tmp_path),
        tmp_path / "exported",
        rtt_ms=20.0,
        seconds=2.0,
        repeats=1,
        offloads=False,
        delayed_acks=False,
        seed=1,
        say=print,
    )
    # A packet every ms, but for the handshake, and for what a busy machine leaves out.
    assert 100 < noise.acks < 2100
    assert noise.percentile_us(0.99) > 0
