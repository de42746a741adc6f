"""The feed tells what a screen shows first, and knows it already where a browser is expected."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, cast

import grpc
import pytest

from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client.design_client import DesignClient
from remy_services.client.status import ServiceError
from remy_services.web.feed import JobFeed, Tree

JOBS = 200
_DEADLINE_SECONDS = 60


class ScriptedClient:
    """A coordinator with many jobs, which says when it was asked for the newest and for all."""

    def __init__(self) -> None:
        self.newest_asked = threading.Semaphore(0)
        self.all_asked = threading.Semaphore(0)
        self.may_answer_all = threading.Event()
        self.error: ServiceError | None = None
        self._jobs = [
            job_pb2.Job(id=f"job-{number}", state=job_pb2.JOB_STATE_PENDING)
            for number in range(JOBS)
        ]
        for number, job in enumerate(self._jobs):
            job.create_time.seconds = JOBS - number

    def change(self, number: int) -> None:
        self._jobs[number].revision += 1

    def list(self, request: messages.ListJobsRequest) -> messages.ListJobsResponse:
        self.newest_asked.release()
        if self.error is not None:
            raise self.error
        return messages.ListJobsResponse(
            jobs=self._jobs[: request.page_size], next_page_token="more"
        )

    def list_all(self, request: messages.ListJobsRequest) -> Iterator[job_pb2.Job]:
        assert self.may_answer_all.wait(_DEADLINE_SECONDS)
        self.all_asked.release()
        yield from self._jobs


@pytest.fixture
def client() -> ScriptedClient:
    return ScriptedClient()


@pytest.fixture
def feed(client: ScriptedClient) -> Iterator[JobFeed]:
    feed = JobFeed(cast("DesignClient", client))
    yield feed
    client.may_answer_all.set()
    feed.close()


def _told(feed: JobFeed) -> queue.Queue[Tree]:
    told: queue.Queue[Tree] = queue.Queue()
    feed.listen(told.put)
    return told


def _is_screenful(update: dict[str, Any]) -> bool:
    return bool(update.get("more")) and 0 < len(update["rows"]) < JOBS


def test_who_is_not_expected_is_told_the_newest_and_then_all(
    feed: JobFeed, client: ScriptedClient
) -> None:
    told = _told(feed)
    assert _is_screenful(told.get(timeout=_DEADLINE_SECONDS))
    client.may_answer_all.set()
    assert len(told.get(timeout=_DEADLINE_SECONDS)["rows"]) == JOBS


def test_who_is_expected_is_told_at_once_what_is_known(
    feed: JobFeed, client: ScriptedClient
) -> None:
    feed.expect()
    assert client.newest_asked.acquire(timeout=_DEADLINE_SECONDS)
    early = _told(feed)
    assert _is_screenful(early.get(timeout=_DEADLINE_SECONDS))
    client.may_answer_all.set()
    assert len(early.get(timeout=_DEADLINE_SECONDS)["rows"]) == JOBS
    # By now nothing has to be asked for: the newest again come first, and in their order.
    late = _told(feed)
    first, rest = late.get_nowait(), late.get_nowait()
    assert _is_screenful(first)
    assert [row["id"] for row in first["rows"]] == [f"job-{i}" for i in range(len(first["rows"]))]
    assert len(rest["rows"]) == JOBS
    assert not client.newest_asked.acquire(blocking=False)


def test_what_is_known_first_can_be_waited_for(feed: JobFeed, client: ScriptedClient) -> None:
    feed.expect()
    newest = feed.first(_DEADLINE_SECONDS)
    assert newest is not None
    assert _is_screenful(newest)
    told = _told(feed)
    client.may_answer_all.set()
    assert len(told.get(timeout=_DEADLINE_SECONDS)["rows"]) < JOBS
    assert len(told.get(timeout=_DEADLINE_SECONDS)["rows"]) == JOBS
    assert feed.first(0) == newest


def test_nothing_is_known_where_nobody_asks_or_the_coordinator_does_not_answer(
    feed: JobFeed, client: ScriptedClient
) -> None:
    assert feed.first(0) is None
    client.error = ServiceError("gone", grpc.StatusCode.UNAVAILABLE)
    feed.expect()
    assert feed.first(_DEADLINE_SECONDS) is None
    told = _told(feed)
    assert told.get(timeout=_DEADLINE_SECONDS)["kind"] in ("lost", "refused")


@pytest.mark.parametrize("away_seconds", [5.0, 300.0])
def test_who_comes_back_soon_begins_with_what_was_known(
    client: ScriptedClient, away_seconds: float
) -> None:
    now = 0.0
    feed = JobFeed(cast("DesignClient", client), clock=lambda: now)
    client.may_answer_all.set()
    before: queue.Queue[Tree] = queue.Queue()
    feed.listen(before.put)
    while len(before.get(timeout=_DEADLINE_SECONDS)["rows"]) < JOBS:
        pass
    feed.leave(before.put)
    assert client.newest_asked.acquire(timeout=_DEADLINE_SECONDS)
    now += away_seconds
    feed.expect()
    newest = feed.first(0)
    assert newest is not None
    assert _is_screenful(newest)
    told = _told(feed)
    assert told.get_nowait() == newest
    assert len(told.get_nowait()["rows"]) == JOBS
    # And hears what has changed since.
    client.change(0)
    changed = told.get(timeout=_DEADLINE_SECONDS)
    assert changed["kind"] == "changed"
    assert [row["id"] for row in changed["rows"]] == ["job-0"]
    assert not client.newest_asked.acquire(blocking=False)
    feed.close()


def test_what_is_known_is_forgotten_when_nobody_is_expected_any_more(
    client: ScriptedClient,
) -> None:
    now = 0.0
    feed = JobFeed(cast("DesignClient", client), clock=lambda: now)
    client.may_answer_all.set()
    for _ in range(2):
        feed.expect()
        assert client.newest_asked.acquire(timeout=_DEADLINE_SECONDS)
        assert client.all_asked.acquire(timeout=_DEADLINE_SECONDS)
        now += 3600
    feed.close()
