"""Tests when idle workers are told to exit."""

from __future__ import annotations

from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_services.transport.grpc import Traffic, WorkerStream, notify_idle_workers


def _stream(*, exit_when_idle: bool = True, job_id: str = "") -> WorkerStream:
    facts = WorkerFacts("worker", 1, job_id)
    return WorkerStream(facts, exit_when_idle, traffic=Traffic())


def _has_work(job_id: str) -> bool:
    return True


def _has_no_work(job_id: str) -> bool:
    return False


def test_workers_are_notified_after_uninterrupted_idle_time() -> None:
    stream = _stream()
    for now, is_busy in [(0.0, False), (9.0, False), (9.5, True), (10.0, False), (19.0, False)]:
        notify_idle_workers([stream], _has_work if is_busy else _has_no_work, 10.0, now)
        assert not stream.notified_idle
    notify_idle_workers([stream], _has_no_work, 10.0, 20.0)
    assert stream.notified_idle


def test_idleness_is_per_job() -> None:
    streams = [_stream(job_id="done"), _stream(job_id="running"), _stream(exit_when_idle=False)]
    for now in (0.0, 100.0):
        notify_idle_workers(streams, lambda job_id: job_id == "running", 10.0, now)
    assert [stream.notified_idle for stream in streams] == [True, False, False]
