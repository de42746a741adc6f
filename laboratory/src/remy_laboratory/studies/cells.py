"""Cells of a study: one network, one kind of senders, one run; each simulated once and kept.

A cell is a pure function of its request, so that it is kept by the request's digest: whoever asks
for it again, for another figure or after a stop, has it at once and with the same bytes.
"""

from __future__ import annotations

import functools
import hashlib
import io
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from remy_farm.evaluation.interface import EvaluationProgress, OnProgress
from remy_farm.files import FileError, reason
from remy_farm.remycc import read_remycc
from remy_laboratory.studies.networks import (
    SEED,
    layered,
    published_path,
    study_network,
    table_names,
    varied,
)
from remy_laboratory.studies.ns3 import with_intervals
from remy_laboratory.studies.study import FigureStudy, StudyRow
from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native, columns

_MS_PER_SECOND = 1000.0
# Changes where the same request means something else.
_FORMAT = b"cell 1 "
# What is lost of the work when a study is stopped: some ten seconds of one processor.
_PACKETS_A_REQUEST = 2e7
_MOST_CELLS_A_REQUEST = 2000
# Far below what a coordinator takes in one message.
_SPECIMEN_BYTES_A_REQUEST = 4 << 20


class EvaluateRequest(Protocol):
    """As Evaluator.evaluate: on this process's threads, or on workers."""

    def __call__(
        self, request: evaluation_pb2.EvaluationRequest, on_progress: OnProgress | None = None
    ) -> evaluation_pb2.EvaluationOutcome: ...


@dataclass(frozen=True)
class Cell:
    """A network, who sends on it, and the number of the run."""

    row: StudyRow
    x: float | None
    """Of what is varied."""
    run: int
    network: Mapping[str, Any]
    specimen: evaluation_pb2.Specimen
    traces: tuple[evaluation_pb2.Trace, ...]
    """Recordings that its links follow."""
    digest: bytes

    @property
    def packets(self) -> float:
        """What the link could carry in a ms: how long a simulation takes is in proportion."""
        return self.specimen.link_rate_packets_per_ms


@dataclass(frozen=True)
class Tables:
    """The RemyCCs of a row, in the order in which its senders name them."""

    messages: tuple[bytes, ...]
    digest: bytes


def remycc_path(name: str, examples: Path) -> Path:
    """The file that a study means. Raises FileError for a published one that is not here."""
    return published_path(name, "remyccs") or examples / name


def read_tables(row: StudyRow, examples: Path) -> Tables:
    """Raises FileError."""
    messages = tuple(
        read_remycc(remycc_path(name, examples), row.time_unit_ms)
        .to_message()
        .SerializeToString(deterministic=True)
        for name in table_names(row.senders)
    )
    return Tables(messages, hashlib.sha256(b"".join(messages)).digest())


def request_of(
    tables: Tables, cells: Sequence[Cell], seconds: float
) -> evaluation_pb2.EvaluationRequest:
    """All of these cells, as an evaluator takes them."""
    traces = {trace.sha256: trace for cell in cells for trace in cell.traces}
    request = evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate()],
        specimens=[cell.specimen for cell in cells],
        traces=traces.values(),
        duration_ms=seconds * _MS_PER_SECOND,
        seed=SEED,
    )
    for message in tables.messages:
        request.tables.add().ParseFromString(message)
    return request


class OtherSimulator(Protocol):
    """A simulator of others that rows may ask for."""

    digest: str
    """Changes where the same cell may come to something else."""

    def outcome(
        self,
        tables: Sequence[bytes],
        specimen: evaluation_pb2.Specimen,
        seconds: float,
        initial_window_packets: int = 0,
    ) -> evaluation_pb2.SpecimenOutcome:
        """What one cell comes to. Raises FileError."""


#: By the name that rows have.
Others = Mapping[str, OtherSimulator]


def cells_of(
    study: FigureStudy, row: StudyRow, tables: Tables, *, quick: bool, others: Others | None = None
) -> Iterator[Cell]:
    """Of a row, by what is varied, then by run. Every row has the same draws in the same run; where
    some are in another simulator, times on and off as given times."""
    (runs,) = study.runs.of(quick=quick)
    for x in study.sweep.values.of(quick=quick) if study.sweep else (None,):
        network = layered(study.network, row.network)
        if study.sweep and x is not None:
            network = varied(network, study.sweep.field, x)
        for cell in cells_on(row, tables, network, range(int(runs)), study.seconds, x):
            if not study.simulators:
                yield cell
                continue
            specimen = with_intervals(cell.specimen, study.seconds)
            suffix = ""
            if row.simulator:
                suffix = f"{(others or {})[row.simulator].digest} {row.initial_window_packets}"
            digest = _digest(tables, specimen, study.seconds, suffix)
            yield replace(cell, specimen=specimen, digest=digest)


def cells_on(
    row: StudyRow,
    tables: Tables,
    network: Mapping[str, Any],
    runs: Iterable[int],
    seconds: float,
    x: float | None = None,
) -> Iterator[Cell]:
    """The row's senders on one network, a cell for each run. Raises SpecError or FileError."""
    found = study_network(row.senders, network)
    for run in runs:
        specimen = found.run(run)
        digest = _digest(tables, specimen, seconds)
        yield Cell(row, x, run, found.fields, specimen, found.traces, digest)


@functools.cache
def _simulator_digest() -> bytes:
    """A simulator that was built anew may have been mended, so that its cells are made anew."""
    return hashlib.sha256(Path(_native.__file__).read_bytes()).digest()


def _digest(
    tables: Tables, specimen: evaluation_pb2.Specimen, seconds: float, suffix: str = ""
) -> bytes:
    parts = (
        _FORMAT,
        _simulator_digest(),
        tables.digest,
        specimen.SerializeToString(deterministic=True),
        f"{seconds!r} {SEED} {suffix}".encode(),
    )
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


# Keeping.


class CellStore:
    """What cells came to, by digest, in one file that any number of stops leaves whole."""

    def __init__(self, path: Path) -> None:
        """Raises FileError."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path)
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS cells (digest BLOB PRIMARY KEY, value BLOB NOT NULL)"
            )
            self._connection.commit()
        except OSError as error:
            raise FileError(f"{path.parent}: cannot be made ({reason(error)})") from error
        except sqlite3.Error as error:
            raise FileError(f"{path} cannot keep cells ({error}); give another --out") from error

    def get(self, digest: bytes) -> bytes | None:
        """None if it has not been simulated yet."""
        found = self._connection.execute("SELECT value FROM cells WHERE digest = ?", (digest,))
        row = found.fetchone()
        return None if row is None else bytes(row[0])

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """All of them or none."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO cells VALUES (?, ?)", values.items()
            )

    def close(self) -> None:
        """Ends the use of the file."""
        self._connection.close()


#: Called with how much a runner has simulated so far: packets that links could carry, in 1000.
OnCells = Callable[[float], None]


@dataclass(frozen=True)
class CellBatch:
    """Cells of one row, or entrant."""

    tables: Tables
    cells: Sequence[Cell]
    seconds: float

    def parts(self) -> Iterator[CellBatch]:
        """As many as go in one request each, whatever of them has been simulated."""
        part: list[Cell] = []
        packets, size = 0.0, 0
        for cell in self.cells:
            part.append(cell)
            packets += cell.packets * self.seconds * _MS_PER_SECOND
            size += cell.specimen.ByteSize()
            is_full = len(part) >= _MOST_CELLS_A_REQUEST or size >= _SPECIMEN_BYTES_A_REQUEST
            if packets >= _PACKETS_A_REQUEST or is_full:
                yield replace(self, cells=part)
                part, packets, size = [], 0.0, 0
        if part:
            yield replace(self, cells=part)

    @property
    def weight(self) -> float:
        """As OnCells counts."""
        return self.seconds * sum(cell.packets for cell in self.cells)

    def request(self) -> evaluation_pb2.EvaluationRequest:
        """All of them, as an evaluator takes them."""
        return columns.packed(request_of(self.tables, self.cells, self.seconds))


class CellRunner:
    """Simulates what a store does not have."""

    def __init__(
        self, evaluate: EvaluateRequest, store: CellStore, others: Others | None = None
    ) -> None:
        self._evaluate = evaluate
        self._store = store
        self._others = others or {}
        #: Simulated for this runner, and found in the store.
        self.simulated = 0
        self.found = 0
        self._done = 0.0
        # Cells that were brought here, and not asked for yet.
        self._brought: set[bytes] = set()

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those that are to be simulated."""
        return [cell for cell in cells if self._store.get(cell.digest) is None]

    def weight(self, batches: Iterable[CellBatch]) -> float:
        """Of the cells that are not there yet, as OnCells counts."""
        return sum(replace(each, cells=self.missing(each.cells)).weight for each in batches)

    def requests(self, batches: Iterable[CellBatch]) -> list[CellBatch]:
        """What others would have to simulate so that all cells are there, but for those of other
        simulators: whole parts, so that whoever asks for the same studies asks for the same."""
        asked: set[bytes] = set()
        wanted = []
        for part in (part for batch in batches for part in batch.parts()):
            digests = {cell.digest for cell in part.cells}
            is_here = part.cells[0].row.simulator or not self.missing(part.cells)
            if not is_here and not digests <= asked:
                wanted.append(part)
                asked |= digests
        return wanted

    def take(self, part: CellBatch, outcome: evaluation_pb2.EvaluationOutcome) -> None:
        """Keeps what others came to."""
        self._done += self.weight([part])
        self._brought.update(cell.digest for cell in self.missing(part.cells))
        self._keep(part, part.request(), outcome)

    def run(
        self, tables: Tables, cells: Sequence[Cell], seconds: float, on_cells: OnCells
    ) -> list[evaluation_pb2.SpecimenOutcome]:
        """What cells of one row came to, in their order."""
        missing = self.missing(cells)
        brought = self._brought & {cell.digest for cell in cells}
        self._brought -= brought
        self.simulated += len(missing) + len(brought)
        self.found += len(cells) - len(missing) - len(brought)
        if missing and missing[0].row.simulator:
            self._run_elsewhere(tables, missing, seconds, on_cells)
            missing = []
        for part in CellBatch(tables, missing, seconds).parts():
            weight = part.weight
            request = part.request()

            def progress(now: EvaluationProgress, weight: float = weight) -> None:
                share = now.simulations_done / max(1, now.simulations)
                on_cells(self._done + weight * share)

            outcome = self._evaluate(request, progress)
            self._done += weight
            on_cells(self._done)
            self._keep(part, request, outcome)
        return [self._read(cell) for cell in cells]

    def _keep(
        self,
        part: CellBatch,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> None:
        results = columns.specimen_outcomes(request, outcome)
        self._store.put(
            {
                cell.digest: result.SerializeToString(deterministic=True)
                for cell, result in zip(part.cells, results, strict=True)
            }
        )

    def _run_elsewhere(
        self, tables: Tables, cells: Sequence[Cell], seconds: float, on_cells: OnCells
    ) -> None:
        """Cells of a row that asks for another simulator, one by one."""
        simulator = self._others[cells[0].row.simulator]
        for cell in cells:
            window = cell.row.initial_window_packets
            outcome = simulator.outcome(tables.messages, cell.specimen, seconds, window)
            self._store.put({cell.digest: outcome.SerializeToString(deterministic=True)})
            self._done += cell.packets * seconds
            on_cells(self._done)

    def _read(self, cell: Cell) -> evaluation_pb2.SpecimenOutcome:
        value = self._store.get(cell.digest)
        assert value is not None
        outcome = evaluation_pb2.SpecimenOutcome()
        outcome.ParseFromString(value)
        return outcome

    def record(
        self, tables: Tables, cell: Cell, seconds: float, every_ms: float
    ) -> dict[str, np.ndarray]:
        """What is seen of one run over time: matrices have a row for each time."""
        digest = _digest(tables, cell.specimen, seconds, f"every {every_ms!r}")
        value = self._store.get(digest)
        if value is None:
            seen = columns.record(request_of(tables, [cell], seconds), every_ms)
            steps = len(seen.time_ms)
            buffer = io.BytesIO()
            arrays: dict[str, Any] = {
                name: np.array(getattr(seen, name), dtype=float).reshape(steps, -1)
                for name in ("is_on", "packets_received", "waiting_packets")
            }
            np.savez_compressed(buffer, time_ms=np.array(seen.time_ms), **arrays)
            value = buffer.getvalue()
            self._store.put({digest: value})
        with np.load(io.BytesIO(value), allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}
