"""Tests `export`, `check_on_kernel`, `verify_on_kernel` and `measure_on_kernel`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import remy_farm as rf
from laboratory.tests.kernel.tables import (
    ABSOLUTE,
    EXACT_CLOCKS,
    SCALE_FREE,
    integers,
    needs_c,
    needs_kernel,
)
from remy_laboratory.kernel import KernelMeasurement, Link, Row, Workload


def test_export_writes_a_c_header(tmp_path: Path) -> None:
    export = rf.export(rf.load_table(SCALE_FREE), tmp_path / "remy.h", deadband_us=40)
    text = (tmp_path / "remy.h").read_text()
    assert "#define REMY_DEADBAND_US 40u" in text
    assert export.table_sha256 == integers(SCALE_FREE).digest
    assert export.table_sha256 in text
    (row,) = export.to_pandas().to_dict("records")
    assert row["rules"] == export.rules == 64
    assert row["path"] == str(tmp_path / "remy.h")
    assert "64" in repr(export)


def test_export_with_a_name_writes_linux_congestion_control(tmp_path: Path) -> None:
    spec = rf.load_spec(EXACT_CLOCKS / "spec.yaml")
    table = rf.load_table(EXACT_CLOCKS / "remycc.json")
    export = rf.export(table, tmp_path / "out", name="mine", spec=spec)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["name"] == "mine"
    assert manifest["table_sha256"] == export.table_sha256
    assert manifest["design"]["rtt_ms"] == [100, 200]
    assert export.object is None or export.object.exists()


def test_export_refuses_invalid_arguments(tmp_path: Path) -> None:
    table = rf.load_table(SCALE_FREE)
    with pytest.raises(rf.FileError, match="'cubic' is an algorithm of Linux"):
        rf.export(table, tmp_path / "out", name="cubic")
    with pytest.raises(ValueError, match="deadband_us is -1, but must be from 0 to"):
        rf.export(table, tmp_path / "remy.h", deadband_us=-1)
    assert not [*tmp_path.iterdir()]


def test_check_has_a_sentence_per_finding() -> None:
    result = rf.check_on_kernel(
        rf.load_table(EXACT_CLOCKS / "remycc.json"),
        rf.load_spec(EXACT_CLOCKS / "spec.yaml"),
        networks=2,
    )
    assert result.is_refused
    frame = result.to_pandas()
    assert "jitter" in set(frame["check"])
    assert set(frame["verdict"]) <= {"fine", "doubtful", "refused"}
    assert all(sentence in repr(result) for sentence in frame["sentence"])
    assert result.to_dict()["refused"]
    without_spec = rf.check_on_kernel(rf.load_table(ABSOLUTE))
    assert "jitter" not in set(without_spec.to_pandas()["check"])


@needs_c
def test_verify_finds_the_exported_arithmetic_the_same() -> None:
    result = rf.verify_on_kernel(rf.load_table(ABSOLUTE), vectors=5000)
    assert result.is_same
    (row,) = result.to_pandas().to_dict("records")
    assert (row["place"], row["records"], row["rules_different"]) == ("c", 5000, 0)
    assert "the same" in repr(result)


def _measurement() -> KernelMeasurement:
    rows = [Row("RemyCC", "alike", 1, 12.0, 12.0, 60.0, 1.0, 30.0, 3, 0)]
    return KernelMeasurement(Link(rate_mbps=15, rtt_ms=50), Workload(1, 30), 0, rows)


def test_measurement_gives_rows_a_plot_and_files(tmp_path: Path) -> None:
    measurement = _measurement()
    (row,) = measurement.to_pandas().to_dict("records")
    assert (row["algorithm"], row["total_mbps"], row["runs"]) == ("RemyCC", 12, 3)
    assert "RemyCC" in repr(measurement)
    assert measurement.plot()._repr_png_().startswith(b"\x89PNG")
    measurement.save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "measured.json").read_text()) == json.loads(
        json.dumps(measurement.to_dict())
    )
    assert (tmp_path / "out" / "measured.png").read_bytes().startswith(b"\x89PNG")


def test_link_that_cannot_be_emulated_is_refused() -> None:
    with pytest.raises(rf.SpecError, match="queue is given, but cannot be emulated"):
        Link(queue="codel")


@needs_kernel
def test_table_is_measured_on_this_kernel() -> None:
    measurement = rf.measure_on_kernel(
        rf.load_table(SCALE_FREE),
        Link(rate_mbps=12, rtt_ms=20),
        flows=[1],
        competitor=None,
        download_mb=0,
        load=Workload(1, seconds=2),
        repeats=1,
    )
    assert next(iter(measurement)).algorithm == "RemyCC"
    assert len(measurement.to_pandas()) == 3
