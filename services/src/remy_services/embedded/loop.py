"""The loop that carries requests to an evaluator and outcomes back."""

from __future__ import annotations

import threading
import time

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer.clock_budgets import exhausted, seconds_left
from remy_services.embedded.keeper import Keeper
from remy_services.embedded.observer import Observer, RunStarted, StepProgress
from remy_services.evaluation import EvaluationProgress, Evaluator, OnProgress
from remy_simulator import RuleTable

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
