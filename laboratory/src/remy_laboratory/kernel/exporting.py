"""Exports as a call: a table as a C header, or as congestion control of Linux."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from remy_farm.api.showing import Rows, Tabular, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.files import write_file
from remy_farm.specification.checking import check_one_table
from remy_laboratory.kernel.fixed_point import IntegerTable, header
from remy_laboratory.kernel.linux import ebpf_files, write_ebpf

_MOST_DEADBAND_US: Final = 1_000_000


@dataclass(frozen=True)
class Export(Tabular):
    """A table that was written for other programs."""

    path: Path
    """The header, or the folder of Linux's congestion control."""
    rules: int
    inner_nodes: int
    scale_free: bool
    deadband_us: int
    table_sha256: str
    object: Path | None
    """The compiled eBPF; None for a header, and where there is no clang."""

    def rows(self) -> Rows:
        """One row: what was written, and of which table."""
        kinds = {
            "path": str,
            "rules": int,
            "inner_nodes": int,
            "scale_free": bool,
            "deadband_us": int,
            "table_sha256": str,
            "object": str,
        }
        return rows_of(kinds, [{"path": str(self.path), **self.to_dict()}])

    def to_dict(self) -> dict[str, str | int | bool | None]:
        """All of it, as `remy-farm export --json` prints it."""
        return {
            "rules": self.rules,
            "inner_nodes": self.inner_nodes,
            "scale_free": self.scale_free,
            "deadband_us": self.deadband_us,
            "table_sha256": self.table_sha256,
            "object": None if self.object is None else str(self.object),
        }


def export(
    table: Table,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    spec: Spec | None = None,
    deadband_us: int = 0,
) -> Export:
    """Writes a table for other programs: as one C header, which needs no other and computes in
    64-bit integers, or with a name as congestion control of Linux (docs/how-to/kernel.md).

    Tables as .dna files come from `Table.save` and `Table.absolute`.

    Args:
        table: What is exported.
        path: The header; with a name a folder, for source, manifest, and the compiled object if
            clang is there.
        name: What Linux is to call it: up to 15 letters, digits and _.
        spec: What it was designed for, which the manifest tells; it may be left out.
        deadband_us: RTTs up to this above the smallest count as it, us; for tables that were
            designed with exact clocks.

    Returns:
        What was written.

    Raises:
        FileError: The table has what integers cannot say, the name is taken or none, it does not
            compile, or the path cannot be written.
        SpecError: The specification designs several tables.
        ValueError: The deadband is negative or above a second.
    """
    if not 0 <= deadband_us <= _MOST_DEADBAND_US:
        raise ValueError(
            f"deadband_us is {deadband_us}, but must be from 0 to {_MOST_DEADBAND_US:,}"
        )
    integers = IntegerTable.of(table.rule_table)
    place, built = Path(path), None
    if name is None:
        write_file(place, header(integers, deadband_us=deadband_us).encode())
    else:
        message = None if spec is None else spec.message
        if spec is not None:
            check_one_table(spec.message, source=spec.source)
        files = ebpf_files(integers, name, spec=message, deadband_us=deadband_us)
        built = write_ebpf(place, files)
    return Export(
        place,
        rules=len(integers.actions),
        inner_nodes=len(integers.nodes),
        scale_free=integers.is_scale_free,
        deadband_us=deadband_us,
        table_sha256=integers.digest,
        object=built,
    )
