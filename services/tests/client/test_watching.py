"""A watch through connections that break anywhere."""

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
from services.tests.client.scripted_service import Failure, ScriptedService, later

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
            st.sampled_from([later(0.001), Failure(grpc.StatusCode.CANCELLED, "shutting down")]),
        ),
        max_size=4,
    )
)
def test_no_entry_is_lost_or_repeated(cuts: list[tuple[int, bool, Failure]]) -> None:
    """The coordinator ends the stream after any entry, before or after telling how far the job is,
    and answers a new watch from wherever that watch asks it to."""
    service = ScriptedService()
    reached = 0
    for cut, tells, failure in cuts:
        told: list[Message | Failure] = [RUNNING] if tells else []
        service.script("WatchJob", [*told, *events(reached + 1, cut), failure])
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


def test_it_asks_for_what_it_has_not_seen_by_the_jobs_id(
    service: ScriptedService, connection: Connection
) -> None:
    service.script(
        "WatchJob",
        [RUNNING, *events(4, 6), later(0.001)],
        [RUNNING, *events(7, 7), SUCCEEDED],
    )
    updates = list(watch_job(connection, "demo", after_revision=3))
    assert revisions(updates) == [4, 5, 6, 7]
    assert service.requests == [
        messages.WatchJobRequest(job="demo", after_revision=3),
        messages.WatchJobRequest(job="j1", after_revision=6),
    ]


def test_what_was_sent_twice_is_shown_once(
    service: ScriptedService, connection: Connection
) -> None:
    service.script("WatchJob", [*events(1, 3), *events(2, 5), SUCCEEDED])
    assert revisions(list(watch_job(connection, "demo"))) == [1, 2, 3, 4, 5]


def test_a_final_state_that_came_before_the_rest_of_the_history_ends_nothing(
    service: ScriptedService, connection: Connection
) -> None:
    service.script(
        "WatchJob",
        [SUCCEEDED, *events(1, 2), later(0.001)],
        [SUCCEEDED, *events(3, 4), SUCCEEDED],
    )
    assert revisions(list(watch_job(connection, "demo"))) == [1, 2, 3, 4]


def test_a_gap_is_an_error(service: ScriptedService, connection: Connection) -> None:
    service.script("WatchJob", [*events(1, 2), *events(4, 4), SUCCEEDED])
    with pytest.raises(ServerFailed, match="entry 4 of the job's history followed entry 2"):
        list(watch_job(connection, "demo"))


def test_a_job_that_is_deleted_meanwhile_ends_the_watch(
    service: ScriptedService, connection: Connection
) -> None:
    gone = Failure(grpc.StatusCode.NOT_FOUND, "there is no job 'j1'")
    service.script("WatchJob", [RUNNING, *events(1, 1), later(0.001)], gone)
    updates: list[object] = []
    with pytest.raises(Refused, match="there is no job 'j1'"):
        updates.extend(watch_job(connection, "demo"))
    assert revisions(updates) == [1]


def test_a_stream_that_ends_before_the_job_is_taken_up_again(
    service: ScriptedService, connection: Connection
) -> None:
    service.script("WatchJob", [RUNNING, *events(1, 2)], [RUNNING, *events(3, 3), SUCCEEDED])
    assert revisions(list(watch_job(connection, "demo"))) == [1, 2, 3]
