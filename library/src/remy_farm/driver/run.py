"""One run of a design on this machine: from its directory's last checkpoint to its end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from types import FrameType

from remy_farm.designer import Designer
from remy_farm.designer.budgets import Elapsed, is_by_budget
from remy_farm.designer.search import with_steps
from remy_farm.driver.directory import DirectorySink, OutDirectory, resumed_designer
from remy_farm.driver.loop import Clock, Directive, RunLoop
from remy_farm.driver.progress import DesignObserver, elapsed_up_to
from remy_farm.evaluation.interface import Share, SharedEvaluator
from remy_farm.evaluation.local import ThreadPoolEvaluator, in_event_loop
from remy_farm.files import FileError
from remy_farm.remycc import read_remycc
from remy_farm.specification import SpecError, Violation, check_spec, load_spec
from remy_proto.v1 import progress_pb2, spec_pb2
from remy_simulator import RuleTable


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


def with_length(
    spec: spec_pb2.DesignSpec,
    *,
    seconds: float | None = None,
    steps: int | None = None,
    seed: int | None = None,
) -> spec_pb2.DesignSpec:
    """The specification with another length and seed where they are given.

    `seconds` are CPU time of its simulations: a joint search is planned for so many, as a number of
    steps that is measured when the design begins, and others are cut off after them. `steps` are
    those of the whole schedule. Raises SpecError, and DesignerError where the search has no
    schedule.
    """
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    if seed is not None:
        changed.search.seed = seed
    if seconds is not None and steps is not None:
        problem = f"is {seconds:g}, but must be left out where steps is given ({steps})"
        raise SpecError("the length of a design", [Violation("seconds", problem)])
    if steps is not None:
        changed = with_steps(changed, steps)
        check_spec(changed, source=f"steps={steps}")
    if seconds is not None:
        if changed.search.mode == spec_pb2.SEARCH_MODE_JOINT:
            changed.search.joint.ClearField("simulated_packets")
            changed.search.joint.cpu_seconds = seconds
        else:
            changed.stop.cpu_seconds = seconds
        check_spec(changed, source=f"seconds={seconds:g}")
    return changed


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_call(function: Callable[[], None]) -> Iterator[None]:
    """Has Ctrl-C and SIGTERM call `function` instead of ending the process.

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
        function()
        restore()

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()


class Interrupt:
    """Suspends a run, from any thread. See `Control`."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._is_set = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self) -> None:
        """The run is in the running event loop."""
        self._loop = asyncio.get_running_loop()

    def set(self) -> None:
        """Asks the run to abandon its step and end."""
        self._is_set = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.changed.set)

    def directive(self) -> Directive:
        return Directive.SUSPEND if self._is_set else Directive.CONTINUE


@dataclass(frozen=True)
class DesignResult:
    """How a run ended."""

    #: The specification as it was followed: with steps in place of a budget of CPU time.
    spec: spec_pb2.DesignSpec
    #: The tables that the design began with, as its search may publish them.
    first: list[RuleTable]
    #: The published tables by name; there is one unless several were designed together.
    tables: dict[str, RuleTable]
    #: Why the design is finished; None if the run was interrupted and the design may go on.
    reason: progress_pb2.StopReason | None
    #: Steps made and epochs completed since the design began.
    steps: int
    epochs: list[progress_pb2.EpochRecord]
    #: Time used since the design began; CPU time is that of its evaluations.
    wall_seconds: float
    cpu_seconds: float

    @property
    def table(self) -> RuleTable:
        """The published table; the first of several."""
        return next(iter(self.tables.values()))


class _Relay(DesignObserver):
    """Calls an observer in the thread that started the design, and waits until it returns."""

    def __init__(self, calls: SimpleQueue[Callable[[DesignObserver], None] | None]) -> None:
        """`calls` are made in the observer's thread."""
        self._calls = calls

    def started(self, steps: int, *, resumed: bool) -> None:
        self._tell(lambda observer: observer.started(steps, resumed=resumed))

    def progress(self, progress: progress_pb2.JobProgress) -> None:
        self._tell(lambda observer: observer.progress(progress))

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        self._tell(lambda observer: observer.event(event))

    def published(self, table: RuleTable, steps: int) -> None:
        self._tell(lambda observer: observer.published(table, steps))

    def _tell(self, tell: Callable[[DesignObserver], None]) -> None:
        """Raises what the observer raises."""
        told: Future[None] = Future()

        def call(observer: DesignObserver) -> None:
            try:
                tell(observer)
            except BaseException as error:
                told.set_exception(error)
            else:
                told.set_result(None)

        self._calls.put(call)
        told.result()


class DesignRun:
    """Drives a designer with files, clocks and signals around."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        out: str | os.PathLike[str],
        *,
        threads: int = 1,
        resume: bool = False,
        evaluator: Callable[[], SharedEvaluator] | None = None,
        checkpoint_seconds: float = 1.0,
        first_table: RuleTable | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """A run of the design that `spec` (complete, with the run's budgets) describes.

        The design begins with `first_table` in place of the search's own if one is given; a resumed
        one need not be given it again.

        `out` is the directory for its files: new or empty, or with `resume` one that a run has
        left. What `search.joint.cpu_seconds` buys is measured when a design begins, and never
        again. `evaluator` makes, in the run's event loop, what takes the place of `threads`
        threads. A checkpoint is written at most once in `checkpoint_seconds`, and whenever a run
        ends; how often changes nothing but what a crash costs. `clock` measures wall time.
        """
        self._spec = spec
        self._out = OutDirectory(out)
        self._resume = resume
        self._new_evaluator = evaluator or (lambda: ThreadPoolEvaluator(threads))
        self._checkpoint_seconds = checkpoint_seconds
        self._first_table = first_table
        self._clock = clock
        self._interrupt = Interrupt()

    def interrupt(self) -> None:
        """Asks the run to abandon its step, leave a checkpoint and return. From any thread."""
        self._interrupt.set()

    def run(self, observer: DesignObserver | None = None) -> DesignResult:
        """Runs until the design is finished, or until `interrupt`, Ctrl-C or SIGTERM.

        The first such signal takes effect at once; a second one ends the process as usual, which
        harms nothing. Where an event loop runs in this thread, as in a notebook, the run has one of
        its own in another thread.

        Raises FileError if a file cannot be read or written, if the directory holds another design,
        other files or, to resume, no design, or is in use, or if its checkpoint is damaged;
        DesignerError if the specification asks for what there is not. What the last checkpoint held
        is safe in every case.
        """
        self._out.check(resume=self._resume)
        with self._out.locked(), signals_call(self._interrupt.set):
            self._out.check(resume=self._resume)
            told = observer or DesignObserver()
            return self._run_apart(told) if in_event_loop() else asyncio.run(self._run(told))

    def _run_apart(self, observer: DesignObserver) -> DesignResult:
        """Runs in another thread, since an event loop runs in this one, as in a notebook."""
        calls: SimpleQueue[Callable[[DesignObserver], None] | None] = SimpleQueue()
        with ThreadPoolExecutor(1, thread_name_prefix="design") as other:
            run = other.submit(asyncio.run, self._run(_Relay(calls)))
            run.add_done_callback(lambda _: calls.put(None))
            try:
                while (call := calls.get()) is not None:
                    call(observer)
            except BaseException:
                self.interrupt()
                while (call := calls.get()) is not None:
                    call(DesignObserver())
                raise
            return run.result()

    async def _run(self, observer: DesignObserver) -> DesignResult:
        self._interrupt.attach()
        evaluator = self._new_evaluator()
        loop = RunLoop(evaluator, self._interrupt, lambda: Share(self._spec.name))
        try:
            spec = await self._resolved(loop)
            if spec is None:
                return _result(self._spec, Designer(self._spec, first_table=self._first_table))
            sink = DirectorySink(
                spec,
                self._out,
                clock=self._clock,
                checkpoint_seconds=self._checkpoint_seconds,
                first_table=self._first_table,
                observer=observer,
            )
            try:
                await loop.run(sink.session, sink)
            finally:
                sink.close()
            session = sink.session
            return _result(spec, session.designer, session.stopwatch.elapsed(), sink.first_table)
        finally:
            await evaluator.close()

    async def _resolved(self, loop: RunLoop) -> spec_pb2.DesignSpec | None:
        """The specification with steps in place of CPU time; None if the run was interrupted.

        Raises FileError or SpecError if what was measured before cannot be read.
        """
        if is_by_budget(self._spec) and self._out.checkpoint.exists():
            return with_steps(self._spec, load_spec(self._out.spec).search.joint.steps)
        return await loop.rehearse(self._spec)


def _result(
    spec: spec_pb2.DesignSpec,
    designer: Designer,
    elapsed: Elapsed | None = None,
    first_table: RuleTable | None = None,
) -> DesignResult:
    used = elapsed or Elapsed()
    return DesignResult(
        spec=designer.replayable_spec,
        first=[*Designer(spec, first_table=first_table).tables.values()],
        tables=designer.tables,
        reason=designer.finished,
        steps=designer.steps,
        epochs=designer.epochs,
        wall_seconds=used.wall_seconds,
        cpu_seconds=used.cpu_seconds,
    )


def kept_design(out: OutDirectory) -> DesignResult:
    """A design as its directory has it, without going on. Raises FileError."""
    if not out.checkpoint.exists():
        raise FileError(f"{out.path} holds no design ({out.checkpoint.name} is missing)")
    spec = load_spec(out.spec)
    first_table = read_remycc(out.first_table).table if out.first_table.exists() else None
    designer = resumed_designer(spec, out, first_table)
    elapsed = elapsed_up_to(out.progress, designer.event_sequence)
    return _result(spec, designer, elapsed, first_table)
