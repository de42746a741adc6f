"""Tests the job state machine, with random sequences of operations and crashes."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from remy_proto.v1 import job_pb2, progress_pb2
from remy_services.jobs.states import (
    ACTIVE,
    CANCELLED,
    CANCELLING,
    FAILED,
    FINAL,
    PAUSED,
    PAUSING,
    PENDING,
    RECOVERING,
    RUNNING,
    SCHEDULING,
    SUCCEEDED,
    TRANSITIONS,
    Draft,
    Operation,
    WrongState,
    after_crash,
    state_after,
)
from services.tests.jobs.records import at, new_record

_OPERATIONS = st.sampled_from([each for each in Operation if each is not Operation.DELETE])
_ALL_STATES = frozenset(job_pb2.JobState.values()) - {job_pb2.JOB_STATE_UNSPECIFIED}


class JobMachine(RuleBasedStateMachine):
    """A job under user operations, events of its run, and crashes of its coordinator."""

    def __init__(self) -> None:
        super().__init__()
        self.record = new_record()
        self.history: list[job_pb2.JobEvent] = []
        self.seconds = 1

    def _draft(self) -> Draft:
        self.seconds += 1
        return Draft(self.record, at(self.seconds))

    def _commit(self, draft: Draft) -> None:
        self.record = draft.record
        self.history += draft.events

    @property
    def state(self) -> job_pb2.JobState:
        return self.record.job.state

    @rule(operation=_OPERATIONS)
    def request_operation(self, operation: Operation) -> None:
        draft = self._draft()
        try:
            following = state_after(operation, self.state)
        except WrongState:
            return
        if following == CANCELLED and self.state != CANCELLED:
            draft.cancel(by="ada")
        elif following != self.state:
            draft.move(following, by="ada")
        self._commit(draft)

    @precondition(lambda self: self.state == PENDING)
    @rule()
    def schedule(self) -> None:
        draft = self._draft()
        draft.move(SCHEDULING)
        self._commit(draft)

    @precondition(lambda self: self.state in (SCHEDULING, RECOVERING))
    @rule()
    def start(self) -> None:
        draft = self._draft()
        if self.state == RECOVERING:
            draft.record_recovery(3, "here")
        draft.move(RUNNING)
        self._commit(draft)

    @precondition(lambda self: self.state in (SCHEDULING, RUNNING, RECOVERING))
    @rule()
    def preempt(self) -> None:
        draft = self._draft()
        draft.move(PENDING, message="preempted")
        self._commit(draft)

    @precondition(lambda self: self.state in (RUNNING, PAUSING, CANCELLING))
    @rule()
    def finish(self) -> None:
        draft = self._draft()
        draft.finish(progress_pb2.STOP_REASON_EPOCHS, SUCCEEDED)
        self._commit(draft)

    @precondition(lambda self: self.state in (PAUSING, CANCELLING))
    @rule()
    def complete_pause_or_cancellation(self) -> None:
        draft = self._draft()
        if self.state == PAUSING:
            draft.move(PAUSED)
        else:
            draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
        self._commit(draft)

    @precondition(lambda self: self.state in ACTIVE)
    @rule()
    def fail(self) -> None:
        draft = self._draft()
        draft.fail(job_pb2.FAILURE_REASON_INTERNAL, "internal error", FAILED)
        self._commit(draft)

    @rule()
    def crash(self) -> None:
        draft = self._draft()
        after_crash(draft)
        self._commit(draft)
        assert self.state in {PENDING, PAUSED, RECOVERING} | FINAL

    @invariant()
    def history_has_every_transition_once(self) -> None:
        revisions = [event.revision for event in self.history]
        assert revisions == list(range(2, len(self.history) + 2))
        assert self.record.job.revision == len(self.history) + 1
        state: job_pb2.JobState = PENDING
        for event in self.history:
            if event.HasField("state_changed"):
                changed = event.state_changed
                assert getattr(changed, "from") == state
                assert changed.to in TRANSITIONS[state]
                state = changed.to
        assert state == self.state

    @invariant()
    def end_fields_are_set_only_in_final_states(self) -> None:
        job = self.record.job
        assert job.HasField("end_time") == (job.state in FINAL)
        assert bool(job.stop_reason) == (job.state in (SUCCEEDED, CANCELLED))
        assert bool(job.failure_reason) == (job.state == FAILED)


TestJobMachine = JobMachine.TestCase


def test_every_state_has_successors_and_is_reachable() -> None:
    assert set(TRANSITIONS) == _ALL_STATES
    reached = {PENDING}
    while more := {to for state in reached for to in TRANSITIONS[state]} - reached:
        reached |= more
    assert reached == _ALL_STATES


def test_disallowed_transitions_are_refused() -> None:
    draft = Draft(new_record(), at(2))
    with pytest.raises(ValueError, match="a job in state PENDING cannot change to SUCCEEDED"):
        draft.move(SUCCEEDED)


@pytest.mark.parametrize("operation", Operation)
def test_operations_lead_to_allowed_successors(operation: Operation) -> None:
    allowed = 0
    for state in TRANSITIONS:
        try:
            following = state_after(operation, state)
        except WrongState:
            continue
        assert following == state or following in TRANSITIONS[state]
        allowed += 1
    assert 0 < allowed < len(_ALL_STATES)


def test_refused_operations_name_the_allowed_states() -> None:
    with pytest.raises(WrongState) as caught:
        state_after(Operation.DELETE, RUNNING)
    assert str(caught.value) == (
        "a job in state RUNNING cannot be deleted; its state must be one of PAUSED, CANCELLED, "
        "SUCCEEDED, FAILED"
    )


def test_a_draft_does_not_modify_its_original_record() -> None:
    record = new_record()
    before = record.SerializeToString()
    Draft(record, at(2)).move(SCHEDULING)
    assert record.SerializeToString() == before


def test_start_time_is_that_of_the_first_start() -> None:
    record = new_record()
    for seconds, state in ((2, SCHEDULING), (3, RUNNING), (4, PENDING), (5, SCHEDULING)):
        draft = Draft(record, at(seconds))
        draft.move(state)
        record = draft.record
    draft = Draft(record, at(6))
    draft.move(RUNNING)
    assert draft.job.start_time == at(3)


def test_rates_are_cleared_when_a_job_stops_running() -> None:
    rates = progress_pb2.JobProgress(
        step=7, packets_per_second=1e6, evaluations_per_second=9, workers=3, eta_seconds=60
    )
    for state in (PENDING, PAUSING):
        record = new_record()
        record.job.state = RUNNING
        record.job.progress.CopyFrom(rates)
        draft = Draft(record, at(2))
        draft.move(state)
        is_inactive = state == PENDING
        assert draft.job.progress == (progress_pb2.JobProgress(step=7) if is_inactive else rates)
