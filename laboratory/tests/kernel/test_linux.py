"""Tests the export of a table as eBPF source."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from laboratory.tests.kernel.tables import ABSOLUTE, GOLDEN, SCALE_FREE, integers
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.specification import load_spec
from remy_laboratory.kernel.fixed_point import IntegerTable, c_header
from remy_laboratory.kernel.linux import (
    MANIFEST,
    KernelExportError,
    compile_ebpf,
    ebpf_files,
    read_manifest,
    write_ebpf,
)

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")


def test_exported_files_equal_the_golden_files() -> None:
    table = IntegerTable.from_rule_table(six_scale_free_rules())
    files = ebpf_files(table, "remy_six")
    assert files == ebpf_files(table, "remy_six")
    assert files[MANIFEST] == (GOLDEN / MANIFEST).read_text()
    assert files["remy_table.h"] == c_header(table)
    assert '#define REMY_NAME "remy_six"' in files["remy_congestion.bpf.c"]


def test_manifest_describes_the_design() -> None:
    spec = load_spec(SCALE_FREE.with_name("spec.yaml"))
    manifest = json.loads(ebpf_files(integers(SCALE_FREE), "remy", spec=spec)[MANIFEST])
    assert manifest["design"]["rtt_ms"] == [100, 200]
    assert "jitter" in manifest["design"]["measurement"]
    assert manifest["table_sha256"] == integers(SCALE_FREE).digest


@pytest.mark.parametrize(
    "name", ["", "Remy", "cubic", "remy-noise", "sixteen_letters_", "1st", "reno", "a b", 'x"y']
)
def test_invalid_and_taken_algorithm_names_are_refused(name: str) -> None:
    with pytest.raises(KernelExportError, match="algorithm"):
        ebpf_files(integers(ABSOLUTE), name)


def test_read_manifest_detects_a_changed_file(tmp_path: Path) -> None:
    write_ebpf(tmp_path, ebpf_files(integers(ABSOLUTE), "remy"))
    assert read_manifest(tmp_path)["name"] == "remy"
    table = tmp_path / "remy_table.h"
    table.write_text(table.read_text().replace("REMY_RULES 106", "REMY_RULES 107"))
    with pytest.raises(KernelExportError, match=r"remy_table\.h was changed"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text("[]")
    with pytest.raises(KernelExportError, match="was not written by"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
@needs_clang
def test_clang_compiles_to_the_same_bytes_each_time(path: Path, tmp_path: Path) -> None:
    files = ebpf_files(integers(path), "remy")
    object_path = write_ebpf(tmp_path, files)
    assert object_path is not None
    first = object_path.read_bytes()
    assert compile_ebpf(tmp_path).read_bytes() == first


@needs_clang
def test_compile_error_is_reported(tmp_path: Path) -> None:
    files = ebpf_files(integers(ABSOLUTE), "remy")
    with pytest.raises(KernelExportError, match="does not compile"):
        write_ebpf(tmp_path, {**files, "remy_table.h": "#error no table"})
