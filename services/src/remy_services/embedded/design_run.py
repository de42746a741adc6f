"""One run of a design: from its directory's last checkpoint to its end, or to an interrupt."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from remy_farm.v1 import progress_pb2, spec_pb2
from remy_services.designer import Designer
from remy_services.designer.joint.length_budget import is_by_budget
from remy_services.designer.schedule_length import with_steps
from remy_services.embedded.calibrate import resolve_budget
from remy_services.embedded.interrupts import signals_set
from remy_services.embedded.keeper import Keeper
from remy_services.embedded.loop import Interrupted, Loop
from remy_services.embedded.observer import Observer, SilentObserver
from remy_services.embedded.out_directory import OutDirectory
from remy_services.evaluation import EvaluationProgress, Evaluator, LocalEvaluator
from remy_services.spec import load_spec
from remy_simulator import RuleTable


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
