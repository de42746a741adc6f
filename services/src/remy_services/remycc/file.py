"""Reading and writing RemyCC files."""

import os
from pathlib import Path
from typing import Final

from remy_services.files import read_file, write_file
from remy_services.remycc.json_form import InvalidJson, from_json, to_json
from remy_services.remycc.remycc import RemyCC, RemyCCError
from remy_simulator import InvalidTable, RuleTable

MAXIMUM_BYTES: Final = 64 << 20


def read_remycc(path: str | os.PathLike[str]) -> RemyCC:
    """The RemyCC in a .dna or .json file; of another name, the content tells which it is.

    Raises RemyCCError if it holds none, or FileError if it cannot be read.
    """
    data = read_file(path, limit=MAXIMUM_BYTES)
    suffix = _suffix(path)
    is_json = suffix == ".json" or (suffix != ".dna" and data.startswith(b"{"))
    try:
        if is_json:
            return RemyCC.from_message(from_json(data))
        return RemyCC(*RuleTable.from_dna(data))
    except InvalidJson as error:
        raise RemyCCError(f"{os.fspath(path)} {error}") from error
    except InvalidTable as error:
        form = "JSON" if is_json else ".dna"
        problem = str(error).rstrip(".")
        raise RemyCCError(
            f"{os.fspath(path)} is not a valid {form} rule table: {problem}"
        ) from error


def write_remycc(path: str | os.PathLike[str], remycc: RemyCC) -> None:
    """Writes a .dna or .json file, as the name says, completely or not at all.

    A .dna file holds whole window increments only: they are rounded. Raises RemyCCError if the
    name ends in neither, and FileError if the file cannot be written.
    """
    check_remycc_name(path)
    write_file(path, to_bytes(remycc, _suffix(path)))


def to_bytes(remycc: RemyCC, suffix: str) -> bytes:
    """What a file of the RemyCC holds if its name ends in `suffix`, ".json" or ".dna"."""
    if suffix == ".json":
        return to_json(remycc.to_message()).encode()
    return remycc.table.to_dna(remycc.dna_metadata)


def check_remycc_name(path: str | os.PathLike[str]) -> None:
    """Raises RemyCCError unless a RemyCC's file may have this name."""
    if _suffix(path) not in (".json", ".dna"):
        raise RemyCCError(
            f"{os.fspath(path)} is not the name of a RemyCC, which ends in .dna or .json"
        )


def _suffix(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.lower()
