"""Tests watches: complete, without repeats, and ending with the job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.coordinator.farm import CallLimits
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.coordinator.job_handle import Feed
from remy_services.jobs.states import SUCCEEDED
from services.tests.coordinator.gates import Gate, GatedEvaluator
from services.tests.coordinator.running_server import (
    TIMEOUT_SECONDS,
    Client,
    RunningServer,
    refusal,
    settings_for,
)

_SPEC = small_joint_spec()


@pytest.fixture
def gate() -> Gate:
    """Gate of the server's evaluations."""
    return Gate()


@pytest.fixture
def server(tmp_path: Path, gate: Gate) -> Iterator[RunningServer]:
    settings = settings_for(tmp_path)
    farm = replace(settings.farm, calls=CallLimits(open_streams=3))
    around = Instrumentation(evaluator=lambda inner: GatedEvaluator(inner, gate))
    with RunningServer(replace(settings, farm=farm), around) as server:
        yield server


def _watch(client: Client, job: str, after_revision: int = 0) -> Any:
    request = messages.WatchJobRequest(job=job, after_revision=after_revision)
    return client.stub.WatchJob(request, timeout=TIMEOUT_SECONDS)


def test_a_watch_starts_and_ends_with_the_job(client: Client, gate: Gate) -> None:
    gate.open()
    job = client.submit(_SPEC)
    updates = client.watch(job.id)
    assert updates[0].HasField("job")
    assert updates[-1].job.state == SUCCEEDED
    assert updates[-1].job.revision == updates[-2].event.revision


def _has_made(steps: int, job: job_pb2.Job) -> bool:
    return job.progress.step >= steps


def test_all_watchers_see_the_same_history(
    server: RunningServer, client: Client, gate: Gate
) -> None:
    job = client.submit(_SPEC)
    histories: list[list[job_pb2.JobEvent]] = []

    def watch() -> None:
        histories.append(server.client().history(job.id))

    watchers = []
    for steps in (1, 5, 9):
        gate.let_pass(4)
        client.until(job.id, partial(_has_made, steps))
        watchers.append(threading.Thread(target=watch))
        watchers[-1].start()
    gate.open()
    for watcher in watchers:
        watcher.join(TIMEOUT_SECONDS)
    # A watch that starts after the end.
    watch()
    assert len(histories) == 4
    assert all(history == histories[0] for history in histories)
    revisions = [event.revision for event in histories[0]]
    assert revisions == list(range(1, len(revisions) + 1))


def test_a_watch_can_start_at_any_revision(client: Client, gate: Gate) -> None:
    gate.open()
    job = client.submit(small_joint_spec(steps=3))
    whole = client.history(job.id)
    for revision in range(len(whole) + 1):
        updates = client.watch(job.id, after_revision=revision)
        assert [each.event for each in updates if each.HasField("event")] == whole[revision:]


def test_a_future_revision_is_refused(client: Client, gate: Gate) -> None:
    gate.open()
    job = client.submit(_SPEC)
    with pytest.raises(grpc.RpcError) as caught:
        client.watch(job.id, after_revision=10_000)
    code, message = refusal(caught.value)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "after_revision is 10000, but the newest revision is" in message


def test_the_job_is_sent_periodically_without_events(client: Client, gate: Gate) -> None:
    job = client.submit(_SPEC)
    gate.wait_for()
    stream = _watch(client, job.id)
    shown = (update.job for update in stream if update.HasField("job"))
    times = [next(shown).progress.wall_seconds for _ in range(3)]
    assert times == sorted(times)
    assert len(set(times)) == 3
    stream.cancel()


def test_abandoned_streams_free_their_slots(
    server: RunningServer, client: Client, gate: Gate
) -> None:
    job = client.submit(_SPEC)
    gate.wait_for()
    streams = [_watch(client, job.id) for _ in range(3)]
    for stream in streams:
        next(stream)
    with pytest.raises(grpc.RpcError) as caught:
        next(_watch(client, job.id))
    code, message = refusal(caught.value)
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert message == "3 streams are open, which is this coordinator's limit"

    streams[0].cancel()

    def has_room() -> bool:
        try:
            stream = _watch(client, job.id)
            next(stream)
        except grpc.RpcError:
            return False
        stream.cancel()
        return True

    server.until(has_room)


def test_a_deadline_ends_a_watch_on_both_sides(
    server: RunningServer, client: Client, gate: Gate
) -> None:
    job = client.submit(_SPEC)
    gate.wait_for()
    with pytest.raises(grpc.RpcError) as caught:
        list(client.stub.WatchJob(messages.WatchJobRequest(job=job.id), timeout=0.5))
    assert refusal(caught.value)[0] == grpc.StatusCode.DEADLINE_EXCEEDED
    server.until(lambda: server.farm.open_streams == 0)


def test_shutdown_ends_watches_with_a_reason(
    server: RunningServer, client: Client, gate: Gate
) -> None:
    job = client.submit(_SPEC)
    gate.wait_for()
    stream = _watch(client, job.id)
    next(stream)
    ending = threading.Thread(
        target=server.run, args=(server.farm.close("the coordinator is shutting down", 60),)
    )
    ending.start()
    with pytest.raises(grpc.RpcError) as caught:
        for _ in stream:
            pass
    ending.join(TIMEOUT_SECONDS)
    assert refusal(caught.value) == (
        grpc.StatusCode.UNAVAILABLE,
        "the coordinator is shutting down",
    )


def test_a_feed_reports_dropped_events() -> None:
    feed = Feed(0)
    for first in range(1, 2001, 10):
        feed.publish([job_pb2.JobEvent(revision=first + each) for each in range(10)])
    assert feed.revision == 2000
    assert feed.after(2000) == []
    assert feed.after(100) is None
    newest = feed.after(1990)
    assert newest is not None
    assert [event.revision for event in newest] == list(range(1991, 2001))
    feed.clear()
    assert feed.after(1990) is None
