"""Exports and the bench as calls of the library."""

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


def test_a_table_is_written_as_a_header(tmp_path: Path) -> None:
    written = rf.export(rf.load_table(SCALE_FREE), tmp_path / "remy.h", deadband_us=40)
    text = (tmp_path / "remy.h").read_text()
    assert "#define REMY_DEADBAND_US 40u" in text
    assert written.table_sha256 == integers(SCALE_FREE).digest
    assert written.table_sha256 in text
    (row,) = written.to_pandas().to_dict("records")
    assert row["rules"] == written.rules == 64
    assert row["path"] == str(tmp_path / "remy.h")
    assert "64" in repr(written)


def test_a_table_with_a_name_is_written_for_linux(tmp_path: Path) -> None:
    spec = rf.load_spec(EXACT_CLOCKS / "spec.yaml")
    table = rf.load_table(EXACT_CLOCKS / "remycc.json")
    written = rf.export(table, tmp_path / "out", name="mine", spec=spec)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["name"] == "mine"
    assert manifest["table_sha256"] == written.table_sha256
    assert manifest["design"]["rtt_ms"] == [100, 200]
    assert written.object is None or written.object.exists()


def test_mistakes_in_an_export_are_refused(tmp_path: Path) -> None:
    table = rf.load_table(SCALE_FREE)
    with pytest.raises(rf.FileError, match="'cubic' is an algorithm of Linux"):
        rf.export(table, tmp_path / "out", name="cubic")
    with pytest.raises(ValueError, match="deadband_us is -1, but must be from 0 to"):
        rf.export(table, tmp_path / "remy.h", deadband_us=-1)
    assert not [*tmp_path.iterdir()]


def test_a_check_has_a_sentence_for_each_thing() -> None:
    found = rf.check_on_kernel(
        rf.load_table(EXACT_CLOCKS / "remycc.json"),
        rf.load_spec(EXACT_CLOCKS / "spec.yaml"),
        networks=2,
    )
    assert found.is_refused
    frame = found.to_pandas()
    assert "jitter" in set(frame["check"])
    assert set(frame["verdict"]) <= {"fine", "doubtful", "refused"}
    assert all(sentence in repr(found) for sentence in frame["sentence"])
    assert found.to_dict()["refused"]
    alone = rf.check_on_kernel(rf.load_table(ABSOLUTE))
    assert "jitter" not in set(alone.to_pandas()["check"])


@needs_c
def test_exported_arithmetic_is_the_simulators() -> None:
    found = rf.verify_on_kernel(rf.load_table(ABSOLUTE), vectors=5000)
    assert found.is_same
    (row,) = found.to_pandas().to_dict("records")
    assert (row["place"], row["records"], row["rules_different"]) == ("c", 5000, 0)
    assert "the same" in repr(found)


def _measurement() -> KernelMeasurement:
    rows = [Row("RemyCC", "alike", 1, 12.0, 12.0, 60.0, 1.0, 30.0, 3, 0)]
    return KernelMeasurement(Link(rate_mbps=15, rtt_ms=50), Workload(1, 30), 0, rows)


def test_measurements_are_rows_pictures_and_files(tmp_path: Path) -> None:
    measured = _measurement()
    (row,) = measured.to_pandas().to_dict("records")
    assert (row["algorithm"], row["total_mbps"], row["runs"]) == ("RemyCC", 12, 3)
    assert "RemyCC" in repr(measured)
    assert measured.plot()._repr_png_().startswith(b"\x89PNG")
    measured.save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "measured.json").read_text()) == json.loads(
        json.dumps(measured.to_dict())
    )
    assert (tmp_path / "out" / "measured.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_no_link_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(rf.SpecError, match="queue is given, but is not emulated"):
        Link(queue="codel")


@needs_kernel
def test_a_table_is_measured_on_this_kernel() -> None:
    measured = rf.measure_on_kernel(
        rf.load_table(SCALE_FREE),
        Link(rate_mbps=12, rtt_ms=20),
        flows=[1],
        competitor=None,
        download_mb=0,
        load=Workload(1, seconds=2),
        repeats=1,
    )
    assert next(iter(measured)).algorithm == "RemyCC"
    assert len(measured.to_pandas()) == 3
