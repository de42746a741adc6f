"""A table as source for eBPF."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from laboratory.tests.kernel.tables import ABSOLUTE, GOLDEN, SCALE_FREE, integers
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.specification import load_spec
from remy_laboratory.kernel.fixed_point import IntegerTable, header
from remy_laboratory.kernel.linux import (
    MANIFEST,
    KernelExportError,
    compile_ebpf,
    ebpf_files,
    read_manifest,
    write_ebpf,
)

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")


def test_the_files_are_as_they_were() -> None:
    table = IntegerTable.of(six_scale_free_rules())
    files = ebpf_files(table, "remy_six")
    assert files == ebpf_files(table, "remy_six")
    assert files[MANIFEST] == (GOLDEN / MANIFEST).read_text()
    assert files["remy_table.h"] == header(table)
    assert '#define REMY_NAME "remy_six"' in files["remy_congestion.bpf.c"]


def test_the_manifest_names_the_design() -> None:
    spec = load_spec(SCALE_FREE.with_name("spec.yaml"))
    manifest = json.loads(ebpf_files(integers(SCALE_FREE), "remy", spec=spec)[MANIFEST])
    assert manifest["design"]["rtt_ms"] == [100, 200]
    assert "jitter" in manifest["design"]["measurement"]
    assert manifest["table_sha256"] == integers(SCALE_FREE).digest


@pytest.mark.parametrize(
    "name", ["", "Remy", "cubic", "remy-noise", "sixteen_letters_", "1st", "reno", "a b", 'x"y']
)
def test_names_that_no_new_algorithm_may_have_are_refused(name: str) -> None:
    with pytest.raises(KernelExportError, match="algorithm"):
        ebpf_files(integers(ABSOLUTE), name)


def test_a_changed_file_is_found(tmp_path: Path) -> None:
    write_ebpf(tmp_path, ebpf_files(integers(ABSOLUTE), "remy"))
    assert read_manifest(tmp_path)["name"] == "remy"
    table = tmp_path / "remy_table.h"
    table.write_text(table.read_text().replace("REMY_RULES 106", "REMY_RULES 107"))
    with pytest.raises(KernelExportError, match=r"remy_table\.h was changed"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text("[]")
    with pytest.raises(KernelExportError, match="is not written by"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
@needs_clang
def test_clang_compiles_it_to_the_same_bytes(path: Path, tmp_path: Path) -> None:
    files = ebpf_files(integers(path), "remy")
    built = write_ebpf(tmp_path, files)
    assert built is not None
    first = built.read_bytes()
    assert compile_ebpf(tmp_path).read_bytes() == first


@needs_clang
def test_source_that_does_not_compile_is_told(tmp_path: Path) -> None:
    files = ebpf_files(integers(ABSOLUTE), "remy")
    with pytest.raises(KernelExportError, match="does not compile"):
        write_ebpf(tmp_path, {**files, "remy_table.h": "#error no table"})
