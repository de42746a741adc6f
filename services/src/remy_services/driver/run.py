"""One run of a design: from its directory's last checkpoint to its end, or to an interrupt."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import Designer
from remy_services.designer.budgets import Rehearsal, exhausted, is_by_budget, seconds_left
from remy_services.designer.strategy import with_steps
from remy_services.driver.directory import Keeper, OutDirectory
from remy_services.evaluation import EvaluationProgress, Evaluator, LocalEvaluator, OnProgress
from remy_services.specification import load_spec
from remy_simulator import RuleTable

# What a design run tells whoever shows it.


@dataclass(frozen=True)
class RunStarted:
    """A run begins."""

    #: Steps made by earlier runs; 0 for a new design.
    steps: int
    #: Whether there was a checkpoint to resume from.
    resumed: bool


@dataclass(frozen=True)
class StepProgress:
    """Where the running step stands."""

    #: The running step, from 1, and its epoch, from 0.
    step: int
    epoch: int
    #: Rules of the table that the step works on.
    rules: int
    #: Candidates in all, and those that are done on all specimens or would be if simulations ended
    #: candidate by candidate.
    candidates: int
    candidates_done: int
    #: Packets sent in this step's simulations, and a second of this step's wall time.
    simulated_packets: int
    packets_per_second: float
    #: Since the design began, without pauses.
    wall_seconds: float
    cpu_seconds: float
    #: A guess at the wall time left; None where there is nothing to go by.
    eta_seconds: float | None


class Observer(Protocol):
    """Is called in the thread that called `DesignRun.run`; should return at once."""

    def started(self, start: RunStarted) -> None:
        """Before the first step of this run."""

    def progress(self, progress: StepProgress) -> None:
        """Some ten times a second while a step is evaluated."""

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        """The line was added to progress.jsonl; its checkpoint may not have been written yet."""

    def published(self, table: RuleTable, steps: int) -> None:
        """From now on `table` is the one to publish, `steps` steps after the design began; told at
        a run's first event and whenever it changes."""


class SilentObserver:
    """Shows nothing."""

    def started(self, start: RunStarted) -> None:
        pass

    def progress(self, progress: StepProgress) -> None:
        pass

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        pass

    def published(self, table: RuleTable, steps: int) -> None:
        pass


# Budgets that are given for a run in place of the specification's.


def with_budget(
    spec: spec_pb2.DesignSpec,
    *,
    max_steps: int | None = None,
    max_cpu_seconds: float | None = None,
    max_wall_seconds: float | None = None,
) -> spec_pb2.DesignSpec:
    """The specification with other budgets where they are given.

    All of them count from the beginning of the design, through every resume.
    """
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    if max_steps is not None:
        changed.stop.steps = max_steps
    if max_cpu_seconds is not None:
        changed.stop.cpu_seconds = max_cpu_seconds
    if max_wall_seconds is not None:
        changed.stop.wall_seconds = max_wall_seconds
    return changed


# A budget of CPU time or packets as a number of steps, measured on this process.


def resolve_budget(
    spec: spec_pb2.DesignSpec, evaluator: Evaluator, on_progress: OnProgress | None = None
) -> spec_pb2.DesignSpec:
    """The specification with `search.joint.steps` in place of a budget of CPU time or packets.

    One without such a budget is returned as it is. The evaluator must work in this process, whose
    CPU time is what counts. `on_progress` is called as by the evaluator; what it raises comes out.
    """
    if not is_by_budget(spec):
        return spec
    rehearsal = Rehearsal(spec)
    before = time.process_time()
    while (request := rehearsal.next_request()) is not None:
        outcome = evaluator.evaluate(request, on_progress)
        now = time.process_time()
        rehearsal.receive(outcome, now - before)
        before = now
    return rehearsal.resolved()


# Signals that ask a run to leave.


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_set(event: threading.Event) -> Iterator[None]:
    """Has Ctrl-C and SIGTERM set `event` instead of ending the process.

    A second signal does what it did before, so that nobody is kept waiting. Signals are left alone
    in any but the main thread, where Python does not deliver them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def handle(_number: int, _frame: FrameType | None) -> None:
        event.set()
        restore()

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()


# The loop that carries requests to an evaluator and outcomes back.


_BY_CLOCK = (progress_pb2.STOP_REASON_CPU_SECONDS, progress_pb2.STOP_REASON_WALL_SECONDS)


class Interrupted(Exception):
    """Somebody wants the run to end before its step does."""


class Loop:
    """Drives one design, step by step."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        keeper: Keeper,
        evaluator: Evaluator,
        observer: Observer,
        interrupt: threading.Event,
    ) -> None:
        self._spec = spec
        self._keeper = keeper
        self._designer = keeper.designer
        self._evaluator = evaluator
        self._observer = observer
        self._interrupt = interrupt
        self._published: RuleTable | None = None

    def run(self) -> None:
        """Runs until the design is finished or `interrupt` is set, and leaves a checkpoint."""
        self._observer.started(RunStarted(self._designer.steps, self._keeper.resumed))
        self._continue()
        try:
            while self._step():
                pass
        except Interrupted:
            pass
        self._keeper.save()

    def _continue(self) -> None:
        """Applies the budgets of this run to a design that earlier runs may have finished."""
        spent = exhausted(self._spec.stop, self._keeper.clock.elapsed())
        if not (spent and self._designer.finished in _BY_CLOCK):
            self._tell(self._designer.reconsider())

    def _step(self) -> bool:
        """One request and its outcome; False if the design is finished."""
        spent = exhausted(self._spec.stop, self._keeper.clock.elapsed())
        if spent is not None:
            self._tell(self._designer.stop(spent))
        request = self._designer.next_request()
        if request is None:
            return False
        self._heed_interrupt()
        outcome = self._evaluator.evaluate(request, self._reporter(request))
        events = self._designer.receive(outcome)
        self._keeper.pareto.observe(request, outcome, events)
        self._tell(events)
        return True

    def _heed_interrupt(self) -> None:
        if self._interrupt.is_set():
            raise Interrupted

    def _tell(self, events: list[progress_pb2.ProgressEvent]) -> None:
        self._keeper.keep(events)
        for event in events:
            self._observer.event(event)
        self._tell_of_table()

    def _tell_of_table(self) -> None:
        table = self._designer.table
        if self._published is None or table != self._published:
            self._published = table
            self._observer.published(table, self._designer.steps)

    def _reporter(self, request: evaluation_pb2.EvaluationRequest) -> OnProgress:
        """What turns the evaluator's reports into the observer's, and interrupts into an end."""
        designer, candidates = self._designer, len(request.candidates)
        rules = sum(node.HasField("action") for node in request.tables[0].nodes)
        started = time.monotonic()

        def report(done: EvaluationProgress) -> None:
            self._heed_interrupt()
            part = done.simulations_done / done.simulations
            seconds = time.monotonic() - started
            elapsed = self._keeper.clock.elapsed()
            self._observer.progress(
                StepProgress(
                    step=designer.steps + 1,
                    epoch=designer.epoch,
                    rules=rules,
                    candidates=candidates,
                    candidates_done=int(part * candidates),
                    simulated_packets=done.simulated_packets,
                    packets_per_second=done.simulated_packets / seconds if seconds > 0 else 0.0,
                    wall_seconds=elapsed.wall_seconds,
                    cpu_seconds=elapsed.cpu_seconds,
                    eta_seconds=seconds_left(
                        self._spec.stop,
                        elapsed,
                        steps=designer.steps + part,
                        epochs=len(designer.epochs),
                        share_done=designer.share_done,
                    ),
                )
            )

        return report


# One run of a design: from its directory's last checkpoint to its end, or to an interrupt.


@dataclass(frozen=True)
class DesignResult:
    """How a run ended."""

    #: The specification as it was followed: with steps in place of a budget of CPU time.
    spec: spec_pb2.DesignSpec
    #: The table that the design began with, as its search may publish it.
    first: RuleTable
    #: The published table.
    table: RuleTable
    #: Why the design is finished; None if the run was interrupted and the design may go on.
    reason: progress_pb2.StopReason | None
    #: Steps made and epochs completed since the design began.
    steps: int
    epochs: list[progress_pb2.EpochRecord]
    #: Time used since the design began.
    wall_seconds: float
    cpu_seconds: float


class DesignRun:
    """Drives a designer, as its package's documentation demands, with files, clocks and signals."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        out: str | os.PathLike[str],
        *,
        threads: int = 1,
        resume: bool = False,
        evaluator: Evaluator | None = None,
        checkpoint_seconds: float = 1.0,
        first_table: RuleTable | None = None,
    ) -> None:
        """A run of the design that `spec` (complete, with the run's budgets) describes.

        The design begins with `first_table` in place of the search's own if one is given; a resumed
        one need not be given it again.

        `out` is the directory for its files. With `resume` the run goes on from the checkpoint in
        there, if there is one. What `search.joint.cpu_seconds` buys is measured when a design
        begins, and never again. `evaluator` takes the place of one with `threads` threads, and is
        the caller's to close. A checkpoint is written at most once in `checkpoint_seconds`, and
        whenever a run ends; how often changes nothing but what a crash costs.
        """
        self._spec = spec
        self._out = OutDirectory(out)
        self._threads = threads
        self._resume = resume
        self._evaluator = evaluator
        self._checkpoint_seconds = checkpoint_seconds
        self._first_table = first_table
        self._interrupt = threading.Event()

    def interrupt(self) -> None:
        """Asks the run to abandon its step, leave a checkpoint and return. From any thread."""
        self._interrupt.set()

    def run(self, observer: Observer | None = None) -> DesignResult:
        """Runs until the design is finished, or until `interrupt`, Ctrl-C or SIGTERM.

        The first such signal takes effect within about a tenth of a second (or when the running
        simulations end, if that is later); a second one ends the process as usual, which harms
        nothing.

        Raises FileError if a file cannot be read or written, if the directory holds another design
        or is in use, or if its checkpoint is damaged; DesignerError if the specification asks for
        what there is not. What the last checkpoint held is safe in every case.
        """
        evaluator = self._evaluator or LocalEvaluator(self._threads)
        try:
            with self._out.locked(), signals_set(self._interrupt):
                try:
                    spec = self._resolved(evaluator)
                except Interrupted:
                    return _nothing_done(self._spec, self._first_table)
                with Keeper.open(
                    spec,
                    self._out,
                    resume=self._resume,
                    checkpoint_seconds=self._checkpoint_seconds,
                    first_table=self._first_table,
                ) as keeper:
                    shown = observer or SilentObserver()
                    Loop(spec, keeper, evaluator, shown, self._interrupt).run()
                    return _result(spec, keeper)
        finally:
            if self._evaluator is None:
                evaluator.close()

    def _resolved(self, evaluator: Evaluator) -> spec_pb2.DesignSpec:
        """The specification with steps in place of CPU time.

        Raises Interrupted; FileError or SpecError if what was measured before cannot be read.
        """
        if not is_by_budget(self._spec):
            return self._spec
        if self._out.checkpoint.exists():
            return with_steps(self._spec, load_spec(self._out.spec).search.joint.steps)
        return resolve_budget(self._spec, evaluator, self._heed_interrupt)

    def _heed_interrupt(self, _: EvaluationProgress) -> None:
        if self._interrupt.is_set():
            raise Interrupted


def _nothing_done(spec: spec_pb2.DesignSpec, first_table: RuleTable | None) -> DesignResult:
    """The result of a run that was interrupted before its design began."""
    first = Designer(spec, first_table=first_table).table
    return DesignResult(
        spec=spec,
        first=first,
        table=first,
        reason=None,
        steps=0,
        epochs=[],
        wall_seconds=0.0,
        cpu_seconds=0.0,
    )


def _result(spec: spec_pb2.DesignSpec, keeper: Keeper) -> DesignResult:
    designer, elapsed = keeper.designer, keeper.clock.elapsed()
    return DesignResult(
        spec=spec,
        first=Designer(spec, first_table=keeper.first_table).table,
        table=designer.table,
        reason=designer.finished,
        steps=designer.steps,
        epochs=designer.epochs,
        wall_seconds=elapsed.wall_seconds,
        cpu_seconds=elapsed.cpu_seconds,
    )
