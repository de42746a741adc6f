"""The life of a job under everything that may happen to it, in any order."""

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
    NotNow,
    Operation,
    after_crash,
    state_after,
)
from services.tests.jobs.records import at, new_record

_ASKED = st.sampled_from([each for each in Operation if each is not Operation.DELETE])
_ALL_STATES = frozenset(job_pb2.JobState.values()) - {job_pb2.JOB_STATE_UNSPECIFIED}


class Life(RuleBasedStateMachine):
    """A job, what users ask of it, what its run does, and crashes of its coordinator."""

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

    @rule(operation=_ASKED)
    def ask(self, operation: Operation) -> None:
        draft = self._draft()
        try:
            following = state_after(operation, self.state)
        except NotNow:
            return
        if following == CANCELLED != self.state:
            draft.cancel(by="ada")
        elif following != self.state:
            draft.move(following, by="ada")
        self._commit(draft)

    @precondition(lambda self: self.state == PENDING)
    @rule()
    def its_turn_comes(self) -> None:
        draft = self._draft()
        draft.move(SCHEDULING)
        self._commit(draft)

    @precondition(lambda self: self.state in (SCHEDULING, RECOVERING))
    @rule()
    def it_begins(self) -> None:
        draft = self._draft()
        if self.state == RECOVERING:
            draft.recovered(3, "here")
        draft.move(RUNNING)
        self._commit(draft)

    @precondition(lambda self: self.state in (SCHEDULING, RUNNING, RECOVERING))
    @rule()
    def it_gives_way(self) -> None:
        draft = self._draft()
        draft.move(PENDING, message="gave way")
        self._commit(draft)

    @precondition(lambda self: self.state in (RUNNING, PAUSING, CANCELLING))
    @rule()
    def its_design_ends(self) -> None:
        draft = self._draft()
        draft.finish(progress_pb2.STOP_REASON_EPOCHS, SUCCEEDED)
        self._commit(draft)

    @precondition(lambda self: self.state in (PAUSING, CANCELLING))
    @rule()
    def it_does_as_asked(self) -> None:
        draft = self._draft()
        if self.state == PAUSING:
            draft.move(PAUSED)
        else:
            draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
        self._commit(draft)

    @precondition(lambda self: self.state in ACTIVE)
    @rule()
    def it_fails(self) -> None:
        draft = self._draft()
        draft.fail(job_pb2.FAILURE_REASON_INTERNAL, "internal error", FAILED)
        self._commit(draft)

    @rule()
    def its_coordinator_crashes(self) -> None:
        draft = self._draft()
        after_crash(draft)
        self._commit(draft)
        assert self.state in {PENDING, PAUSED, RECOVERING} | FINAL

    @invariant()
    def the_history_tells_every_change_once(self) -> None:
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
    def what_is_said_of_the_end_is_said_at_the_end_alone(self) -> None:
        job = self.record.job
        assert job.HasField("end_time") == (job.state in FINAL)
        assert bool(job.stop_reason) == (job.state in (SUCCEEDED, CANCELLED))
        assert bool(job.failure_reason) == (job.state == FAILED)


TestLife = Life.TestCase


def test_every_state_has_its_followers_and_can_be_reached() -> None:
    assert set(TRANSITIONS) == _ALL_STATES
    reached = {PENDING}
    while more := {to for state in reached for to in TRANSITIONS[state]} - reached:
        reached |= more
    assert reached == _ALL_STATES


def test_what_does_not_follow_is_refused() -> None:
    draft = Draft(new_record(), at(2))
    with pytest.raises(ValueError, match="a job that is PENDING cannot become SUCCEEDED"):
        draft.move(SUCCEEDED)


@pytest.mark.parametrize("operation", Operation)
def test_what_an_operation_leads_to_follows(operation: Operation) -> None:
    allowed = 0
    for state in TRANSITIONS:
        try:
            following = state_after(operation, state)
        except NotNow:
            continue
        assert following == state or following in TRANSITIONS[state]
        allowed += 1
    assert 0 < allowed < len(_ALL_STATES)


def test_what_a_state_does_not_allow_is_refused_with_those_that_do() -> None:
    with pytest.raises(NotNow) as caught:
        state_after(Operation.DELETE, RUNNING)
    assert str(caught.value) == (
        "a job that is RUNNING cannot be deleted; it must be one of PAUSED, CANCELLED, SUCCEEDED, "
        "FAILED"
    )


def test_a_draft_leaves_the_record_that_it_begins_with_alone() -> None:
    record = new_record()
    before = record.SerializeToString()
    Draft(record, at(2)).move(SCHEDULING)
    assert record.SerializeToString() == before


def test_the_first_start_is_remembered() -> None:
    record = new_record()
    for seconds, state in ((2, SCHEDULING), (3, RUNNING), (4, PENDING), (5, SCHEDULING)):
        draft = Draft(record, at(seconds))
        draft.move(state)
        record = draft.record
    draft = Draft(record, at(6))
    draft.move(RUNNING)
    assert draft.job.start_time == at(3)


def test_nothing_is_said_of_the_pace_of_a_job_that_rests() -> None:
    pace = progress_pb2.JobProgress(
        step=7, packets_per_second=1e6, evaluations_per_second=9, workers=3, eta_seconds=60
    )
    for state in (PENDING, PAUSING):
        record = new_record()
        record.job.state = RUNNING
        record.job.progress.CopyFrom(pace)
        draft = Draft(record, at(2))
        draft.move(state)
        rests = state == PENDING
        assert draft.job.progress == (progress_pb2.JobProgress(step=7) if rests else pace)
