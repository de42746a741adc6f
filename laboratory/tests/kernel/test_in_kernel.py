"""Tests the exported eBPF program in this machine's kernel, without any connection that uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from laboratory.tests.kernel.tables import (
    ABSOLUTE,
    EXACT_CLOCKS,
    SCALE_FREE,
    integers,
    needs_kernel,
)
from remy_laboratory.kernel.differential import compare
from remy_laboratory.kernel.libbpf import PRIVILEGED, LoadedObject, LoadError, read_counters
from remy_laboratory.kernel.linux import ebpf_files, write_ebpf


@pytest.mark.parametrize(
    "path",
    [ABSOLUTE, SCALE_FREE, EXACT_CLOCKS / "remycc.json"],
    ids=["absolute", "scale-free", "many-nodes"],
)
@needs_kernel
def test_no_rule_differs_in_100_000_records(path: Path, tmp_path: Path) -> None:
    table = integers(path)
    object_path = write_ebpf(tmp_path, ebpf_files(table, "remy_test"))
    assert object_path is not None
    with LoadedObject(object_path, None) as loaded:
        differences = compare(table, loaded.replay, vectors=100_000, seed=1)
    assert differences.is_same, differences
    assert differences.rules_different == differences.ties == 0


@needs_kernel
def test_verifier_accepts_a_table_with_many_nodes(tmp_path: Path) -> None:
    table = integers(EXACT_CLOCKS / "remycc.json")
    object_path = write_ebpf(tmp_path, ebpf_files(table, "remy_many"))
    assert object_path is not None
    with LoadedObject(object_path, PRIVILEGED) as loaded:
        assert len(read_counters(loaded.counters_map_id())) > len(table.actions)


@needs_kernel
def test_one_changed_number_is_found(tmp_path: Path) -> None:
    table = integers(SCALE_FREE)
    files = ebpf_files(table, "remy_test")
    unchanged = write_ebpf(tmp_path / "unchanged", files)
    assert unchanged is not None
    with LoadedObject(unchanged, None) as loaded:
        unused = compare(table, loaded.replay, vectors=3000, seed=1).rules_not_used_by_acks
    used = max(set(range(len(table.actions))) - set(unused))
    multiple = table.actions[used].multiple
    text = files["remy_table.h"].replace(f"{{{multiple}ull,", f"{{{multiple + (1 << 22)}ull,")
    assert text != files["remy_table.h"]
    object_path = write_ebpf(tmp_path, {**files, "remy_table.h": text})
    assert object_path is not None
    with LoadedObject(object_path, None) as loaded:
        assert not compare(table, loaded.replay, vectors=3000, seed=1).is_same


@needs_kernel
def test_file_that_is_not_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.o").write_text("no object")
    with pytest.raises(LoadError, match="is not an eBPF object"):
        LoadedObject(tmp_path / "other.o", None)
