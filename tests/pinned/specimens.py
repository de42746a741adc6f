"""Records digests of the networks of shipped files, which must not change when keys are renamed.

Studies that follow published traces are left out, because not every machine has these; so are
studies without simulations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.programs import ROOT
from remy_farm.specification import Networks, load_spec
from remy_farm.specification.network_files import read_topology
from remy_farm.specification.senders import parse_sender
from remy_laboratory.studies.cells import Tables, network_cells, row_cells
from remy_laboratory.studies.draws import Draws
from remy_laboratory.studies.league import Entrant, read_set
from remy_laboratory.studies.networks import uses_traces
from remy_laboratory.studies.study import find_studies, read_study
from tests.pinned.records import Record

_EXAMPLES: Final = ROOT / "examples"
_DATA: Final = ROOT / "data"
_SEED = 1
_SPECIMENS = 64
_NO_TABLES = Tables((), b"")
_RUNS = range(2)


def _of_specification(path: Path) -> Iterator[bytes]:
    networks = Networks(load_spec(path))
    for stratified in (False, True):
        drawn = networks.draw(seed=_SEED, count=_SPECIMENS, stratified=stratified)
        yield drawn.SerializeToString(deterministic=True)


def _follows_traces(path: Path) -> bool:
    """Whether a study needs published traces."""
    study = read_study(path)
    return uses_traces(study.network, *(row.network for row in study.rows))


def _of_study(path: Path) -> Iterator[bytes]:
    study = read_study(path)
    for row in study.rows:
        # A row of another simulator has the same specimens; the simulator itself does not matter.
        others = {row.simulator: _OtherSimulator()} if row.simulator else {}
        for cell in row_cells(study, row, _NO_TABLES, quick=True, others=others):  # type: ignore[arg-type]
            yield cell.specimen.SerializeToString(deterministic=True)


class _OtherSimulator:
    digest = ""


def _of_set(path: Path) -> Iterator[bytes]:
    league = read_set(path)
    entrant = Entrant("cubic", parse_sender("cubic"))
    seconds = league.length_s(quick=True)
    for on in league.networks(Draws(), quick=True):
        for cell in network_cells(entrant.row(on), _NO_TABLES, on.network, _RUNS, seconds):
            yield cell.specimen.SerializeToString(deterministic=True)


def _of_network(path: Path) -> Iterator[bytes]:
    topology = read_topology(path)
    yield topology.specimen.SerializeToString(deterministic=True)


def _files() -> Iterator[tuple[Path, Callable[[Path], Iterator[bytes]]]]:
    for path in [*sorted(_EXAMPLES.glob("*.yaml")), *sorted(_DATA.glob("remyccs/*/spec.yaml"))]:
        yield path, _of_specification
    for path in find_studies(_DATA / "studies"):
        if not _follows_traces(path):
            yield path, _of_study
    for folder in ("league", "robustness"):
        for path in sorted((_DATA / folder).glob("*.yaml")):
            yield path, _of_set
    for path in sorted((_EXAMPLES / "networks").glob("*.yaml")):
        yield path, _of_network


def digest_of_specification(path: Path) -> str:
    """Returns a digest of the networks that a specification draws with seed 1."""
    return _digest(_of_specification(path))


def _digest(specimens: Iterable[bytes]) -> str:
    """Returns the SHA-256 of serialized specimens."""
    digest = hashlib.sha256()
    for specimen in specimens:
        digest.update(len(specimen).to_bytes(8, "little") + specimen)
    return digest.hexdigest()


def _specimens(_: Path) -> Any:
    drawn = {str(path.relative_to(ROOT)): list(specimens(path)) for path, specimens in _files()}
    return {path: _digest(specimens) for path, specimens in drawn.items() if specimens}


RECORDS: Final = (Record("specimens", _specimens),)
