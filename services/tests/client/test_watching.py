"""Tests watches across lost connections."""

from collections.abc import Sequence

import grpc
import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_rpc.retry import RetryPolicy
from remy_services.client.connection import Connection
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import Refused, ServerFailed
from remy_services.client.watching import ConnectionBack, ConnectionLost, watch_job
from services.tests.client.scripted_service import Failure, ScriptedService, retry_later

LENGTH = 12


def job(state: job_pb2.JobState) -> messages.WatchJobResponse:
    return messages.WatchJobResponse(job=job_pb2.Job(id="j1", name="demo", state=state))


RUNNING = job(job_pb2.JOB_STATE_RUNNING)
SUCCEEDED = job(job_pb2.JOB_STATE_SUCCEEDED)


def events(first: int, last: int) -> list[messages.WatchJobResponse]:
    return [
        messages.WatchJobResponse(event=job_pb2.JobEvent(revision=revision))
        for revision in range(first, last + 1)
    ]


def revisions(updates: Sequence[object]) -> list[int]:
    return [each.revision for each in updates if isinstance(each, job_pb2.JobEvent)]


@given(
    st.lists(
        st.tuples(
            st.integers(0, LENGTH),
            st.booleans(),
            st.sampled_from(
                [retry_later(0.001), Failure(grpc.StatusCode.CANCELLED, "shutting down")]
            ),
        ),
        max_size=4,
    )
)
def test_no_event_is_lost_or_repeated(cuts: list[tuple[int, bool, Failure]]) -> None:
    """Breaks the stream after random events, with or without a job update before them."""
    service = ScriptedService()
    reached = 0
    for cut, sends_job, failure in cuts:
        start: list[Message | Failure] = [RUNNING] if sends_job else []
        service.script("WatchJob", [*start, *events(reached + 1, cut), failure])
        reached = max(reached, cut)
    service.script("WatchJob", [RUNNING, *events(reached + 1, LENGTH), SUCCEEDED])
    server = service.serve()
    settings, retry = ConnectionSettings(service.address), RetryPolicy(first_seconds=0.001)
    with Connection(settings, patience_seconds=60, retry=retry) as connection:
        updates = list(watch_job(connection, "demo"))
    server.stop(grace=None).wait()
    assert revisions(updates) == list(range(1, LENGTH + 1))
    assert updates[-1] == SUCCEEDED.job
    lost = [each for each in updates if isinstance(each, ConnectionLost)]
    back = [each for each in updates if isinstance(each, ConnectionBack)]
    assert len(lost) == len(back) <= len(cuts)


def test_a_reconnect_requests_unseen_events_by_job_id(
    service: ScriptedService, connection: Connection
) -> None:
    service.script(
        "WatchJob",
        [RUNNING, *events(4, 6), retry_later(0.001)],
        [RUNNING, *events(7, 7), SUCCEEDED],
    )
    updates = list(watch_job(connection, "demo", after_revision=3))
    assert revisions(updates) == [4, 5, 6, 7]
    assert service.requests == [
        messages.WatchJobRequest(job="demo", after_revision=3),
        messages.WatchJobRequest(job="j1", after_revision=6),
    ]


def test_repeated_events_are_yielded_once(service: ScriptedService, connection: Connection) -> None:
    service.script("WatchJob", [*events(1, 3), *events(2, 5), SUCCEEDED])
    assert revisions(list(watch_job(connection, "demo"))) == [1, 2, 3, 4, 5]


def test_a_final_state_before_the_rest_of_the_history_does_not_end_the_watch(
    service: ScriptedService, connection: Connection
) -> None:
    service.script(
        "WatchJob",
        [SUCCEEDED, *events(1, 2), retry_later(0.001)],
        [SUCCEEDED, *events(3, 4), SUCCEEDED],
    )
    assert revisions(list(watch_job(connection, "demo"))) == [1, 2, 3, 4]


def test_a_gap_is_an_error(service: ScriptedService, connection: Connection) -> None:
    service.script("WatchJob", [*events(1, 2), *events(4, 4), SUCCEEDED])
    with pytest.raises(ServerFailed, match="event 4 of the job's history followed event 2"):
        list(watch_job(connection, "demo"))


def test_deletion_of_the_job_ends_the_watch(
    service: ScriptedService, connection: Connection
) -> None:
    gone = Failure(grpc.StatusCode.NOT_FOUND, "there is no job 'j1'")
    service.script("WatchJob", [RUNNING, *events(1, 1), retry_later(0.001)], gone)
    updates: list[object] = []
    with pytest.raises(Refused, match="there is no job 'j1'"):
        updates.extend(watch_job(connection, "demo"))
    assert revisions(updates) == [1]


def test_a_stream_that_ends_early_is_reopened(
    service: ScriptedService, connection: Connection
) -> None:
    service.script("WatchJob", [RUNNING, *events(1, 2)], [RUNNING, *events(3, 3), SUCCEEDED])
    assert revisions(list(watch_job(connection, "demo"))) == [1, 2, 3]
