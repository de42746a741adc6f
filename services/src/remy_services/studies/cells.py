"""Cells of a study: one network, one kind of senders, one run; each simulated once and kept.

A cell is a pure function of its request, so that it is kept by the request's digest: whoever asks
for it again, for another figure or after a stop, has it at once and with the same bytes.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.interface import EvaluationProgress, OnProgress
from remy_services.evaluation.measures import link_rate_packets_per_ms
from remy_services.evaluation.senders import USUAL_PACKET_BYTES, bottleneck
from remy_services.files import FileError, reason
from remy_services.remycc import read_remycc
from remy_services.studies.reading import layered
from remy_services.studies.study import PUBLISHED, FigureStudy, StudyRow
from remy_simulator import _native, columns, log2, uniform

REFERENCE_VARIABLE = "REMY_REFERENCE_DIR"
#: Names the random draws of all studies; the number of the run is the specimen's key.
SEED = 1

_MS_PER_SECOND = 1000.0
_BITS_PER_BYTE = 8
# Changes where the same request means something else.
_FORMAT = b"cell 1 "
# Names the draws of when senders are first on, among those of a run.
_FIRST_ON = 0x66697273
_LN_2 = 0.6931471805599453
# What is lost of the work when a study is stopped: some ten seconds of one processor.
_PACKETS_A_REQUEST = 2e7
_MOST_CELLS_A_REQUEST = 2000


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


def reference_folder() -> Path | None:
    """Where published tables and curves are; none if nobody says so."""
    folder = os.environ.get(REFERENCE_VARIABLE)
    return Path(folder) if folder else None


def remycc_path(name: str, examples: Path) -> Path:
    """The file that a study means. Raises FileError for a published one that is not here."""
    if not name.startswith(PUBLISHED):
        return examples / name
    folder = reference_folder()
    if folder is None:
        raise FileError(
            f"{name} needs {REFERENCE_VARIABLE}, the folder whose subfolder remyccs holds the "
            "published .dna files"
        )
    return folder / "remyccs" / name.removeprefix(PUBLISHED)


def read_tables(row: StudyRow, examples: Path) -> Tables:
    """Raises FileError."""
    messages = tuple(
        read_remycc(remycc_path(name, examples), row.time_unit_ms)
        .to_message()
        .SerializeToString(deterministic=True)
        for name in _table_names(row)
    )
    return Tables(messages, hashlib.sha256(b"".join(messages)).digest())


def _table_names(row: StudyRow) -> list[str]:
    return list(dict.fromkeys(each.remycc for each in row.senders if each.remycc is not None))


# Networks of a study as the simulator has them.


def packet_bytes(network: Mapping[str, Any]) -> float:
    """On the wire."""
    return float(network.get("packet_bytes", USUAL_PACKET_BYTES))


def buffer_packets(network: Mapping[str, Any]) -> int | None:
    """Packets that may wait; None: as many as come."""
    rate = link_rate_packets_per_ms(network["link_mbps"], packet_bytes(network))
    if "buffer_packets" in network:
        return int(network["buffer_packets"])
    if "buffer_kilobytes" in network:
        return int(network["buffer_kilobytes"] * 1000 / packet_bytes(network))
    if "buffer_ms" in network:
        return int(rate * network["buffer_ms"])
    if "buffer_bdp" in network:
        return int(rate * network["rtt_ms"] * network["buffer_bdp"])
    return None


def sender_counts(row: StudyRow, network: Mapping[str, Any]) -> list[int]:
    """Of each kind of senders: where there is one kind, the network says how many."""
    if len(row.senders) == 1 and "senders" in network:
        return [int(network["senders"])]
    return [each.count for each in row.senders]


def _traffic(network: Mapping[str, Any], senders: int) -> evaluation_pb2.Traffic:
    traffic = evaluation_pb2.Traffic()
    if "on_ms" in network:
        traffic.exponential_time.mean_ms = network["on_ms"]
    elif "on_bytes" in network:
        traffic.exponential_bytes.mean_bytes = network["on_bytes"]
    else:
        traffic.empirical_bytes.name = "icsi"
        traffic.empirical_bytes.extra_bytes = network["on_icsi_extra_bytes"]
    if "load" in network:
        # Flows take little of the time between their beginnings, where there are many senders.
        bits = senders * network["on_bytes"] * _BITS_PER_BYTE
        traffic.mean_off_ms = bits / (network["load"] * network["link_mbps"] * _MS_PER_SECOND)
    else:
        traffic.mean_off_ms = network["off_ms"]
    return traffic


def specimen_of(row: StudyRow, network: Mapping[str, Any], key: int) -> evaluation_pb2.Specimen:
    """The network with the row's senders."""
    counts = sender_counts(row, network)
    specimen = evaluation_pb2.Specimen(
        key=key,
        link_rate_packets_per_ms=link_rate_packets_per_ms(
            network["link_mbps"], packet_bytes(network)
        ),
        rtt_ms=network["rtt_ms"],
        buffer_packets=buffer_packets(network),
        loss_probability=network.get("loss", 0.0),
        bottleneck=bottleneck(
            network.get("queue"), packet_bytes(network), network.get("ack_bytes", 0)
        ),
    )
    traffic = _traffic(network, sum(counts))
    files = _table_names(row)
    first_on_ms = _first_on_ms(network, sum(counts), key)
    sender = 0
    for words, senders in zip(row.senders, counts, strict=True):
        # Senders that begin at times of their own are groups of their own.
        groups = [senders] if first_on_ms is None else [1] * senders
        for count in groups:
            group = specimen.senders.add(count=count, traffic=traffic)
            group.MergeFrom(words.group(network.get("body")))
            if words.remycc is not None:
                group.table = files.index(words.remycc)
            if first_on_ms is not None:
                group.first_on_ms = first_on_ms[sender]
            sender += count
    return specimen


def _first_on_ms(network: Mapping[str, Any], senders: int, key: int) -> list[float] | None:
    """When senders are first on; None where that is after a time off."""
    if "starts_apart_ms" in network:
        return [network["starts_apart_ms"] * sender for sender in range(senders)]
    if "first_on_mean_ms" in network:
        draws = (uniform(SEED, _FIRST_ON, key, sender) for sender in range(senders))
        return [-network["first_on_mean_ms"] * _LN_2 * log2(1.0 - draw) for draw in draws]
    return None


def request_of(
    tables: Tables, specimens: Sequence[evaluation_pb2.Specimen], seconds: float
) -> evaluation_pb2.EvaluationRequest:
    """All of these specimens, as an evaluator takes them."""
    request = evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate()],
        specimens=specimens,
        duration_ms=seconds * _MS_PER_SECOND,
        seed=SEED,
    )
    for message in tables.messages:
        request.tables.add().ParseFromString(message)
    return request


def cells_of(study: FigureStudy, row: StudyRow, tables: Tables, *, quick: bool) -> Iterator[Cell]:
    """Of a row, by what is varied, then by run. Every row has the same draws in the same run."""
    (runs,) = study.runs.of(quick=quick)
    for x in study.sweep.values.of(quick=quick) if study.sweep else (None,):
        varied = {study.sweep.field: x} if study.sweep else {}
        network = layered(study.network, row.network, varied)
        for run in range(int(runs)):
            yield cell_of(row, tables, network, run, study.seconds, x)


def cell_of(
    row: StudyRow,
    tables: Tables,
    network: Mapping[str, Any],
    run: int,
    seconds: float,
    x: float | None = None,
) -> Cell:
    """The row's senders on one network."""
    specimen = specimen_of(row, network, run)
    return Cell(row, x, run, network, specimen, _digest(tables, specimen, seconds))


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


class CellRunner:
    """Simulates what a store does not have."""

    def __init__(self, evaluate: EvaluateRequest, store: CellStore) -> None:
        self._evaluate = evaluate
        self._store = store
        #: Simulated here, and found in the store.
        self.simulated = 0
        self.found = 0
        self._done = 0.0

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those that are to be simulated."""
        return [cell for cell in cells if self._store.get(cell.digest) is None]

    def run(
        self, tables: Tables, cells: Sequence[Cell], seconds: float, on_cells: OnCells
    ) -> list[evaluation_pb2.SpecimenOutcome]:
        """What cells of one row came to, in their order."""
        missing = self.missing(cells)
        self.simulated += len(missing)
        self.found += len(cells) - len(missing)
        for part in _parts(missing, seconds):
            weight = sum(cell.packets for cell in part) * seconds
            request = columns.packed(request_of(tables, [cell.specimen for cell in part], seconds))

            def progress(now: EvaluationProgress, weight: float = weight) -> None:
                share = now.simulations_done / max(1, now.simulations)
                on_cells(self._done + weight * share)

            outcome = self._evaluate(request, progress)
            self._done += weight
            on_cells(self._done)
            results = columns.specimen_outcomes(request, outcome)
            self._store.put(
                {
                    cell.digest: result.SerializeToString(deterministic=True)
                    for cell, result in zip(part, results, strict=True)
                }
            )
        return [self._read(cell) for cell in cells]

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
            seen = columns.record(request_of(tables, [cell.specimen], seconds), every_ms)
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


def _parts(cells: Sequence[Cell], seconds: float) -> Iterator[list[Cell]]:
    part: list[Cell] = []
    packets = 0.0
    for cell in cells:
        part.append(cell)
        packets += cell.packets * seconds * _MS_PER_SECOND
        if packets >= _PACKETS_A_REQUEST or len(part) >= _MOST_CELLS_A_REQUEST:
            yield part
            part, packets = [], 0.0
    if part:
        yield part
