"""The designer: a strategy's steps, counted, reported, stopped and checkpointed."""

from __future__ import annotations

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import sealing
from remy_services.designer.errors import DesignerError
from remy_services.designer.given_table import design_digest, with_signals_of
from remy_services.designer.lineage import check_same_design, new_record
from remy_services.designer.outcome_shape import check_outcome
from remy_services.designer.record import count_end, count_outcome, count_step
from remy_services.designer.scoring import SpecimenScore
from remy_services.designer.stop_rules import rule_that_holds
from remy_services.designer.strategies import new_strategy, restored_strategy
from remy_services.designer.strategy import Strategy
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native
from remy_simulator.objective import specimen_score as objective_score


class Designer:
    """One design. The package's documentation lists its driver's duties."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        *,
        first_table: RuleTable | None = None,
        specimen_score: SpecimenScore = objective_score,
    ) -> None:
        """A design at its beginning, with `first_table` in place of the search's own if given.

        Raises DesignerError if there is no search as specified, or none that could begin with such
        a table.
        """
        self._spec = spec
        given = None if first_table is None else with_signals_of(spec, first_table)
        self._strategy: Strategy = new_strategy(spec, specimen_score, given)
        # Everything that is counted, and is not the strategy's.
        self._record = new_record(design_digest(spec, given))
        self._request: evaluation_pb2.EvaluationRequest | None = None

    @classmethod
    def resume(
        cls,
        spec: spec_pb2.DesignSpec,
        data: bytes,
        *,
        first_table: RuleTable | None = None,
        specimen_score: SpecimenScore = objective_score,
    ) -> Designer:
        """The design that `checkpoint` made these bytes of.

        Raises CheckpointError if they are damaged, or belong to another specification (but for its
        name, its stop rules and its schedule's length), another first table, or a simulator of
        another version or with other results.
        """
        checkpoint = sealing.unseal(data)
        designer = cls(spec, first_table=first_table, specimen_score=specimen_score)
        check_same_design(checkpoint, designer._record)
        designer._strategy = restored_strategy(spec, specimen_score, checkpoint, first_table)
        checkpoint.ClearField("strategy")
        designer._record = checkpoint
        return designer

    def checkpoint(self) -> bytes:
        """The whole state as bytes, for `resume`."""
        checkpoint = checkpoint_pb2.Checkpoint()
        checkpoint.CopyFrom(self._record)
        self._strategy.save(checkpoint)
        return sealing.seal(checkpoint)

    @property
    def table(self) -> RuleTable:
        """The best table so far: the one to publish."""
        closing = self._record.closing
        return to_native(closing.table) if closing.HasField("table") else self._strategy.table

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
        return self._strategy.epoch

    @property
    def share_done(self) -> float | None:
        """How much of the search is done, from 0 to 1; None if it has no fixed length."""
        return self._strategy.share_done

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

    def next_request(self) -> evaluation_pb2.EvaluationRequest | None:
        """What to evaluate next: the same until its outcome was received, None when finished."""
        if self._request is None and self.finished is None:
            stopping = self._record.HasField("closing")
            strategy = self._strategy
            self._request = strategy.closing_request() if stopping else strategy.request()
        return self._request

    def receive(
        self, outcome: evaluation_pb2.EvaluationOutcome
    ) -> list[progress_pb2.ProgressEvent]:
        """Makes a step, given the outcome of the last request. Returns what happened.

        Raises OutcomeError, and changes nothing, if the outcome is not one of that request.
        """
        request = self._request
        if request is None:
            raise DesignerError("there is no request that an outcome could answer")
        check_outcome(request, outcome)
        if self._record.HasField("closing"):
            events = self._close(request, outcome)
        else:
            events = self._step(request, outcome)
        self._request = None
        return events

    def stop(self, reason: progress_pb2.StopReason) -> list[progress_pb2.ProgressEvent]:
        """Stops the design between two steps; one more evaluation may be due before it is finished.

        The outstanding request, if any, is withdrawn. Of several reasons the first counts.
        """
        if self._record.HasField("closing"):
            return []
        self._request = None
        self._record.closing.reason = reason
        return self._finish() if self._strategy.closing_request() is None else []

    def reconsider(self) -> list[progress_pb2.ProgressEvent]:
        """Applies the specification's stop rules anew, after it was resumed with other budgets.

        If none holds, a stopped design goes on where its search left off; if one holds, a running
        one is stopped.
        """
        reason = self._reason_to_stop()
        if reason is not None:
            return self.stop(reason)
        if self._record.HasField("closing"):
            self._record.ClearField("closing")
            self._request = None
        return []

    def _step(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> list[progress_pb2.ProgressEvent]:
        epoch = self._strategy.epoch
        report = self._strategy.receive(request, outcome)
        events = count_step(self._record, epoch, request, outcome, report)
        reason = self._reason_to_stop()
        return events if reason is None else events + self.stop(reason)

    def _close(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> list[progress_pb2.ProgressEvent]:
        verdict = self._strategy.closing_verdict(request, outcome)
        count_outcome(self._record, outcome)
        self._record.closing.comparison.CopyFrom(verdict.comparison)
        if verdict.table is not None:
            self._record.closing.table.CopyFrom(from_native(verdict.table))
        return self._finish()

    def _finish(self) -> list[progress_pb2.ProgressEvent]:
        return count_end(self._record, self._strategy.epoch, self.table.rule_count)

    def _reason_to_stop(self) -> progress_pb2.StopReason | None:
        return self._strategy.finished or rule_that_holds(
            self._spec.stop, steps=self._record.step, epochs=self._record.epochs
        )
