"""The designer: makes the steps of a search, counts and reports them, stops and checkpoints it."""

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
from remy_farm.designer.team import TeamStrategy, reject_given_table
from remy_farm.specification.models import designed_tables
from remy_farm.specification.modes import MODES, mode_of
from remy_proto.v1 import checkpoint_pb2, progress_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_proto.v1.progress_pb2 import ProgressEvent as Event
from remy_simulator import RuleTable, columns
from remy_simulator.messages import from_native, to_native


def reason_to_stop(
    stop: spec_pb2.Stop, *, steps: int, epochs: Sequence[progress_pb2.EpochRecord]
) -> progress_pb2.StopReason | None:
    """Returns the first rule of `stop` that applies after these steps and epochs; None if none."""
    if stop.HasField("epochs") and len(epochs) >= stop.epochs:
        return progress_pb2.STOP_REASON_EPOCHS
    if stop.HasField("epochs_without_gain"):
        # The epochs of short climbs say nothing about progress of the climb that is continued.
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
    if len(designed_tables(spec)) == 1:
        return search(spec, given)
    reject_given_table(given)
    if not issubclass(search, ValidatingStrategy):
        able = " and ".join(mode.name for mode in MODES if mode.designs_together)
        raise DesignerError(
            f"search.mode is {search.field}; several tables are designed together by {able} only"
        )
    return TeamStrategy(spec, search)


# The record: counters of steps, epochs, simulations and events, which every search has


def record_outcome(record: checkpoint_pb2.Checkpoint, outcome: Outcome) -> int:
    """Adds the cost of an outcome to the record. Returns its number of simulated packets."""
    packets = sum(outcome.packets_sent)
    record.evaluations += len(outcome.packets_sent)
    record.simulated_packets += packets
    return packets


def record_step(
    record: checkpoint_pb2.Checkpoint,
    epoch: int,
    request: Request,
    outcome: Outcome,
    report: StepReport,
) -> list[Event]:
    """Adds a step of `epoch` to the record, and the epoch if it ended. Returns their events."""
    record.step += 1
    packets = record_outcome(record, outcome)
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
    return _number_events(record, epoch, events)


def record_finish(record: checkpoint_pb2.Checkpoint, epoch: int, rules: int) -> list[Event]:
    """Marks the design as finished, with a table of `rules` rules. Returns the event of this."""
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
    return _number_events(record, epoch, [Event(design_finished=finished)])


def _number_events(
    record: checkpoint_pb2.Checkpoint, epoch: int, events: list[Event]
) -> list[Event]:
    """Sets the sequence number, step and epoch of the events, and returns them."""
    for event in events:
        record.event_sequence += 1
        event.sequence = record.event_sequence
        event.step = record.step
        event.epoch = epoch
    return events


class Designer:
    """The state machine of one design. The package's documentation lists its driver's duties."""

    def __init__(self, spec: spec_pb2.DesignSpec, *, first_table: RuleTable | None = None) -> None:
        """Starts a design, from `first_table` if given and else from the search's own first table.

        Raises DesignerError if the specified search does not exist, or cannot start from that
        table.
        """
        self._spec = spec
        given = None if first_table is None else with_signals_of(spec, first_table)
        self._strategy = _strategy(spec, given)
        # The search's state. Only `_step` replaces it; `next_request` sets its worker threads.
        self._state: State = self._strategy.first_state()
        # Counters and epochs; the rest of the checkpoint.
        self._record = new_record(design_digest(spec, given), spec)
        if spec.search.worker_schedule:
            self._record.worker_schedule.extend(spec.search.worker_schedule)
            self._record.replays_schedule = True
        self._request: Request | None = None
        # Requests that follow `_request`, as far as they are known, with the purposes of their
        # steps.
        self._ahead: deque[tuple[progress_pb2.StepPurpose, Request]] = deque()

    @classmethod
    def resume(
        cls, spec: spec_pb2.DesignSpec, data: bytes, *, first_table: RuleTable | None = None
    ) -> Designer:
        """Restores the design from the bytes that `checkpoint` returned.

        Raises CheckpointError if they are damaged, or belong to another specification, first table
        or simulator. The specification may differ in its name, its stop rules and the length of its
        schedule.
        """
        checkpoint = sealing.unseal(data)
        designer = cls(spec, first_table=first_table)
        check_same_design(checkpoint, designer._record)
        saved, field = checkpoint.WhichOneof("strategy"), designer._strategy.field
        if saved != field:
            raise CheckpointError(
                f"the checkpoint holds the state of search {saved!r}; the specification selects "
                f"search {field!r}"
            )
        designer._state = designer._strategy.restore_state(getattr(checkpoint, field))
        checkpoint.ClearField("strategy")
        designer._record = checkpoint
        return designer

    def checkpoint(self) -> bytes:
        """Returns the whole state as bytes, for `resume`."""
        checkpoint = checkpoint_pb2.Checkpoint()
        checkpoint.CopyFrom(self._record)
        getattr(checkpoint, self._strategy.field).CopyFrom(self._state.to_message())
        return sealing.seal(checkpoint)

    @property
    def table(self) -> RuleTable:
        """The table to publish: the best one so far."""
        closing = self._record.closing
        if closing.HasField("table"):
            return to_native(closing.table)
        return self._strategy.table(self._state)

    @property
    def tables(self) -> dict[str, RuleTable]:
        """The tables to publish by name, if several are designed together."""
        closing = self._record.closing
        if closing.HasField("table"):
            published = [to_native(table) for table in (closing.table, *closing.companions)]
        else:
            published = self._strategy.tables(self._state)
        return dict(zip(designed_tables(self._spec), published, strict=True))

    @property
    def replayable_spec(self) -> spec_pb2.DesignSpec:
        """The specification with the recorded worker schedule, which repeats the same design."""
        spec = spec_pb2.DesignSpec()
        spec.CopyFrom(self._spec)
        spec.search.worker_schedule[:] = self._record.worker_schedule
        return spec

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        """Reason why the design finished; None while it is running."""
        closing = self._record.closing
        return closing.reason if closing.finished else None

    @property
    def steps(self) -> int:
        """Number of steps made. A closing evaluation does not count."""
        return self._record.step

    @property
    def epoch(self) -> int:
        """The global epoch, from 0."""
        return self._state.epoch

    @property
    def share_done(self) -> float | None:
        """Finished share of the search, from 0 to 1; None without a fixed length."""
        return self._strategy.share_done(self._state)

    @property
    def stalled_steps(self) -> int:
        """Number of steps for which the search has stalled; 0 if it has not."""
        return self._strategy.stalled_steps(self._state)

    @property
    def epochs(self) -> list[progress_pb2.EpochRecord]:
        """Records of the epochs so far, in order."""
        return list(self._record.epochs)

    @property
    def evaluations(self) -> int:
        """Number of simulations so far, each of one specimen under one candidate."""
        return self._record.evaluations

    @property
    def simulated_packets(self) -> int:
        """Packets sent in all simulations so far."""
        return self._record.simulated_packets

    @property
    def event_sequence(self) -> int:
        """Sequence number of the last event; 0 before the first."""
        return self._record.event_sequence

    def set_worker_threads(self, threads: int) -> None:
        """Sets the number of worker threads that the next step is sized for.

        Has no effect once the step's request was made, nor on a design that does not follow its
        workers or that replays a recorded schedule.
        """
        schedule = self._record.worker_schedule
        follows = self._spec.search.follow_workers and not self._record.replays_schedule
        if not follows or self._request is not None or self._record.HasField("closing"):
            return
        if schedule and schedule[-2] == self.steps:
            # The step was requested before, with another number of threads, and is requested again.
            del schedule[-2:]
        if (schedule[-1] if schedule else None) != threads:
            schedule.extend((self.steps, threads))

    def next_request(self) -> Request | None:
        """Returns the next request: the same until its outcome is received, None when finished."""
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
        """Returns the requests after the next one that do not depend on outcomes still missing.

        `next_request` will return each of them, possibly after a validation, unless the design is
        stopped. They may be evaluated in advance.
        """
        if self.next_request() is None or self._record.HasField("closing"):
            return ()
        step = self._strategy.steps[self._state.purpose]
        for state in step.states_ahead(self._strategy, self._state)[len(self._ahead) :]:
            following = self._strategy.steps[state.purpose]
            self._ahead.append((state.purpose, following.request(self._strategy, state)))
        return tuple(request for _, request in self._ahead)

    def receive(self, outcome: Outcome) -> list[Event]:
        """Makes a step from the outcome of the current request. Returns the step's events.

        Raises OutcomeError, and changes nothing, if the outcome does not fit the request.
        """
        request = self._request
        if request is None:
            raise DesignerError("an outcome was received, but no request is outstanding")
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
        """Stops the design between two steps. A closing evaluation may follow before it finishes.

        Withdraws the outstanding request. If the design was stopped before, the first reason stays.
        """
        if self._record.HasField("closing"):
            return []
        self._withdraw()
        self._record.closing.reason = reason
        closing = self._strategy.closing_request(self._state)
        return self._finish() if closing is None else []

    def reconsider(self, spent: progress_pb2.StopReason | None = None) -> list[Event]:
        """Applies the stop rules of the specification again, after a resume with other budgets.

        `spent` is the reason if a budget of time is used up. A stopped design continues if no rule
        applies any more; otherwise its reason is updated. A running design is stopped if a rule
        applies.
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
        """Returns the number of worker threads for the next step; 0 if no schedule is recorded."""
        steps, threads = self._record.worker_schedule[::2], self._record.worker_schedule[1::2]
        passed = [count for step, count in zip(steps, threads, strict=True) if step <= self.steps]
        return passed[-1] if passed else 0

    def _step(self, request: Request, outcome: Outcome) -> list[Event]:
        state = self._state.count(outcome)
        step = self._strategy.steps[state.purpose]
        self._state, report = step.receive(self._strategy, state, request, outcome)
        events = record_step(self._record, state.epoch, request, outcome, report)
        reason = self._reason_to_stop()
        return events if reason is None else events + self.stop(reason)

    def _close(self, request: Request, outcome: Outcome) -> list[Event]:
        decision = self._strategy.closing_decision(self._state, request, outcome)
        record_outcome(self._record, outcome)
        self._record.closing.comparison.CopyFrom(decision.comparison)
        if decision.table is not None:
            self._record.closing.table.CopyFrom(from_native(decision.table))
            self._record.closing.companions.extend(map(from_native, decision.companions))
        return self._finish()

    def _finish(self) -> list[Event]:
        return record_finish(self._record, self._state.epoch, self.table.rule_count)

    def _reason_to_stop(self) -> progress_pb2.StopReason | None:
        return self._strategy.finished(self._state) or reason_to_stop(
            self._spec.stop, steps=self._record.step, epochs=self._record.epochs
        )
