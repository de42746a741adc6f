"""Tests the measured noise of RTTs and its form in a specification."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from laboratory.tests.kernel.tables import needs_kernel
from remy_farm.specification import load_spec
from remy_laboratory.kernel.measuring import MeasureError, build_emulator
from remy_laboratory.kernel.noise import (
    MAX_NOISE_US,
    measure_noise,
    noise_from_counts,
    save_noise_plot,
)

ROOT = Path(__file__).resolve().parents[3]

# Number of ACKs in each bin of 1 us of RTT above the histogram's base; the minimum RTT is in bin 7.
COUNTS = [0] * 7 + [40, 30, 20] + [0] * 90 + [9] + [0] * 900 + [1] + [0] * 15_000


def test_noise_counts_from_the_minimum_rtt() -> None:
    noise = noise_from_counts(COUNTS, 120.0, 3, 0)
    assert noise.acks == 100
    assert noise.acks_by_us[:3] == (40, 30, 20)
    assert [noise.percentile_us(share) for share in (0.4, 0.5, 0.9, 0.99, 1.0)] == [
        *(0, 1, 2, 93, 994),
    ]


def test_measurement_yaml_is_valid_in_a_specification(tmp_path: Path) -> None:
    noise = noise_from_counts(COUNTS, 120.0, 3, 0)
    tree = yaml.safe_load((ROOT / "examples" / "general-purpose-noise.yaml").read_text())
    tree["network"].update(yaml.safe_load(noise.measurement_yaml()))
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(tree))
    measurement = load_spec(tmp_path / "spec.yaml").network.measurement
    assert measurement.jitter.log_normal.median_ms.exact == 0.001
    assert measurement.jitter.log_normal.percentile_99_ms.exact == 0.093
    assert measurement.timestamp_resolution_ms.exact == 0.001


def test_json_has_the_histogram_without_empty_bins() -> None:
    noise = noise_from_counts(COUNTS, 120.0, 3, 1).to_dict()
    assert noise["acks_by_us"] == {"0": 40, "1": 30, "2": 20, "93": 9, "994": 1}
    assert (noise["disturbed"], noise["emulator_late_99_us"]) == (1, 120.0)


def test_noise_without_acks_is_an_error() -> None:
    with pytest.raises(MeasureError, match="no RTT was measured"):
        noise_from_counts([0] * MAX_NOISE_US, 0.0, 1, 0)


def test_noise_plot_is_a_png(tmp_path: Path) -> None:
    save_noise_plot(tmp_path / "noise.png", noise_from_counts(COUNTS, 120.0, 3, 0))
    assert (tmp_path / "noise.png").read_bytes().startswith(b"\x89PNG")


@needs_kernel
def test_noise_is_measured_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remy_laboratory.kernel.running.RECORD_DIR", tmp_path / "states")
    noise = measure_noise(
        build_emulator(tmp_path),
        tmp_path / "exported",
        rtt_ms=20.0,
        seconds=2.0,
        repeats=1,
        offloads=False,
        delayed_acks=False,
        seed=1,
        on_message=print,
    )
    # The flow sends a packet every ms; a busy machine sends fewer.
    assert 100 < noise.acks < 2100
    assert noise.percentile_us(0.99) > 0
