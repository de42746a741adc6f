"""A design's files, kept in step with its designer.

The order of the writes is what makes a crash harmless: the lines of progress.jsonl and pareto.csv
first, then the checkpoint that counts them, then the table. A resume drops the lines that the
checkpoint does not count, makes the lost steps again, and writes the same lines again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from remy_farm.v1 import progress_pb2, spec_pb2
from remy_services.designer import CheckpointError, Designer
from remy_services.embedded.clock import Clock
from remy_services.embedded.out_directory import OutDirectory
from remy_services.embedded.pareto import ParetoFile
from remy_services.embedded.progress_log import ProgressLog
from remy_services.embedded.provenance import provenance_json
from remy_services.files import FileError, read_file, write_file
from remy_services.remycc import RemyCC, read_remycc, write_remycc
from remy_services.remycc.reference_config import reference_config
from remy_services.spec import to_yaml
from remy_simulator import RuleTable

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
