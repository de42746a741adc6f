"""Library call that tests a table against the robustness requirements and writes a certificate."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from remy_farm.api.scoring import local_evaluator
from remy_farm.api.table import Table
from remy_farm.files import FileError, make_folder, write_file
from remy_farm.shipped import DATA
from remy_farm.specification.senders import REMYCC, parse_sender
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.league import Entrant
from remy_laboratory.studies.reproduction import CELL_DATABASE
from remy_laboratory.studies.robustness import (
    Certificate,
    certificate_files,
    certify,
    read_requirements,
)
from remy_simulator.cpus import allowed_cpus

#: The installed requirements.
REQUIREMENTS: Final = DATA / "robustness"
_TABLE = "table.json"


def certify_table(
    table: Table,
    directory: str | os.PathLike[str],
    *,
    requirements: str | os.PathLike[str] = REQUIREMENTS,
    only: Sequence[str] = (),
    threads: int | None = None,
    on_progress: Callable[[float], None] = lambda _: None,
) -> Certificate:
    """Tests a table against the robustness requirements.

    The requirements are networks that are not used for training, on each of which the table must
    stay within bounds.

    Args:
        table: The table to certify.
        directory: Directory for the certificate (certificate.html and .json), the table, and the
            database of simulated cells (runs on one network). A later call simulates only the
            cells that the database lacks.
        requirements: Directory with a file per set of networks; by default the installed ones.
        only: Names of requirements; by default all. "safe-to-run" names all of them.
        threads: Number of simulation threads; by default the CPUs allowed.
        on_progress: Called with the fraction of the work that is done.

    Returns:
        The certificate. Its `holds` says whether the table meets all requirements, and its
        `sentence()` names those that it does not meet.

    Raises:
        FileError: There are no requirements, one in `only` does not exist, or the directory
            cannot be written.
        SpecError: A requirement file is invalid.
    """
    target = Path(directory)
    make_folder(target)
    path = target / _TABLE
    table.save(path)
    entrant = Entrant(table.name, parse_sender(f"{REMYCC}{path}=1"))
    return certify_entrant(
        entrant,
        table,
        target,
        Path(requirements),
        only=only,
        threads=threads,
        on_progress=on_progress,
    )


def certify_entrant(
    entrant: Entrant,
    table: Table,
    directory: Path,
    requirements: Path,
    *,
    only: Sequence[str],
    threads: int | None,
    on_progress: Callable[[float], None],
) -> Certificate:
    """Tests `table`, which the entrant's senders run, as `certify_table` does."""
    required = read_requirements(requirements, only)
    if not required:
        raise FileError(f"{requirements} has no requirements, which are files that end in .yaml")
    make_folder(directory)
    with (
        local_evaluator(threads) as evaluator,
        closing(CellStore(directory / CELL_DATABASE)) as store,
    ):
        runner = CellRunner(evaluator.evaluate, store, threads=threads or allowed_cpus())
        certificate = certify(required, entrant, table.remycc.to_message(), runner, on_progress)
    for name, text in certificate_files(certificate).items():
        make_folder((directory / name).parent)
        write_file(directory / name, text)
    return certificate
