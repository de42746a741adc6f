"""Designs tables in this process: `design`, `load_design` and their result."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from remy_farm.analysis.design_report import report_design
from remy_farm.analysis.history import History, collect_history
from remy_farm.analysis.report import Gain, measure_gain
from remy_farm.analysis.wording import (
    duration,
    enum_name,
    escape,
    plural,
    stop_reason,
)
from remy_farm.api.progress import ProgressLine, progress_line
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Plot, Rows, Tabular, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.progress import DesignObserver, read_events
from remy_farm.driver.run import DesignResult, DesignRun, stored_design, with_length
from remy_farm.files import FileError
from remy_farm.remycc import RemyCC, reference_config
from remy_proto.v1 import progress_pb2, spec_pb2
from remy_simulator import RuleTable
from remy_simulator.cpus import allowed_cpus


@dataclass(frozen=True)
class Progress:
    """The progress of a design, which a callback receives after every step."""

    #: Steps made since the design began.
    step: int
    #: Epochs completed since the design began.
    epoch: int
    #: Number of rules of the current table.
    rules: int
    #: Score of the current table, from the last step that measured it; None before the first.
    score: float | None
    #: Standard error of the score.
    score_standard_error: float | None
    #: Wall time used since the design began, s.
    wall_seconds: float
    #: CPU time of all simulations since the design began, s.
    cpu_seconds: float
    #: Estimate of the remaining wall time, s; None if there is no estimate.
    left_seconds: float | None
    #: The best table so far.
    table: Table


class TemporaryFolder:
    """A new folder that is removed when this object is garbage-collected or the process ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="remy-farm-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


#: Called with the progress after every step; it ends the design, as Ctrl-C does, by returning True.
Callback = Callable[[Progress], bool | None]


class Design(Tabular):
    """A finished or interrupted design: its tables, its history and its files."""

    def __init__(
        self, directory: OutDirectory, result: DesignResult, kept: TemporaryFolder | None = None
    ) -> None:
        """Wraps the result of a run; `kept` keeps a temporary directory from being removed."""
        self._out = directory
        #: The result of the last run.
        self.result = result
        self._kept = kept
        #: The specification, with a number of steps in place of seconds, so that it repeats this
        #: design.
        self.spec = Spec.of_message(_in_steps(result))
        #: The published tables by name; more than one only if several were designed together.
        self.tables = {
            name: _named(result.spec, name, table) for name, table in result.tables.items()
        }

    @property
    def table(self) -> Table:
        """The designed table; the first one if several were designed together."""
        return next(iter(self.tables.values()))

    @property
    def first(self) -> Table:
        """The table that the search started from; the first one if there are several."""
        return _named(self.result.spec, "first table", self.result.first[0])

    @property
    def directory(self) -> Path:
        """The directory of the design's files; a temporary one is removed with this object."""
        return self._out.path

    @property
    def is_finished(self) -> bool:
        """Whether the design is finished. If not, `design` with its directory resumes it."""
        return self.result.reason is not None

    @property
    def reason(self) -> str | None:
        """Why the design finished, such as "schedule_complete"; None if it was interrupted."""
        return enum_name(progress_pb2.StopReason.DESCRIPTOR, self.result.reason or 0)

    @property
    def steps(self) -> int:
        """Steps made since the design began."""
        return self.result.steps

    @property
    def epochs(self) -> int:
        """Epochs completed since the design began."""
        return len(self.result.epochs)

    @property
    def wall_seconds(self) -> float:
        """Wall time used since the design began, s."""
        return self.result.wall_seconds

    @property
    def cpu_seconds(self) -> float:
        """CPU time of its simulations since the design began, s."""
        return self.result.cpu_seconds

    def history(self) -> History:
        """Returns the events of the design by kind and step. Raises FileError."""
        return collect_history(self._events())

    def _events(self) -> Iterator[progress_pb2.ProgressEvent]:
        """Yields the events; there are none if the design was interrupted before its first step."""
        return read_events(self._out.progress) if self._out.progress.exists() else iter(())

    def rows(self) -> Rows:
        """Returns a row per step.

        The score is that of the table before the step, on the step's own networks; None if the step
        measured none.
        """
        kinds = {
            "step": int,
            "epoch": int,
            "purpose": str,
            "rules": int,
            "score": float,
            "score_standard_error": float,
            "simulated_packets": int,
            "wall_seconds": float,
            "cpu_seconds": float,
        }
        purposes = progress_pb2.StepPurpose.DESCRIPTOR
        rows = []
        for event in self._events():
            if event.HasField("step_finished"):
                done = event.step_finished
                score = done.score if done.HasField("score") else None
                rows.append(
                    {
                        "step": event.step,
                        "epoch": event.epoch,
                        "purpose": enum_name(purposes, done.purpose),
                        "rules": done.rules,
                        "score": None if score is None else score.mean,
                        "score_standard_error": None if score is None else score.standard_error,
                        "simulated_packets": done.simulated_packets,
                        "wall_seconds": event.wall_seconds,
                        "cpu_seconds": event.cpu_seconds,
                    }
                )
        return rows_of(kinds, rows)

    def gain(self, *, threads: int | None = None) -> Gain:
        """Compares the first and the designed table on fresh networks, as many as in validation."""
        with local_evaluator(threads) as evaluator:
            return measure_gain(
                self.result.spec,
                self.result.first,
                [*self.result.tables.values()],
                evaluate=evaluator.evaluate,
            )

    def report(self, *, threads: int | None = None) -> Gain:
        """Writes the report, a page with two plots, into the design's directory.

        Returns the gain over the first table. Raises FileError.
        """
        with local_evaluator(threads) as evaluator:
            return report_design(self._out, self.result, evaluate=evaluator.evaluate)

    def table_files(self) -> dict[str, Path]:
        """Returns the path of each table's .json file by the table's name."""
        return {name: self._out.table_file(self.result.spec, name) for name in self.tables}

    def plot(self) -> Plot:
        """Draws the score over the steps of the design."""
        from remy_farm.analysis.plots import draw_score

        return Plot(draw_score(self.history()))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Copies the design's files to a new or empty directory, where it can be resumed.

        Raises FileError.
        """
        target = Path(directory)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileError(f"{target} already exists; choose a directory that is new or empty")
        try:
            shutil.copytree(self.directory, target, dirs_exist_ok=True)
        except OSError as error:
            raise FileError(f"{target}: cannot be written ({error.strerror})") from error

    def __repr__(self) -> str:
        return f"Design({self.spec.name!r}: {self._sentence()})"

    def _sentence(self) -> str:
        reason = self.result.reason
        ended = "interrupted" if reason is None else f"finished because {stop_reason(reason)}"
        rules = " and ".join(plural(len(table), "rule") for table in self.tables.values())
        return (
            f"{rules} after {plural(self.steps, 'step')} and {plural(self.epochs, 'epoch')} in "
            f"{duration(self.wall_seconds)} ({duration(self.cpu_seconds)} CPU); {ended}"
        )

    def _repr_html_(self) -> str:
        tables = "".join(table._repr_html_() for table in self.tables.values())
        return f"<p><b>{escape(self.spec.name)}</b>: {escape(self._sentence())}.</p>{tables}"


def _in_steps(result: DesignResult) -> spec_pb2.DesignSpec:
    """Returns the specification of a run; if CPU time ended it, steps replace the seconds."""
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(result.spec)
    if result.reason == progress_pb2.STOP_REASON_CPU_SECONDS:
        spec.stop.ClearField("cpu_seconds")
        spec.stop.steps = result.steps
    return spec


def _named(spec: spec_pb2.DesignSpec, name: str, table: RuleTable) -> Table:
    display_name = spec.name if name == "remycc" and spec.name else name
    return Table(RemyCC(table, reference_config(spec)), display_name)


def design(
    spec: Spec,
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int | None = None,
    directory: str | os.PathLike[str] | None = None,
    first: Table | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    callback: Callback | None = None,
    resume: bool | None = None,
    observer: DesignObserver | None = None,
) -> Design:
    """Searches for the table with the best score (TCP ex Machina, section 4.3).

    The same specification and seed give the same table, byte for byte, with any number of threads.
    Ctrl-C, or the stop button of a notebook, ends the design early and returns the best table so
    far.

    Args:
        spec: The networks, the objective and the settings of the search.
        seconds: CPU time of all simulations, s; on n threads the design takes about an n-th of it.
            It is converted to a number of steps, which `Design.spec` holds, so that the design can
            be repeated. None: as in the specification.
        steps: Length of the schedule, in place of `seconds`.
        seed: Replaces the specification's seed.
        directory: Directory to store the design in after each step. An interrupted design of this
            specification in it is resumed. None: a temporary folder, removed with the result.
        first: First table, in place of the search's own.
        threads: Number of threads that simulate; by default one per allowed CPU.
        progress: Whether to show a progress line on standard error; by default only if that is a
            terminal or a notebook.
        callback: Called with the progress after every step; ends the design by returning True.
        resume: True if the directory must hold a design, False if it must not; by default either is
            allowed.
        observer: Receives all events, in place of `callback` and the progress line.

    Returns:
        The design: its table, history and files. `is_finished` is False if it was interrupted.

    Raises:
        SpecError: `seconds` or `steps` is out of range, or both are given.
        DesignerError: The search has no schedule of `steps`, or cannot start from `first`.
        FileError: The directory holds other files, is in use, or cannot be written.
    """
    message = with_length(spec.message, seconds=seconds, steps=steps, seed=seed)
    kept = None
    if directory is None:
        kept = TemporaryFolder()
        directory = kept.path
    out = OutDirectory(directory)
    run = DesignRun(
        message,
        directory,
        threads=threads or allowed_cpus(),
        resume=out.has_run if resume is None else resume,
        first_table=None if first is None else first.rule_table,
    )
    if observer is not None:
        return Design(out, run.run(observer), kept)
    reporter = ProgressReporter(
        message, callback, progress_line(spec.name, progress), run.interrupt
    )
    try:
        return Design(out, run.run(reporter), kept)
    finally:
        reporter.close()


def load_design(
    directory: str | os.PathLike[str], *, kept: TemporaryFolder | None = None
) -> Design:
    """Loads the design in a directory, without resuming it.

    Args:
        directory: Directory that `design`, or the command of that name, stored the design in.
        kept: Temporary folder around the directory, which the design keeps from being removed.

    Returns:
        The design.

    Raises:
        FileError: The directory holds no design, or a file is damaged.
    """
    out = OutDirectory(directory)
    return Design(out, stored_design(out), kept)


class ProgressReporter(DesignObserver):
    """An observer that reports progress to a callback and to a progress line."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        callback: Callback | None,
        line: ProgressLine | None,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        """`end` is called to end the run, if the callback returns True."""
        self._spec = spec
        self._callback = callback
        self._line = line
        self._table: RuleTable | None = None
        self._known = progress_pb2.JobProgress()
        self._end = end

    def close(self) -> None:
        """Ends the progress line."""
        if self._line is not None:
            self._line.close()

    def published(self, table: RuleTable, steps: int) -> None:
        self._table = table

    def progress(self, progress: progress_pb2.JobProgress) -> None:
        self._known.ClearField("eta_seconds")
        self._known.MergeFrom(progress)
        if self._line is not None:
            self._line.show(self._known)

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        if not event.HasField("step_finished"):
            return
        done, known = event.step_finished, self._known
        if done.HasField("score"):
            known.score.CopyFrom(done.score)
        known.step, known.epoch, known.rules = event.step, event.epoch, done.rules
        known.wall_seconds, known.cpu_seconds = event.wall_seconds, event.cpu_seconds
        if self._callback is None or self._table is None:
            return
        has_score = known.HasField("score")
        report = Progress(
            step=known.step,
            epoch=known.epoch,
            rules=known.rules,
            score=known.score.mean if has_score else None,
            score_standard_error=known.score.standard_error if has_score else None,
            wall_seconds=known.wall_seconds,
            cpu_seconds=known.cpu_seconds,
            left_seconds=known.eta_seconds if known.HasField("eta_seconds") else None,
            table=_named(self._spec, "remycc", self._table),
        )
        if self._callback(report) is True:
            self._end()
