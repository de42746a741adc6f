"""Stores a design in a directory, and keeps the files consistent with the designer."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from remy_farm.designer import CheckpointError, Designer
from remy_farm.driver.loop import Clock, DesignSession, Stopwatch
from remy_farm.driver.pareto import ParetoFile
from remy_farm.driver.progress import DesignObserver, ProgressLog
from remy_farm.evaluation.interface import Evaluation, EvaluationProgress, OnProgress
from remy_farm.files import FileError, make_folder, read_file, reason, write_file
from remy_farm.remycc import RemyCC, file_suffixes, read_remycc, reference_config, write_remycc
from remy_farm.specification import content_digest, to_yaml
from remy_farm.specification.models import designed_tables
from remy_farm.specification.referenced_files import TRACES_FOLDER, link_traces
from remy_farm.specification.traces import LinkTrace
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator import RuleTable, _native

_DISTRIBUTIONS = ("remy-farm", "remy-farm-proto", "remy-simulator", "protobuf")


def provenance_json(spec: spec_pb2.DesignSpec) -> str:
    """Returns the seed, the digests and the versions that made a design, as JSON."""
    versions = {name: version(name) for name in _DISTRIBUTIONS}
    versions["python"] = platform.python_version()
    return (
        json.dumps(
            {
                "name": spec.name,
                "seed": spec.search.seed,
                "spec_digest": content_digest(spec),
                "simulator_digest": hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest(),
                "versions": versions,
            },
            indent=2,
        )
        + "\n"
    )


_LOCK = ".lock"


class OutDirectory:
    """The paths of a design's files, and the lock that excludes a second run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        #: The designer's state, from which a design is resumed.
        self.checkpoint = self.path / "checkpoint.bin"
        #: Progress events, one per line.
        self.progress = self.path / "progress.jsonl"
        #: Throughput, delay and loss of each epoch's table.
        self.pareto = self.path / "pareto.csv"
        #: The best table so far.
        self.remycc_json = self.path / "remycc.json"
        #: The best table so far in the reference tool's format; absolute rules only.
        self.remycc_dna = self.path / "remycc.dna"
        #: The given first table; missing if the design started with the search's own.
        self.first_table = self.path / "first.json"
        #: The specification in canonical form, with all defaults and the run's budgets.
        self.spec = self.path / "spec.yaml"
        #: Folder of recorded links, whose file names are the hashes in the specification.
        self.traces = self.path / TRACES_FOLDER
        #: Seed, digests and versions that made the design.
        self.provenance = self.path / "provenance.json"

    def table_file(self, spec: spec_pb2.DesignSpec, name: str, suffix: str = ".json") -> Path:
        """Returns the path of the best table so far.

        If several tables are designed together, the file's name is `remycc-NAME`.
        """
        stem = self.remycc_json.stem
        together = len(designed_tables(spec)) > 1
        return self.path / f"{stem}-{name}{suffix}" if together else self.path / f"{stem}{suffix}"

    def write_recordings(self, recordings: Iterable[LinkTrace]) -> None:
        """Writes the recorded links that the directory does not have yet. Raises FileError."""
        for recording in recordings:
            file = self.traces / f"{recording.sha256.hex()}.trace"
            if not file.exists():
                make_folder(self.traces)
                write_file(file, recording.text())

    @property
    def has_run(self) -> bool:
        """Whether a run has used the directory, even if it ended before its first checkpoint."""
        return (self.path / _LOCK).exists()

    def check(self, *, resume: bool) -> None:
        """Raises FileError unless a run may start here without overwriting other files.

        With `resume` the directory must hold a design.
        """
        if self.checkpoint.exists():
            if not resume:
                raise FileError(
                    f"{self.path} already holds a design; resume it, or choose another directory"
                )
            return
        if resume and not self.has_run:
            raise FileError(
                f"{self.path} holds no design to resume ({self.checkpoint.name} is missing); omit "
                f"--resume to start one"
            )
        others = self._others()
        if others:
            shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
            raise FileError(
                f"{self.path} holds other files ({shown}), and no design to resume; choose a "
                f"directory that is new or empty"
            )

    def remove_temporary_files(self) -> None:
        """Removes temporary files that a killed run has left. Raises FileError."""
        try:
            for file in self._written():
                for leftover in self.path.glob(f".{file.name}.*.tmp"):
                    leftover.unlink()
            for leftover in self.path.glob(f".{self.remycc_json.stem}-*.tmp"):
                leftover.unlink()
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({reason(error)})") from error

    def _written(self) -> tuple[Path, ...]:
        """Returns the files that are written to a temporary file and then renamed."""
        return (
            *(self.checkpoint, self.pareto, self.remycc_json, self.remycc_dna),
            *(self.first_table, self.spec, self.provenance),
        )

    def _others(self) -> list[str]:
        """Returns the names of the files that do not belong to a run without a checkpoint."""
        if not self.path.is_dir():
            return []
        of_run = {_LOCK}
        if self.has_run and not (self.progress.exists() and self.progress.stat().st_size):
            early = (self.first_table, self.spec, self.provenance, self.pareto, self.progress)
            of_run.add(self.traces.name)
            of_run.update(each.name for each in early)
            for file in self._written():
                of_run.update(each.name for each in self.path.glob(f".{file.name}.*.tmp"))
        return sorted(each.name for each in self.path.iterdir() if each.name not in of_run)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Creates the directory if it is missing, and locks it against other runs.

        The operating system releases the lock when this process ends, even if it is killed. Raises
        FileError if another run has the lock.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({reason(error)})") from error
        try:
            self._take(lock)
            yield
        finally:
            os.close(lock)

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileError(f"{self.path} is in use by another run; wait for its end") from error
        except OSError as error:
            raise FileError(f"{self.path}: cannot be locked ({reason(error)})") from error


# The order of the writes makes a crash harmless: first the lines of progress.jsonl and pareto.csv,
# then the checkpoint that counts them, then the table. A resume drops the lines that the checkpoint
# does not count, makes the lost steps again, and writes the same lines again.


_MAX_CHECKPOINT_BYTES = 1 << 30


class DirectorySink:
    """Stores the design of a session in a directory, and reports it to an observer. See `Sink`."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        out: OutDirectory,
        *,
        clock: Clock,
        checkpoint_seconds: float,
        first_table: RuleTable | None,
        observer: DesignObserver,
    ) -> None:
        """Resumes the design in the directory, or starts a new one if it holds none.

        The directory must be locked and checked. `first_table` replaces the search's own first
        table. `checkpoint_seconds` is the minimum time between two checkpoints. Raises FileError.
        """
        resumed = out.checkpoint.exists()
        if first_table is None and resumed and out.first_table.exists():
            first_table = read_remycc(out.first_table).table
        if resumed:
            designer = resumed_designer(spec, out, first_table)
        else:
            designer = Designer(spec, first_table=first_table)
        out.remove_temporary_files()
        #: Specification of the design, with this run's budgets.
        self.spec = spec
        #: The given first table; None if the design started with the search's own.
        self.first_table = first_table
        self._out = out
        self._pareto = ParetoFile(out.pareto, designer.steps)
        self._log = ProgressLog(out.progress, designer.event_sequence)
        self.session = DesignSession(
            designer, spec, Stopwatch(self._log.elapsed, clock), first_table=first_table
        )
        self.session.on_events = self._keep
        self._observer = observer
        self._checkpoint_seconds = checkpoint_seconds
        self._saved_at = time.monotonic()
        self._written: dict[str, RuleTable] = {}
        self._shown: RuleTable | None = None
        try:
            # The checkpoint is written last. Once it exists, a resume reads the length of the
            # schedule from the specification beside it.
            if first_table is not None:
                write_remycc(out.first_table, RemyCC(first_table))
            out.write_recordings(link_traces(spec))
            write_file(out.spec, to_yaml(spec))
            write_file(out.provenance, provenance_json(spec))
            self.save()
        except BaseException:
            self.close()
            raise
        observer.started(designer.steps, resumed=resumed)

    def close(self) -> None:
        """Closes the progress log."""
        self._log.close()

    @contextmanager
    def step(self, request: evaluation_pb2.EvaluationRequest) -> Iterator[OnProgress]:
        designer, candidates = self.session.designer, len(request.candidates)
        rules = sum(node.HasField("action") for node in request.tables[0].nodes)
        started = time.monotonic()

        def report(done: EvaluationProgress) -> None:
            part = done.simulations_done / max(done.simulations, 1)
            seconds = time.monotonic() - started
            elapsed = self.session.stopwatch.elapsed()
            self._observer.progress(
                progress_pb2.JobProgress(
                    step=designer.steps + 1,
                    epoch=designer.epoch,
                    rules=rules,
                    candidates=candidates,
                    candidates_done=int(part * candidates),
                    simulated_packets=done.simulated_packets,
                    packets_per_second=done.simulated_packets / seconds if seconds > 0 else 0.0,
                    wall_seconds=elapsed.wall_seconds,
                    cpu_seconds=elapsed.cpu_seconds,
                    eta_seconds=self.session.eta_seconds(self.spec.stop, part),
                )
            )

        yield report

    async def on_step(self, evaluation: Evaluation) -> None:
        if time.monotonic() - self._saved_at >= self._checkpoint_seconds:
            self.save()

    async def finish(self, reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec) -> bool:
        self.save()
        return True

    async def suspend(self) -> None:
        self.save()

    def save(self) -> None:
        """Writes a checkpoint, and the tables that have changed. Raises FileError."""
        designer = self.session.designer
        self._log.sync()
        self._pareto.save()
        if self.spec.search.follow_workers:
            write_file(self._out.spec, to_yaml(designer.replayable_spec))
        write_file(self._out.checkpoint, designer.checkpoint())
        for name, table in designer.tables.items():
            if self._written.get(name) != table:
                remycc = RemyCC(table, reference_config(self.spec))
                for suffix in file_suffixes(table):
                    write_remycc(self._out.table_file(self.spec, name, suffix), remycc)
                self._written[name] = table
        self._saved_at = time.monotonic()

    def _keep(
        self,
        events: Sequence[progress_pb2.ProgressEvent],
        request: evaluation_pb2.EvaluationRequest | None,
        outcome: evaluation_pb2.EvaluationOutcome | None,
    ) -> None:
        """Writes events to the progress log, and then reports them to the observer."""
        if request is not None and outcome is not None:
            self._pareto.observe(request, outcome, events)
        self._log.append(events)
        designer = self.session.designer
        if self._shown is None or designer.table != self._shown:
            self._shown = designer.table
            self._observer.published(self._shown, designer.steps)
        for event in events:
            self._observer.event(event)


def resumed_designer(
    spec: spec_pb2.DesignSpec, out: OutDirectory, first_table: RuleTable | None
) -> Designer:
    """Resumes the designer of a directory from its last checkpoint. Raises FileError."""
    data = read_file(out.checkpoint, limit=_MAX_CHECKPOINT_BYTES)
    try:
        return Designer.resume(spec, data, first_table=first_table)
    except CheckpointError as error:
        raise FileError(f"{out.checkpoint}: {error}") from error
