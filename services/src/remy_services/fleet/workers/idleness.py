"""Workers that end when there is nothing left to do are told so."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from remy_farm.v1 import worker_service_pb2
from remy_services.fleet.workers.stream import WorkerStream


def tell_the_idle(
    streams: Iterable[WorkerStream],
    has_work: Callable[[str], bool],
    idle_seconds: float,
    now: float,
) -> None:
    """Tells, once, those that asked for it and had nothing to do for `idle_seconds`."""
    for stream in streams:
        if not stream.exit_when_idle or stream.told_idle:
            continue
        if has_work(stream.facts.job_id):
            stream.idle_since = None
        elif stream.idle_since is None:
            stream.idle_since = now
        elif now - stream.idle_since >= idle_seconds:
            stream.told_idle = True
            nothing = worker_service_pb2.NothingLeft()
            stream.send(worker_service_pb2.WorkResponse(nothing_left=nothing))
