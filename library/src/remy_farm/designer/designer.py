"""The designer: a search's steps, counted, reported, stopped and checkpointed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from remy_farm.designer import checkpoint as sealing
from remy_farm.designer.checkpoint import (
    check_same_design,
    design_digest,
    new_record,
    with_signals_of,
)
from remy_farm.designer.scoring import CheckpointError, DesignerError, OutcomeError
from remy_farm.designer.search import State, StepReport, Strategy, ValidatingStrategy
from remy_farm.designer.strategies import STRATEGIES
from remy_farm.designer.team import TeamStrategy, refuse_given
from remy_farm.specification.models import designs
from remy_farm.specification.modes import MODES, mode_of
from remy_proto.v1 import checkpoint_pb2, progress_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_proto.v1.progress_pb2 import ProgressEvent as Event
from remy_simulator import RuleTable, columns
from remy_simulator.messages import from_native, to_native


def rule_that_holds(
    stop: spec_pb2.Stop, *, steps: int, epochs: Sequence[progress_pb2.EpochRecord]
) -> progress_pb2.StopReason | None:
    """The first rule of `stop` that is fulfilled after `steps` steps and the recorded epochs."""
    if stop.HasField("epochs") and len(epochs) >= stop.epochs:
        return progress_pb2.STOP_REASON_EPOCHS
    if stop.HasField("epochs_without_gain"):
        # A short climb that lost to others says nothing about the one that goes on.
        last = [record for record in epochs if not record.HasField("start")]
        last = last[-stop.epochs_without_gain :]
        if len(last) == stop.epochs_without_gain and not any(
            record.comparison.accepted for record in last
        ):
            return progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN
    if stop.HasField("steps") and steps >= stop.steps:
        return progress_pb2.STOP_REASON_STEPS
    return None


def _strategy(spec: spec_pb2.DesignSpec, given: RuleTable | None) -> Strategy[Any]:
    mode = mode_of(spec)
    if mode is None:
        raise DesignerError(
            f"search.mode is number {spec.search.mode}; this designer has no such search"
        )
    search = STRATEGIES[mode.name]
    if len(designs(spec)) == 1:
        return search(spec, given)
    refuse_given(given)
    if not issubclass(search, ValidatingStrategy):
        able = " and ".join(mode.name for mode in MODES if mode.designs_together)
        raise DesignerError(
            f"search.mode is {search.field}; several tables are designed together by {able} only"
        )
    return TeamStrategy(spec, search)


# What is counted beside the search's state: steps, epochs, simulations and events


def count_outcome(record: checkpoint_pb2.Checkpoint, outcome: Outcome) -> int:
    """Adds what an outcome has cost. Returns its simulated packets."""
    packets = sum(outcome.packets_sent)
    record.evaluations += len(outcome.packets_sent)
    record.simulated_packets += packets
    return packets


def count_step(
    record: checkpoint_pb2.Checkpoint,
    epoch: int,
    request: Request,
    outcome: Outcome,
    report: StepReport,
) -> list[Event]:
    """Adds a step made in `epoch`, and the epoch that ended with it, if any. Returns the events
    that tell of them."""
    record.step += 1
    packets = count_outcome(record, outcome)
    finished = progress_pb2.StepFinished(
        candidates=len(request.candidates),
        specimens=columns.specimen_count(request),
        simulated_packets=packets,
    )
    finished.MergeFrom(report.finished)
    events = [Event(step_finished=finished), *report.events]
    if report.epoch is not None:
        ended = record.epochs.add()
        ended.CopyFrom(report.epoch)
        ended.step = record.step
        epoch_finished = progress_pb2.EpochFinished(record=ended)
        events.append(Event(epoch_finished=epoch_finished))
    return _numbered(record, epoch, events)


def count_end(record: checkpoint_pb2.Checkpoint, epoch: int, rules: int) -> list[Event]:
    """Marks the design as finished, with a table of `rules` rules. Returns the event that tells of
    it."""
    closing = record.closing
    closing.finished = True
    finished = progress_pb2.DesignFinished(
        reason=closing.reason,
        epochs=len(record.epochs),
        rules=rules,
        evaluations=record.evaluations,
        simulated_packets=record.simulated_packets,
        closing=closing.comparison if closing.HasField("comparison") else None,
    )
    return _numbered(record, epoch, [Event(design_finished=finished)])


def _numbered(record: checkpoint_pb2.Checkpoint, epoch: int, events: list[Event]) -> list[Event]:
    """The events with their numbers, and the step and epoch that they belong to."""
    for event in events:
        record.event_sequence += 1
        event.sequence = record.event_sequence
        event.step = record.step
        event.epoch = epoch
    return events


class Designer:
    """One design. The package's documentation lists its driver's duties."""

    def __init__(self, spec: spec_pb2.DesignSpec, *, first_table: RuleTable | None = None) -> None:
        """A design at its beginning, with `first_table` in place of the search's own if given.

        Raises DesignerError if there is no search as specified, or none that could begin with such
        a table.
        """
        self._spec = spec
        given = None if first_table is None else with_signals_of(spec, first_table)
        self._strategy = _strategy(spec, given)
        # Where the search stands: it changes in `_step` alone.
        self._state: State = self._strategy.first_state()
        # Everything that is counted, and is not the search's.
        self._record = new_record(design_digest(spec, given), spec)
        if spec.search.worker_schedule:
            self._record.worker_schedule.extend(spec.search.worker_schedule)
            self._record.replays_schedule = True
        self._request: Request | None = None
        # What is asked for after it, as far as that is known, and what for.
        self._ahead: deque[tuple[progress_pb2.StepPurpose, Request]] = deque()

    @classmethod
    def resume(
        cls, spec: spec_pb2.DesignSpec, data: bytes, *, first_table: RuleTable | None = None
    ) -> Designer:
        """The design that `checkpoint` made these bytes of.

        Raises CheckpointError if they are damaged, or belong to another specification (but for its
        name, its stop rules and its schedule's length), another first table, or a simulator of
        another version or with other results.
        """
        checkpoint = sealing.unseal(data)
        designer = cls(spec, first_table=first_table)
        check_same_design(checkpoint, designer._record)
        saved, field = checkpoint.WhichOneof("strategy"), designer._strategy.field
        if saved != field:
            raise CheckpointError(
                f"the checkpoint holds the state of the search {saved!r}; the specification asks "
                f"for {field!r}"
            )
        designer._state = designer._strategy.restored(getattr(checkpoint, field))
        checkpoint.ClearField("strategy")
        designer._record = checkpoint
        return designer

    def checkpoint(self) -> bytes:
        """The whole state as bytes, for `resume`."""
        checkpoint = checkpoint_pb2.Checkpoint()
        checkpoint.CopyFrom(self._record)
        getattr(checkpoint, self._strategy.field).CopyFrom(self._state.to_message())
        return sealing.seal(checkpoint)

    @property
    def table(self) -> RuleTable:
        """The best table so far: the one to publish."""
        closing = self._record.closing
        if closing.HasField("table"):
            return to_native(closing.table)
        return self._strategy.table(self._state)

    @property
    def tables(self) -> dict[str, RuleTable]:
        """The same by name, of all tables that are designed together."""
        closing = self._record.closing
        if closing.HasField("table"):
            published = [to_native(table) for table in (closing.table, *closing.companions)]
        else:
            published = self._strategy.tables(self._state)
        return dict(zip(designs(self._spec), published, strict=True))

    @property
    def followed(self) -> spec_pb2.DesignSpec:
        """The specification that makes the same design anywhere: with the workers it followed."""
        spec = spec_pb2.DesignSpec()
        spec.CopyFrom(self._spec)
        spec.search.worker_schedule[:] = self._record.worker_schedule
        return spec

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        """Why the design is finished; None while it is not."""
        closing = self._record.closing
        return closing.reason if closing.finished else None

    @property
    def steps(self) -> int:
        """Steps made. A closing evaluation is none."""
        return self._record.step

    @property
    def epoch(self) -> int:
        """The global epoch, from 0."""
        return self._state.epoch

    @property
    def share_done(self) -> float | None:
        """How much of the search is done, from 0 to 1; None if it has no fixed length."""
        return self._strategy.share_done(self._state)

    @property
    def resting_steps(self) -> int:
        """For how many steps nothing has moved; 0 while the search does not rest."""
        return self._strategy.resting_steps(self._state)

    @property
    def epochs(self) -> list[progress_pb2.EpochRecord]:
        """What each epoch so far has brought, in order."""
        return list(self._record.epochs)

    @property
    def evaluations(self) -> int:
        """Simulations of one specimen under one candidate so far."""
        return self._record.evaluations

    @property
    def simulated_packets(self) -> int:
        """Packets sent in them."""
        return self._record.simulated_packets

    @property
    def event_sequence(self) -> int:
        """Number of the last event; 0 if there was none."""
        return self._record.event_sequence

    def hear_of_workers(self, threads: int) -> None:
        """So many threads of workers are there for the next step, if its request is not yet made.
        Heeded by a design that follows them, and has no schedule of them to go by."""
        schedule = self._record.worker_schedule
        follows = self._spec.search.follow_workers and not self._record.replays_schedule
        if not follows or self._request is not None or self._record.HasField("closing"):
            return
        if schedule and schedule[-2] == self.steps:
            # Of a step that was begun, and is begun anew.
            del schedule[-2:]
        if (schedule[-1] if schedule else None) != threads:
            schedule.extend((self.steps, threads))

    def next_request(self) -> Request | None:
        """What to evaluate next: the same until its outcome was received, None when finished."""
        if self._request is None and self.finished is None:
            self._state = replace(self._state, worker_threads=self._threads())
            if self._record.HasField("closing"):
                self._request = self._strategy.closing_request(self._state)
            elif self._ahead and self._ahead[0][0] == self._state.purpose:
                self._request = self._ahead.popleft()[1]
            else:
                step = self._strategy.steps[self._state.purpose]
                self._request = step.request(self._strategy, self._state)
        return self._request

    def requests_ahead(self) -> Sequence[Request]:
        """What `next_request` will return after the next one, as far as that does not depend on its
        outcome; a validation may come between.

        Whoever has them evaluated in the meantime wastes that only if the design is stopped; nobody
        needs to.
        """
        if self.next_request() is None or self._record.HasField("closing"):
            return ()
        step = self._strategy.steps[self._state.purpose]
        for state in step.states_ahead(self._strategy, self._state)[len(self._ahead) :]:
            following = self._strategy.steps[state.purpose]
            self._ahead.append((state.purpose, following.request(self._strategy, state)))
        return tuple(request for _, request in self._ahead)

    def receive(self, outcome: Outcome) -> list[Event]:
        """Makes a step, given the outcome of the last request. Returns what happened.

        Raises OutcomeError, and changes nothing, if the outcome is not one of that request.
        """
        request = self._request
        if request is None:
            raise DesignerError("there is no request that an outcome could answer")
        is_closing = self._record.HasField("closing")
        step = None if is_closing else self._strategy.steps[self._state.purpose]
        rules = step.rules(self._state) if step else None
        try:
            columns.check(request, outcome, rules)
        except columns.ImpossibleOutcome as error:
            raise OutcomeError(str(error)) from error
        events = (self._close if is_closing else self._step)(request, outcome)
        self._request = None
        return events

    def stop(self, reason: progress_pb2.StopReason) -> list[Event]:
        """Stops the design between two steps; one more evaluation may be due before it is finished.

        The outstanding request, if any, is withdrawn. Of several reasons the first counts.
        """
        if self._record.HasField("closing"):
            return []
        self._withdraw()
        self._record.closing.reason = reason
        closing = self._strategy.closing_request(self._state)
        return self._finish() if closing is None else []

    def reconsider(self, spent: progress_pb2.StopReason | None = None) -> list[Event]:
        """Applies the specification's stop rules anew, after it was resumed with other budgets.

        `spent` is the budget that needs a clock and is used up, if one is. If nothing holds, a
        stopped design goes on where its search left off; if something does, a running one is
        stopped, and what stopped one is stopped for from now on.
        """
        reason = self._reason_to_stop() or spent
        record = self._record
        if not record.HasField("closing"):
            return [] if reason is None else self.stop(reason)
        if reason is None:
            record.ClearField("closing")
            self._withdraw()
            return []
        if record.closing.reason == reason:
            return []
        record.closing.reason = reason
        return self._finish() if record.closing.finished else []

    def _withdraw(self) -> None:
        self._request = None
        self._ahead.clear()

    def _threads(self) -> int:
        """Of the workers that the next step is for; 0 where none are followed."""
        steps, threads = self._record.worker_schedule[::2], self._record.worker_schedule[1::2]
        passed = [count for step, count in zip(steps, threads, strict=True) if step <= self.steps]
        return passed[-1] if passed else 0

    def _step(self, request: Request, outcome: Outcome) -> list[Event]:
        state = self._state.after(outcome)
        step = self._strategy.steps[state.purpose]
        self._state, report = step.receive(self._strategy, state, request, outcome)
        events = count_step(self._record, state.epoch, request, outcome, report)
        reason = self._reason_to_stop()
        return events if reason is None else events + self.stop(reason)

    def _close(self, request: Request, outcome: Outcome) -> list[Event]:
        decision = self._strategy.closing_decision(self._state, request, outcome)
        count_outcome(self._record, outcome)
        self._record.closing.comparison.CopyFrom(decision.comparison)
        if decision.table is not None:
            self._record.closing.table.CopyFrom(from_native(decision.table))
            self._record.closing.companions.extend(map(from_native, decision.companions))
        return self._finish()

    def _finish(self) -> list[Event]:
        return count_end(self._record, self._state.epoch, self.table.rule_count)

    def _reason_to_stop(self) -> progress_pb2.StopReason | None:
        return self._strategy.finished(self._state) or rule_that_holds(
            self._spec.stop, steps=self._record.step, epochs=self._record.epochs
        )
