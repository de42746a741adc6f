"""When workers that end when there is nothing to do are told that there is nothing to do."""

from __future__ import annotations

from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_services.transport.grpc import Traffic, WorkerStream, tell_the_idle


def _stream(*, exit_when_idle: bool = True, job_id: str = "") -> WorkerStream:
    facts = WorkerFacts("worker", 1, job_id)
    return WorkerStream(facts, exit_when_idle, traffic=Traffic())


def _everybody(job_id: str) -> bool:
    return True


def _nobody(job_id: str) -> bool:
    return False


def test_only_after_a_while_without_interruption() -> None:
    stream = _stream()
    for now, is_busy in [(0.0, False), (9.0, False), (9.5, True), (10.0, False), (19.0, False)]:
        tell_the_idle([stream], _everybody if is_busy else _nobody, 10.0, now)
        assert not stream.told_idle
    tell_the_idle([stream], _nobody, 10.0, 20.0)
    assert stream.told_idle


def test_each_by_its_own_job() -> None:
    streams = [_stream(job_id="done"), _stream(job_id="going on"), _stream(exit_when_idle=False)]
    for now in (0.0, 100.0):
        tell_the_idle(streams, lambda job_id: job_id == "going on", 10.0, now)
    assert [stream.told_idle for stream in streams] == [True, False, False]
