"""A design that goes on for as long as a test does, and what it must have come to in the end."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.client.design_client import DesignClient
from remy_services.client.status import BadRequest
from remy_services.jobs.states import SUCCEEDED
from remy_services.stores.redis.connection import parse_address
from remy_services.stores.redis.store import RedisStore
from services.tests.coordinator.embedded_design import embedded_design, without_clocks
from services.tests.stores.local_redis import LocalRedis
from tests.service.watcher import connect

#: A schedule that is longer than any machine gets.
ENDLESS: Final = small_joint_spec(steps=1_000_000, steps_per_epoch=10, simulated_seconds=10)
_FEWEST_STEPS = 50
_MORE_STEPS = 20
_TRIES = 20


def submit_endless(address: str) -> str:
    """The job."""
    with connect(address) as connection:
        return DesignClient(connection).submit(messages.SubmitJobRequest(spec=ENDLESS)).id


def end_soon(client: DesignClient, job: str) -> None:
    """Lets the design make a few steps more, however many it makes before it is told."""
    for _ in range(_TRIES):
        least = max(client.get(job).progress.step + _MORE_STEPS, _FEWEST_STEPS)
        with suppress(BadRequest):
            client.extend(job, stop=spec_pb2.Stop(steps=least), joint_steps=None)
            return
    pytest.fail(f"a coordinator made more than {_MORE_STEPS} steps between two calls, each time")


def result(address: str, job: str) -> tuple[job_pb2.Job, bytes]:
    """The job as it is, and its RemyCC."""
    with connect(address) as connection:
        client = DesignClient(connection)
        file_format = messages.REMY_CC_FORMAT_JSON
        return client.get(job), client.remycc(job, epoch=None, file_format=file_format).content


def history(redis: LocalRedis, job: str) -> list[job_pb2.JobEvent]:
    """As the store has it."""
    with closing(RedisStore(parse_address(redis.url))) as store:
        events = store.events(job, limit=1_000_000)
    return [job_pb2.JobEvent.FromString(data) for _, data in events]


def check_untouched(
    finished: job_pb2.Job,
    table: bytes,
    history: list[job_pb2.JobEvent],
    seen: list[job_pb2.JobEvent],
    folder: Path,
) -> None:
    """Nothing that was done to the design can be told from what it came to, or how.

    Its table is the embedded design's, and its history has that one's progress, without a gap or a
    repeat, and nothing that was shown to a watcher is missing from it.
    """
    assert finished.state == SUCCEEDED
    # A quick machine may have made more steps than were asked for before it was told.
    steps = finished.progress.step
    assert steps >= _FEWEST_STEPS
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(ENDLESS)
    spec.stop.steps = steps
    expected_table, expected = embedded_design(spec, folder)
    assert table == expected_table
    assert [event.revision for event in history] == list(range(1, len(history) + 1))
    assert seen == history
    progress = [event.progress for event in history if event.HasField("progress")]
    assert [without_clocks(event) for event in progress] == expected
