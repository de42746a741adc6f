"""Runs a design on this machine, from the last checkpoint in its directory to its end."""

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
from remy_farm.designer.budgets import Elapsed, is_limited_by_budget
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
    """Returns the specification with the given budgets; None leaves a budget unchanged.

    Budgets count from the start of the design, not from its last resume.
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
    """Returns the specification with the given length and seed; None leaves a value unchanged.

    `seconds` is the CPU time of all simulations. A joint search is planned for it: when the design
    starts, a rehearsal measures how many steps it allows. Other searches stop after it. `steps` is
    the length of the schedule. Raises SpecError, and DesignerError if the search has no schedule.
    """
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    if seed is not None:
        changed.search.seed = seed
    if seconds is not None and steps is not None:
        problem = f"is {seconds:g}, but must be left out because steps is given ({steps})"
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
def call_on_signal(function: Callable[[], None]) -> Iterator[None]:
    """Makes the first Ctrl-C or SIGTERM call `function` instead of ending the process.

    A second signal has its usual effect, so that a user need not wait. Does nothing outside of the
    main thread, because Python delivers signals only there.
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
    """A `Control` that suspends a run. It can be set from any thread."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._is_set = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self) -> None:
        """Attaches the control to the running event loop, which is the run's."""
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
    """The result of a run."""

    #: The effective specification, with steps in place of a budget of CPU time.
    spec: spec_pb2.DesignSpec
    #: The initial tables of the design, with actions rounded and clamped as in a published table.
    first: list[RuleTable]
    #: The published tables by name; more than one only if several were designed together.
    tables: dict[str, RuleTable]
    #: Why the design finished; None if the run was interrupted and the design can be resumed.
    reason: progress_pb2.StopReason | None
    #: Steps made since the design began.
    steps: int
    #: Epochs completed since the design began.
    epochs: list[progress_pb2.EpochRecord]
    #: Time used since the design began, without pauses between runs.
    wall_seconds: float
    #: CPU time of the evaluations since the design began.
    cpu_seconds: float

    @property
    def table(self) -> RuleTable:
        """The published table; the first of several."""
        return next(iter(self.tables.values()))


class _Relay(DesignObserver):
    """Forwards calls to an observer in the thread that started the design, and waits for them."""

    def __init__(self, calls: SimpleQueue[Callable[[DesignObserver], None] | None]) -> None:
        """The observer's thread takes the calls from `calls` and makes them."""
        self._calls = calls

    def started(self, steps: int, *, resumed: bool) -> None:
        self._forward(lambda observer: observer.started(steps, resumed=resumed))

    def progress(self, progress: progress_pb2.JobProgress) -> None:
        self._forward(lambda observer: observer.progress(progress))

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        self._forward(lambda observer: observer.event(event))

    def published(self, table: RuleTable, steps: int) -> None:
        self._forward(lambda observer: observer.published(table, steps))

    def _forward(self, method: Callable[[DesignObserver], None]) -> None:
        """Waits for the call. Raises the error that the observer raised."""
        done: Future[None] = Future()

        def call(observer: DesignObserver) -> None:
            try:
                method(observer)
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        self._calls.put(call)
        done.result()


class DesignRun:
    """One run of a design: drives a designer, with a directory, a clock and signal handlers."""

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
        """Prepares a run.

        Args:
            spec: Specification, with all defaults and with the budgets of this run.
            out: Directory of the design's files: new or empty, or with `resume` one that an earlier
                run used.
            threads: Number of threads that simulate.
            resume: Whether to continue the design in `out`. How many steps a budget of CPU time
                allows is measured only when a design starts.
            evaluator: Makes the evaluator, in the run's event loop; replaces `threads`.
            checkpoint_seconds: Minimum time between two checkpoints. A run always ends with one.
                The number of checkpoints changes only how many steps a crash loses.
            first_table: Replaces the search's own first table; not needed again with `resume`.
            clock: Measures wall time.
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
        """Makes the run drop its current step, write a checkpoint and return.

        May be called from any thread.
        """
        self._interrupt.set()

    def run(self, observer: DesignObserver | None = None) -> DesignResult:
        """Runs until the design is finished, or until `interrupt`, Ctrl-C or SIGTERM.

        A second signal ends the process at once, without harm to the last checkpoint. If an event
        loop is running in this thread, as in a notebook, the run uses another thread.

        Raises:
            FileError: A file cannot be read or written, the checkpoint is damaged, or the directory
                is in use, holds another design or other files, or has no design to resume.
            DesignerError: The search does not support the specification.
        """
        self._out.check(resume=self._resume)
        with self._out.locked(), call_on_signal(self._interrupt.set):
            self._out.check(resume=self._resume)
            observer = observer or DesignObserver()
            if in_event_loop():
                return self._run_in_thread(observer)
            return asyncio.run(self._run(observer))

    def _run_in_thread(self, observer: DesignObserver) -> DesignResult:
        """Runs in another thread, because this thread's event loop is in use."""
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
            spec = await self._spec_with_steps(loop)
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

    async def _spec_with_steps(self, loop: RunLoop) -> spec_pb2.DesignSpec | None:
        """Returns the specification with steps in place of a budget; None if interrupted.

        A resumed design uses the steps in its directory's specification. Raises FileError or
        SpecError if that cannot be read.
        """
        if is_limited_by_budget(self._spec) and self._out.checkpoint.exists():
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


def stored_design(out: OutDirectory) -> DesignResult:
    """Returns the result of the design in a directory, without running it. Raises FileError."""
    if not out.checkpoint.exists():
        raise FileError(f"{out.path} holds no design ({out.checkpoint.name} is missing)")
    spec = load_spec(out.spec)
    first_table = read_remycc(out.first_table).table if out.first_table.exists() else None
    designer = resumed_designer(spec, out, first_table)
    elapsed = elapsed_up_to(out.progress, designer.event_sequence)
    return _result(spec, designer, elapsed, first_table)
