"""Designing: a search from a specification to a table, in this process."""

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
    several,
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
    """The progress of a design, which a callback gets after every step."""

    #: Steps made since the design began, and epochs ended.
    step: int
    epoch: int
    #: Rules of the table that is improved.
    rules: int
    #: Its score before the last step that had one, and the standard error; None before the first.
    score: float | None
    score_standard_error: float | None
    #: Time used since the design began, s; CPU time is that of its simulations.
    wall_seconds: float
    cpu_seconds: float
    #: A guess at the wall time left, s; None where there is nothing to go by.
    left_seconds: float | None
    #: The best table so far.
    table: Table


class PassingFolder:
    """A new folder that is removed with this object, or with the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="remy-farm-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


#: Is told after every step how far the design is; ends it, as Ctrl-C does, by returning True.
Callback = Callable[[Progress], bool | None]


class Design(Tabular):
    """A design as far as it has come: its tables, its history and its files."""

    def __init__(
        self, directory: OutDirectory, result: DesignResult, kept: PassingFolder | None = None
    ) -> None:
        """Wraps the result of a run; `kept` must live as long as the directory is read."""
        self._out = directory
        #: As the run ended, in messages.
        self.result = result
        self._kept = kept
        #: The specification, with a number of steps in place of seconds: it repeats this design.
        self.spec = Spec.of_message(_in_steps(result))
        #: The published tables by name; there is one unless several were designed together.
        self.tables = {
            name: _named(result.spec, name, table) for name, table in result.tables.items()
        }

    @property
    def table(self) -> Table:
        """The table that was designed; the first of several."""
        return next(iter(self.tables.values()))

    @property
    def first(self) -> Table:
        """The table that the design began with; the first of several."""
        return _named(self.result.spec, "first table", self.result.first[0])

    @property
    def directory(self) -> Path:
        """Where the design's files are. One that was made for it is removed with this object."""
        return self._out.path

    @property
    def is_finished(self) -> bool:
        """Whether the design is; else it was interrupted, and `design` goes on in its directory."""
        return self.result.reason is not None

    @property
    def reason(self) -> str | None:
        """Why it is finished, as "schedule_complete"; None if it is not."""
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
        """The events of the design by step. Raises FileError."""
        return collect_history(self._events())

    def _events(self) -> Iterator[progress_pb2.ProgressEvent]:
        """None of a design that was interrupted before it began."""
        return read_events(self._out.progress) if self._out.progress.exists() else iter(())

    def rows(self) -> Rows:
        """A row for each step: the score, before it, of the table that it tried to improve, on the
        step's own networks; None where it has none."""
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
        """The first table beside what was designed, on as many fresh networks as epochs have."""
        with local_evaluator(threads) as evaluator:
            return measure_gain(
                self.result.spec,
                self.result.first,
                [*self.result.tables.values()],
                evaluate=evaluator.evaluate,
            )

    def report(self, *, threads: int | None = None) -> Gain:
        """Writes the report, a page with two plots, beside the design's files.

        Returns what it is about: the gain over the first table. Raises FileError.
        """
        with local_evaluator(threads) as evaluator:
            return report_design(self._out, self.result, evaluate=evaluator.evaluate)

    def table_files(self) -> dict[str, Path]:
        """The .json file of each table by its name."""
        return {name: self._out.table_file(self.result.spec, name) for name in self.tables}

    def plot(self) -> Plot:
        """Draws the score over the steps of the design."""
        from remy_farm.analysis.plots import draw_score

        return Plot(draw_score(self.history()))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Copies the design's files to a directory that is new or empty, where it can go on.

        Raises FileError.
        """
        target = Path(directory)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileError(f"{target} is there already; choose a directory that is new or empty")
        try:
            shutil.copytree(self.directory, target, dirs_exist_ok=True)
        except OSError as error:
            raise FileError(f"{target}: cannot be written ({error.strerror})") from error

    def __repr__(self) -> str:
        return f"Design({self.spec.name!r}: {self._sentence()})"

    def _sentence(self) -> str:
        reason = self.result.reason
        ended = "interrupted" if reason is None else f"finished because {stop_reason(reason)}"
        rules = " and ".join(several(len(table), "rule") for table in self.tables.values())
        return (
            f"{rules} after {several(self.steps, 'step')} and {several(self.epochs, 'epoch')} in "
            f"{duration(self.wall_seconds)} ({duration(self.cpu_seconds)} CPU); {ended}"
        )

    def _repr_html_(self) -> str:
        tables = "".join(table._repr_html_() for table in self.tables.values())
        return f"<p><b>{escape(self.spec.name)}</b>: {escape(self._sentence())}.</p>{tables}"


def _in_steps(result: DesignResult) -> spec_pb2.DesignSpec:
    """The specification of a run; where time ended it, the steps made replace the seconds."""
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(result.spec)
    if result.reason == progress_pb2.STOP_REASON_CPU_SECONDS:
        spec.stop.ClearField("cpu_seconds")
        spec.stop.steps = result.steps
    return spec


def _named(spec: spec_pb2.DesignSpec, name: str, table: RuleTable) -> Table:
    called = spec.name if name == "remycc" and spec.name else name
    return Table(RemyCC(table, reference_config(spec)), called)


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
    """Searches for the table that does best by a specification (TCP ex Machina, section 4.3).

    Equal specifications and seeds give equal tables, byte for byte, whatever the number of threads.
    Ctrl-C, and the stop button of a notebook, end it early with what there is.

    Args:
        spec: What is designed, for which networks and objective.
        seconds: How much CPU time the simulations may take together, s; on n threads a design
            takes about an n-th of it. It becomes a number of steps, which `Design.spec` holds, so
            that the run repeats. None: as the specification says.
        steps: The length of the whole schedule in its place.
        seed: In place of the specification's.
        directory: Where the design is kept, step by step. If an interrupted design of this
            specification is there, it goes on. None: a folder that goes with the result.
        first: The table to begin with in place of the search's own.
        threads: Threads to simulate with; the CPUs allowed unless given.
        progress: Whether a line on standard error shows how far it is; where that is a terminal or
            a notebook unless given.
        callback: Is told after every step; returns True to end the design there.
        resume: Whether there must be a design in the directory, or must not be; either will do
            unless given.
        observer: Is told everything, in place of the callback and the line.

    Returns:
        The design: its table, history and files. `is_finished` tells whether it came to its end.

    Raises:
        SpecError: `seconds` or `steps` are out of range, or both are given.
        DesignerError: The search that the specification asks for has no schedule of `steps`, or
            cannot begin with `first`.
        FileError: The directory holds something else, is in use, or cannot be written.
    """
    message = with_length(spec.message, seconds=seconds, steps=steps, seed=seed)
    kept = None
    if directory is None:
        kept = PassingFolder()
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
    teller = DesignTeller(message, callback, progress_line(spec.name, progress), run.interrupt)
    try:
        return Design(out, run.run(teller), kept)
    finally:
        teller.close()


def load_design(directory: str | os.PathLike[str], *, kept: PassingFolder | None = None) -> Design:
    """The design in a directory, as far as it has come.

    Args:
        directory: Where `design`, or the command of that name, kept it.
        kept: The folder around it that goes with what was loaded, if it is such a one.

    Returns:
        The design; it is not resumed.

    Raises:
        FileError: There is no design, or a file is damaged.
    """
    out = OutDirectory(directory)
    return Design(out, stored_design(out), kept)


class DesignTeller(DesignObserver):
    """Tells a callback, and a line of progress, how far a design is."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        callback: Callback | None,
        line: ProgressLine | None,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        """`end` asks the run to end."""
        self._spec = spec
        self._callback = callback
        self._line = line
        self._table: RuleTable | None = None
        self._known = progress_pb2.JobProgress()
        self._end = end

    def close(self) -> None:
        """Ends the line."""
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
        told = Progress(
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
        if self._callback(told) is True:
            self._end()
