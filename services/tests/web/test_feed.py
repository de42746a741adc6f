"""Tests the order of the feed's first updates, and its cache for returning browsers."""

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
    """A client with many jobs, which signals requests for the newest jobs and for all jobs."""

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


def _listen(feed: JobFeed) -> queue.Queue[Tree]:
    updates: queue.Queue[Tree] = queue.Queue()
    feed.listen(updates.put)
    return updates


def _is_screenful(update: dict[str, Any]) -> bool:
    return bool(update.get("more")) and 0 < len(update["rows"]) < JOBS


def test_a_listener_gets_the_newest_jobs_then_all(feed: JobFeed, client: ScriptedClient) -> None:
    updates = _listen(feed)
    assert _is_screenful(updates.get(timeout=_DEADLINE_SECONDS))
    client.may_answer_all.set()
    assert len(updates.get(timeout=_DEADLINE_SECONDS)["rows"]) == JOBS


def test_an_expected_listener_gets_known_jobs_at_once(
    feed: JobFeed, client: ScriptedClient
) -> None:
    feed.expect()
    assert client.newest_asked.acquire(timeout=_DEADLINE_SECONDS)
    early = _listen(feed)
    assert _is_screenful(early.get(timeout=_DEADLINE_SECONDS))
    client.may_answer_all.set()
    assert len(early.get(timeout=_DEADLINE_SECONDS)["rows"]) == JOBS
    # All jobs are known now: the newest come first, in order, without another request.
    late = _listen(feed)
    first, rest = late.get_nowait(), late.get_nowait()
    assert _is_screenful(first)
    assert [row["id"] for row in first["rows"]] == [f"job-{i}" for i in range(len(first["rows"]))]
    assert len(rest["rows"]) == JOBS
    assert not client.newest_asked.acquire(blocking=False)


def test_first_waits_for_the_newest_jobs(feed: JobFeed, client: ScriptedClient) -> None:
    feed.expect()
    newest = feed.first(_DEADLINE_SECONDS)
    assert newest is not None
    assert _is_screenful(newest)
    updates = _listen(feed)
    client.may_answer_all.set()
    assert len(updates.get(timeout=_DEADLINE_SECONDS)["rows"]) < JOBS
    assert len(updates.get(timeout=_DEADLINE_SECONDS)["rows"]) == JOBS
    assert feed.first(0) == newest


def test_first_returns_none_without_listeners_or_answer(
    feed: JobFeed, client: ScriptedClient
) -> None:
    assert feed.first(0) is None
    client.error = ServiceError("gone", grpc.StatusCode.UNAVAILABLE)
    feed.expect()
    assert feed.first(_DEADLINE_SECONDS) is None
    updates = _listen(feed)
    assert updates.get(timeout=_DEADLINE_SECONDS)["kind"] in ("lost", "refused")


@pytest.mark.parametrize("away_seconds", [5.0, 300.0])
def test_a_returning_listener_gets_cached_jobs_first(
    client: ScriptedClient, away_seconds: float
) -> None:
    now = 0.0
    feed = JobFeed(cast("DesignClient", client), clock=lambda: now)
    client.may_answer_all.set()
    before: queue.Queue[Tree] = queue.Queue()
    feed.listen(before.put)
    while len(before.get(timeout=_DEADLINE_SECONDS)["rows"]) < JOBS:
        pass
    feed.remove_listener(before.put)
    assert client.newest_asked.acquire(timeout=_DEADLINE_SECONDS)
    now += away_seconds
    feed.expect()
    newest = feed.first(0)
    assert newest is not None
    assert _is_screenful(newest)
    updates = _listen(feed)
    assert updates.get_nowait() == newest
    assert len(updates.get_nowait()["rows"]) == JOBS
    # Then it gets the changes.
    client.change(0)
    changed = updates.get(timeout=_DEADLINE_SECONDS)
    assert changed["kind"] == "changed"
    assert [row["id"] for row in changed["rows"]] == ["job-0"]
    assert not client.newest_asked.acquire(blocking=False)
    feed.close()


def test_the_cache_expires_without_listeners(
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
