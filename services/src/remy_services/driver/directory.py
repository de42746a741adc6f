"""A design's directory: its files, kept in step with its designer."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import TracebackType

from remy_farm.v1 import progress_pb2, spec_pb2
from remy_services.designer import CheckpointError, Designer
from remy_services.designer.budgets import Elapsed
from remy_services.driver.pareto import ParetoFile
from remy_services.driver.progress import ProgressLog
from remy_services.files import FileError, read_file, reason, write_file
from remy_services.remycc import RemyCC, read_remycc, reference_config, write_remycc
from remy_services.specification import content_digest, to_yaml
from remy_simulator import RuleTable, _native

# How long a design has run, over all of its runs.


class Clock:
    """Goes on from what earlier runs have used; CPU time is that of this process."""

    def __init__(self, before: Elapsed) -> None:
        self._wall_origin = time.monotonic() - before.wall_seconds
        self._cpu_origin = time.process_time() - before.cpu_seconds

    def elapsed(self) -> Elapsed:
        """Time used up to now."""
        return Elapsed(
            wall_seconds=time.monotonic() - self._wall_origin,
            cpu_seconds=time.process_time() - self._cpu_origin,
        )


# What made a design: enough to make it again.


_DISTRIBUTIONS = ("remy-farm", "remy-farm-proto", "remy-simulator", "protobuf")


def provenance_json(spec: spec_pb2.DesignSpec) -> str:
    """Seed, digests and versions, as JSON."""
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


# The directory that a design lives in.


class OutDirectory:
    """Names of a design's files, and the lock that keeps a second run away."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def checkpoint(self) -> Path:
        """The designer's state: all that a resume needs."""
        return self.path / "checkpoint.bin"

    @property
    def progress(self) -> Path:
        """What happened, one event a line."""
        return self.path / "progress.jsonl"

    @property
    def pareto(self) -> Path:
        """Throughput and delay of each epoch's table."""
        return self.path / "pareto.csv"

    @property
    def remycc_json(self) -> Path:
        """The best table so far."""
        return self.path / "remycc.json"

    @property
    def remycc_dna(self) -> Path:
        """The same in the reference tool's format."""
        return self.path / "remycc.dna"

    @property
    def first_table(self) -> Path:
        """The table that the design was given to begin with; there is no file if it was none."""
        return self.path / "first.json"

    @property
    def spec(self) -> Path:
        """The specification in canonical form, with all defaults and the run's budgets."""
        return self.path / "spec.yaml"

    @property
    def provenance(self) -> Path:
        """Seed, digests and versions of what made the design."""
        return self.path / "provenance.json"

    def remove_leftovers(self) -> None:
        """Removes what a run was writing when it was killed. Raises FileError."""
        try:
            for file in (
                self.checkpoint,
                self.pareto,
                self.remycc_json,
                self.remycc_dna,
                self.first_table,
                self.spec,
                self.provenance,
            ):
                for leftover in self.path.glob(f".{file.name}.*.tmp"):
                    leftover.unlink()
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({reason(error)})") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the directory if need be, and keeps other runs out of it.

        The operating system frees the lock when this process ends, however it ends. Raises
        FileError.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
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


# A design's files, kept in step with its designer.
#
# The order of the writes is what makes a crash harmless: the lines of progress.jsonl and pareto.csv
# first, then the checkpoint that counts them, then the table. A resume drops the lines that the
# checkpoint does not count, makes the lost steps again, and writes the same lines again.


_CHECKPOINT_BYTES = 1 << 30


class Keeper:
    """Holds a designer and keeps what it hands out."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        designer: Designer,
        out: OutDirectory,
        log: ProgressLog,
        pareto: ParetoFile,
        *,
        resumed: bool,
        checkpoint_seconds: float,
    ) -> None:
        self._spec = spec
        self.designer = designer
        #: Whether there was a checkpoint to resume from.
        self.resumed = resumed
        #: What the design was given to begin with; None if it was nothing.
        self.first_table: RuleTable | None = None
        self.clock = Clock(log.elapsed)
        #: To be told of every outcome, before `keep` is.
        self.pareto = pareto
        self._out = out
        self._log = log
        self._checkpoint_seconds = checkpoint_seconds
        self._saved_at = time.monotonic()
        self._published: RuleTable | None = None

    @classmethod
    def open(
        cls,
        spec: spec_pb2.DesignSpec,
        out: OutDirectory,
        *,
        resume: bool,
        checkpoint_seconds: float,
        first_table: RuleTable | None = None,
    ) -> Keeper:
        """The design in the (locked) directory, or a new one if it holds none.

        A new one begins with `first_table` if one is given. There will be at most one checkpoint
        in `checkpoint_seconds`. Raises FileError.
        """
        resumed = out.checkpoint.exists()
        if resumed and not resume:
            raise FileError(
                f"{out.path} already holds a design; resume it, or choose another directory"
            )
        if first_table is None and resumed and out.first_table.exists():
            first_table = read_remycc(out.first_table).table
        if resumed:
            designer = _resumed(spec, out, first_table)
        else:
            designer = Designer(spec, first_table=first_table)
        out.remove_leftovers()
        pareto = ParetoFile(out.pareto, designer.steps)
        log = ProgressLog(out.progress, designer.event_sequence)
        keeper = cls(
            spec, designer, out, log, pareto, resumed=resumed, checkpoint_seconds=checkpoint_seconds
        )
        keeper.first_table = first_table
        try:
            # The checkpoint last: it makes the directory this design's, and a resume may ask the
            # specification beside it how long the design is.
            if first_table is not None:
                write_remycc(out.first_table, RemyCC(first_table))
            write_file(out.spec, to_yaml(spec))
            write_file(out.provenance, provenance_json(spec))
            keeper.save()
        except BaseException:
            log.close()
            raise
        return keeper

    def __enter__(self) -> Keeper:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._log.close()

    def keep(self, events: Sequence[progress_pb2.ProgressEvent]) -> None:
        """Adds the clock to the events and writes them; from time to time, a checkpoint.

        Must be called with all events that a call of the designer returned, before the next call.
        Raises FileError.
        """
        elapsed = self.clock.elapsed()
        for event in events:
            event.wall_seconds = elapsed.wall_seconds
            event.cpu_seconds = elapsed.cpu_seconds
        self._log.append(events)
        if time.monotonic() - self._saved_at >= self._checkpoint_seconds:
            self.save()

    def save(self) -> None:
        """Writes a checkpoint, and the table if it is a new one. Raises FileError."""
        self._log.sync()
        self.pareto.save()
        write_file(self._out.checkpoint, self.designer.checkpoint())
        table = self.designer.table
        if self._published is None or table != self._published:
            remycc = RemyCC(table, reference_config(self._spec))
            write_remycc(self._out.remycc_json, remycc)
            write_remycc(self._out.remycc_dna, remycc)
            self._published = table
        self._saved_at = time.monotonic()


def _resumed(
    spec: spec_pb2.DesignSpec, out: OutDirectory, first_table: RuleTable | None
) -> Designer:
    data = read_file(out.checkpoint, limit=_CHECKPOINT_BYTES)
    try:
        return Designer.resume(spec, data, first_table=first_table)
    except CheckpointError as error:
        raise FileError(f"{out.checkpoint}: {error}") from error
