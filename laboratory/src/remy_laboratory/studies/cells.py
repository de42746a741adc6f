"""Simulates the cells of studies. A cell is one network, one row of senders and one run.

A cell's outcome depends only on its request, so it is stored by the request's digest. A cell that
several figures need, or that an interrupted study has simulated, is read from the store.
"""

from __future__ import annotations

import functools
import hashlib
import io
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from remy_farm.evaluation.interface import EvaluationProgress, OnProgress
from remy_farm.files import FileError, reason
from remy_farm.remycc import read_remycc
from remy_laboratory.studies.networks import (
    SEED,
    merge_networks,
    published_path,
    study_network,
    table_names,
    with_value,
)
from remy_laboratory.studies.ns3 import with_intervals
from remy_laboratory.studies.study import FigureStudy, StudyRow
from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native, columns

_MS_PER_SECOND = 1000.0
# Format version of the digests; it changes whenever the same request gets another meaning.
_FORMAT = b"cell 1 "
# An interrupted study loses at most this work: about ten seconds of one processor.
_MAX_PACKETS_PER_REQUEST = 2e7
_MAX_CELLS_PER_REQUEST = 2000
# Far below the maximum message size of a coordinator.
_MAX_SPECIMEN_BYTES_PER_REQUEST = 4 << 20


class EvaluateRequest(Protocol):
    """The signature of Evaluator.evaluate."""

    def __call__(
        self, request: evaluation_pb2.EvaluationRequest, on_progress: OnProgress | None = None
    ) -> evaluation_pb2.EvaluationOutcome: ...


@dataclass(frozen=True)
class Cell:
    """A network, the senders on it, and the number of the run."""

    row: StudyRow
    x: float | None
    """The value of the swept field; None without a sweep."""
    run: int
    network: Mapping[str, Any]
    specimen: evaluation_pb2.Specimen
    traces: tuple[evaluation_pb2.Trace, ...]
    """Trace recordings that the network's links follow."""
    digest: bytes

    @property
    def packets(self) -> float:
        """Packets that the link can carry per ms, to which the simulation time is proportional."""
        return self.specimen.link_rate_packets_per_ms


@dataclass(frozen=True)
class Tables:
    """The RemyCCs of a row, in the order in which its senders first name them."""

    messages: tuple[bytes, ...]
    digest: bytes


def remycc_path(name: str, examples: Path) -> Path:
    """Returns the path of a study's RemyCC. Raises FileError if a published file is unavailable."""
    return published_path(name, "remyccs") or examples / name


def read_tables(row: StudyRow, examples: Path) -> Tables:
    """Reads the RemyCCs of a row. Raises FileError."""
    messages = tuple(
        read_remycc(remycc_path(name, examples), row.time_unit_ms)
        .to_message()
        .SerializeToString(deterministic=True)
        for name in table_names(row.senders)
    )
    return Tables(messages, hashlib.sha256(b"".join(messages)).digest())


def evaluation_request(
    tables: Tables, cells: Sequence[Cell], seconds: float
) -> evaluation_pb2.EvaluationRequest:
    """Builds the evaluation request of these cells."""
    traces = {trace.sha256: trace for cell in cells for trace in cell.traces}
    request = evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate()],
        specimens=[cell.specimen for cell in cells],
        traces=traces.values(),
        duration_ms=seconds * _MS_PER_SECOND,
        seed=SEED,
        distributions=True,
    )
    for message in tables.messages:
        request.tables.add().ParseFromString(message)
    return request


class OtherSimulator(Protocol):
    """Interface of another simulator that rows may use."""

    digest: str
    """Identifies the simulator's version; it changes whenever an outcome may change."""

    def outcome(
        self,
        tables: Sequence[bytes],
        specimen: evaluation_pb2.Specimen,
        seconds: float,
        initial_window_packets: int = 0,
    ) -> evaluation_pb2.SpecimenOutcome:
        """Simulates one cell and returns its outcome. Raises FileError."""


#: Other simulators, by the name that rows use.
OtherSimulators = Mapping[str, OtherSimulator]


def row_cells(
    study: FigureStudy,
    row: StudyRow,
    tables: Tables,
    *,
    quick: bool,
    others: OtherSimulators | None = None,
) -> Iterator[Cell]:
    """Yields a row's cells, by swept value and then by run.

    All rows have the same random draws in the same run. If any row uses another simulator, the
    draws of on and off times are replaced by the times themselves.
    """
    (runs,) = study.runs.select(quick=quick)
    for x in study.sweep.values.select(quick=quick) if study.sweep else (None,):
        network = merge_networks(study.network, row.network)
        if study.sweep and x is not None:
            network = with_value(network, study.sweep.field, x)
        for cell in network_cells(row, tables, network, range(int(runs)), study.seconds, x):
            if not study.simulators:
                yield cell
                continue
            specimen = with_intervals(cell.specimen, study.seconds)
            suffix = ""
            if row.simulator:
                suffix = f"{(others or {})[row.simulator].digest} {row.initial_window_packets}"
            digest = _digest(tables, specimen, study.seconds, suffix)
            yield replace(cell, specimen=specimen, digest=digest)


def network_cells(
    row: StudyRow,
    tables: Tables,
    network: Mapping[str, Any],
    runs: Iterable[int],
    seconds: float,
    x: float | None = None,
) -> Iterator[Cell]:
    """Yields a cell per run of a row's senders on one network. Raises SpecError or FileError."""
    base = study_network(row.senders, network)
    for run in runs:
        specimen = base.run(run)
        digest = _digest(tables, specimen, seconds)
        yield Cell(row, x, run, base.fields, specimen, base.traces, digest)


@functools.cache
def _simulator_digest() -> bytes:
    """Returns a digest of the simulator's binary, so that a rebuilt simulator reruns all cells."""
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


# The store of outcomes.


class CellStore:
    """Stores outcomes of cells by digest in one SQLite file, which survives interruptions."""

    def __init__(self, path: Path) -> None:
        """Opens or creates the file. Raises FileError."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path)
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS cells (digest BLOB PRIMARY KEY, value BLOB NOT NULL)"
            )
            self._connection.commit()
        except OSError as error:
            raise FileError(f"{path.parent}: cannot be created ({reason(error)})") from error
        except sqlite3.Error as error:
            raise FileError(f"{path} cannot store cells ({error}); use another --out") from error

    def get(self, digest: bytes) -> bytes | None:
        """Returns an outcome; None if the cell has not been simulated."""
        cursor = self._connection.execute("SELECT value FROM cells WHERE digest = ?", (digest,))
        row = cursor.fetchone()
        return None if row is None else bytes(row[0])

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Stores all values in one transaction."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO cells VALUES (?, ?)", values.items()
            )

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()


#: Called with the work done so far, in thousands of packets that the links could carry.
OnCells = Callable[[float], None]


@dataclass(frozen=True)
class CellBatch:
    """Cells that share tables: those of one row or entrant."""

    tables: Tables
    cells: Sequence[Cell]
    seconds: float

    def parts(self) -> Iterator[CellBatch]:
        """Yields the cells in parts that each fit one request."""
        part: list[Cell] = []
        packets, size = 0.0, 0
        for cell in self.cells:
            part.append(cell)
            packets += cell.packets * self.seconds * _MS_PER_SECOND
            size += cell.specimen.ByteSize()
            is_full = len(part) >= _MAX_CELLS_PER_REQUEST or size >= _MAX_SPECIMEN_BYTES_PER_REQUEST
            if packets >= _MAX_PACKETS_PER_REQUEST or is_full:
                yield replace(self, cells=part)
                part, packets, size = [], 0.0, 0
        if part:
            yield replace(self, cells=part)

    @property
    def weight(self) -> float:
        """The work of the cells, in the unit of OnCells."""
        return self.seconds * sum(cell.packets for cell in self.cells)

    def request(self) -> evaluation_pb2.EvaluationRequest:
        """Builds the evaluation request of all cells."""
        return columns.packed(evaluation_request(self.tables, self.cells, self.seconds))


class CellRunner:
    """Simulates cells that the store lacks, and reads the others from it."""

    def __init__(
        self,
        evaluate: EvaluateRequest,
        store: CellStore,
        others: OtherSimulators | None = None,
        *,
        threads: int = 1,
    ) -> None:
        """Creates a runner. `threads` is the number of runs that are recorded at a time."""
        self._evaluate = evaluate
        self._store = store
        self._others = others or {}
        self._threads = threads
        #: Numbers of cells that were simulated for this runner, and read from the store.
        self.simulated = 0
        self.loaded = 0
        self._done = 0.0
        # Cells that a farm or `record_all` has simulated, but which `run` has not returned yet.
        self._received: set[bytes] = set()

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Returns the cells that the store lacks."""
        return [cell for cell in cells if self._store.get(cell.digest) is None]

    def weight(self, batches: Iterable[CellBatch]) -> float:
        """Returns the work of the cells that the store lacks, in the unit of OnCells."""
        return sum(replace(each, cells=self.missing(each.cells)).weight for each in batches)

    def parts_for_farm(self, batches: Iterable[CellBatch]) -> list[CellBatch]:
        """Returns the parts that a farm must simulate to complete the store.

        Parts are never divided, so that the same studies always give the same job. Cells of other
        simulators are left out.
        """
        covered: set[bytes] = set()
        needed = []
        for part in (part for batch in batches for part in batch.parts()):
            digests = {cell.digest for cell in part.cells}
            is_complete = part.cells[0].row.simulator or not self.missing(part.cells)
            if not is_complete and not digests <= covered:
                needed.append(part)
                covered |= digests
        return needed

    def store_outcome(self, part: CellBatch, outcome: evaluation_pb2.EvaluationOutcome) -> None:
        """Stores the outcome of a part that was simulated elsewhere."""
        self._done += self.weight([part])
        self._received.update(cell.digest for cell in self.missing(part.cells))
        self._store_outcome(part, part.request(), outcome)

    def run(
        self, tables: Tables, cells: Sequence[Cell], seconds: float, on_cells: OnCells
    ) -> list[evaluation_pb2.SpecimenOutcome]:
        """Returns the outcomes of one row's cells, in their order."""
        missing = self.missing(cells)
        received = self._received & {cell.digest for cell in cells}
        self._received -= received
        self.simulated += len(missing) + len(received)
        self.loaded += len(cells) - len(missing) - len(received)
        if missing and missing[0].row.simulator:
            self._run_other_simulator(tables, missing, seconds, on_cells)
            missing = []
        for part in CellBatch(tables, missing, seconds).parts():
            weight = part.weight
            request = part.request()

            def on_progress(progress: EvaluationProgress, weight: float = weight) -> None:
                share = progress.simulations_done / max(1, progress.simulations)
                on_cells(self._done + weight * share)

            outcome = self._evaluate(request, on_progress)
            self._done += weight
            on_cells(self._done)
            self._store_outcome(part, request, outcome)
        return [self._read(cell) for cell in cells]

    def _store_outcome(
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

    def _run_other_simulator(
        self, tables: Tables, cells: Sequence[Cell], seconds: float, on_cells: OnCells
    ) -> None:
        """Simulates cells of a row that uses another simulator, one by one."""
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
        """Returns time series of one run, as arrays with a row per time; stores them."""
        (recording,) = self.record_all(tables, [cell], seconds, every_ms, lambda _: None)
        return recording

    def record_all(
        self,
        tables: Tables,
        cells: Sequence[Cell],
        seconds: float,
        every_ms: float,
        on_cells: OnCells,
    ) -> list[dict[str, np.ndarray]]:
        """Returns the time series of several runs, in order.

        It stores them and the outcomes of these runs, so that `run` does not simulate them again.
        """
        digests = [
            _digest(tables, cell.specimen, seconds, f"{_SERIES} every {every_ms!r}")
            for cell in cells
        ]

        def simulate(cell: Cell) -> tuple[bytes, evaluation_pb2.EvaluationOutcome]:
            request = evaluation_request(tables, [cell], seconds)
            recording = columns.record(request, every_ms)
            return _series_bytes(recording), columns.recorded_outcome(request, recording)

        new = [
            (cell, digest)
            for cell, digest in zip(cells, digests, strict=True)
            if self._store.get(digest) is None
        ]
        with ThreadPoolExecutor(self._threads) as pool:
            results = pool.map(simulate, [cell for cell, _ in new])
            for (cell, digest), (series, outcome) in zip(new, results, strict=True):
                self._store.put({digest: series})
                if self._store.get(cell.digest) is None:
                    part = CellBatch(tables, [cell], seconds)
                    self._store_outcome(part, part.request(), outcome)
                    self._received.add(cell.digest)
                    self._done += part.weight
                    on_cells(self._done)
        return [self._read_series(digest) for digest in digests]

    def _read_series(self, digest: bytes) -> dict[str, np.ndarray]:
        value = self._store.get(digest)
        assert value is not None
        with np.load(io.BytesIO(value), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}


#: The time series that are stored.
_SERIES: Final = (
    "is_on",
    "packets_received",
    "packets_in_order",
    "rtt_ms",
    "waiting_packets",
)


def _series_bytes(recording: _native.NetworkRecording) -> bytes:
    """Returns a compressed archive of arrays with a row per time."""
    steps = len(recording.time_ms)
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {
        name: np.array(getattr(recording, name), dtype=float).reshape(steps, -1) for name in _SERIES
    }
    np.savez_compressed(buffer, time_ms=np.array(recording.time_ms), **arrays)
    return buffer.getvalue()
