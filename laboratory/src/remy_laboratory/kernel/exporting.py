"""Library call that exports a table as a C header or as Linux congestion control."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from remy_farm.api.showing import Rows, Tabular, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.files import write_file
from remy_farm.specification.checking import check_single_table
from remy_laboratory.kernel.fixed_point import IntegerTable, c_header
from remy_laboratory.kernel.linux import ebpf_files, write_ebpf

_MAX_DEADBAND_US: Final = 1_000_000


@dataclass(frozen=True)
class Export(Tabular):
    """The result of exporting a table."""

    path: Path
    """The header, or the directory of the Linux congestion control."""
    rules: int
    inner_nodes: int
    scale_free: bool
    deadband_us: int
    table_sha256: str
    object: Path | None
    """The compiled eBPF object; None for a header, or if clang is not installed."""

    def rows(self) -> Rows:
        """Returns one row that describes the export."""
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
        """Returns the export as `remy-farm export --json` prints it."""
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
    """Exports a table as a C header, or with `name` as Linux congestion control.

    The header is self-contained and computes in 64-bit integers (docs/how-to/kernel.md).

    `Table.save` and `Table.absolute` write .dna files instead.

    Args:
        table: The table to export.
        path: The header file; with `name` a directory for the source, the manifest, and the
            compiled object if clang is installed.
        name: Name of the algorithm in Linux: up to 15 letters, digits and _.
        spec: The specification that it was designed for, which the manifest summarizes; optional.
        deadband_us: RTTs up to this above the minimum are treated as the minimum, us; for tables
            designed with exact clocks.

    Returns:
        The written files, and properties of the table.

    Raises:
        FileError: The table has numbers that do not fit the integers, the name is invalid or taken,
            the source does not compile, or the path cannot be written.
        SpecError: The specification designs several tables.
        ValueError: The deadband is negative or above a second.
    """
    if not 0 <= deadband_us <= _MAX_DEADBAND_US:
        raise ValueError(
            f"deadband_us is {deadband_us}, but must be from 0 to {_MAX_DEADBAND_US:,}"
        )
    integers = IntegerTable.from_rule_table(table.rule_table)
    target, object_path = Path(path), None
    if name is None:
        write_file(target, c_header(integers, deadband_us=deadband_us).encode())
    else:
        message = None if spec is None else spec.message
        if spec is not None:
            check_single_table(spec.message, source=spec.source)
        files = ebpf_files(integers, name, spec=message, deadband_us=deadband_us)
        object_path = write_ebpf(target, files)
    return Export(
        target,
        rules=len(integers.actions),
        inner_nodes=len(integers.nodes),
        scale_free=integers.is_scale_free,
        deadband_us=deadband_us,
        table_sha256=integers.digest,
        object=object_path,
    )
