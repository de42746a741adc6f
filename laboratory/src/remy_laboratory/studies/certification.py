"""Tests a table against the requirements of robustness, and writes the certificate."""

from __future__ import annotations

import os
from collections.abc import Callable
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
from remy_laboratory.studies.reproduction import CELLS
from remy_laboratory.studies.robustness import (
    Certificate,
    certificate_files,
    certify,
    read_requirements,
)

#: The requirements that are installed.
REQUIREMENTS: Final = DATA / "robustness"
_TABLE = "table.json"


def certify_table(
    table: Table,
    directory: str | os.PathLike[str],
    *,
    requirements: str | os.PathLike[str] = REQUIREMENTS,
    threads: int | None = None,
    on_done: Callable[[float], None] = lambda _: None,
) -> Certificate:
    """Has a table meet the requirements of robustness: networks apart from training, on each of
    which it must have a score.

    Args:
        table: What is to be certified.
        directory: Where the certificate is written (certificate.html and .json), beside the table
            and what has been simulated, which is not simulated again.
        requirements: A folder of sets of networks, a file each; those that are installed unless
            given.
        threads: Threads to simulate with; the CPUs allowed unless given.
        on_done: Is called with the share of all that is done so far.

    Returns:
        The certificate: `holds`, and `sentence()` with the reasons.

    Raises:
        FileError: The folder has no requirements, or the directory cannot be written.
        SpecError: A requirement has a mistake.
    """
    place = Path(directory)
    make_folder(place)
    path = place / _TABLE
    table.save(path)
    entrant = Entrant(table.name, parse_sender(f"{REMYCC}{path}=1"))
    return certify_entrant(
        entrant, table, place, Path(requirements), threads=threads, on_done=on_done
    )


def certify_entrant(
    entrant: Entrant,
    table: Table,
    directory: Path,
    requirements: Path,
    *,
    threads: int | None,
    on_done: Callable[[float], None],
) -> Certificate:
    """Certifies the table in the file that the entrant's words name; see `certify_table`."""
    asked = read_requirements(requirements)
    if not asked:
        raise FileError(f"{requirements} has no requirements: files that end in .yaml")
    make_folder(directory)
    with local_evaluator(threads) as evaluator, closing(CellStore(directory / CELLS)) as store:
        runner = CellRunner(evaluator.evaluate, store)
        certificate = certify(asked, entrant, table.remycc.to_message(), runner, on_done)
    for name, text in certificate_files(certificate).items():
        make_folder((directory / name).parent)
        write_file(directory / name, text)
    return certificate
