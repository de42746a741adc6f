"""An endless design, and a check that faults changed nothing in its result."""

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

#: Its schedule is longer than any test.
ENDLESS: Final = small_joint_spec(steps=1_000_000, steps_per_epoch=10, simulated_seconds=10)
_MIN_STEPS = 50
_MORE_STEPS = 20
_MAX_ATTEMPTS = 20


def submit_endless(address: str) -> str:
    """Submits the endless design and returns the job's ID."""
    with connect(address) as connection:
        return DesignClient(connection).submit(messages.SubmitJobRequest(spec=ENDLESS)).id


def end_soon(client: DesignClient, job: str) -> None:
    """Sets a budget that ends the design after a few more steps.

    The design continues meanwhile, so that a budget may be too small when it arrives; then a larger
    one is set.
    """
    for _ in range(_MAX_ATTEMPTS):
        steps = max(client.get(job).progress.step + _MORE_STEPS, _MIN_STEPS)
        with suppress(BadRequest):
            client.extend(job, stop=spec_pb2.Stop(steps=steps), joint_steps=None)
            return
    pytest.fail(f"a coordinator made more than {_MORE_STEPS} steps between two calls, each time")


def result(address: str, job: str) -> tuple[job_pb2.Job, bytes]:
    """Returns the job's present state and its RemyCC."""
    with connect(address) as connection:
        client = DesignClient(connection)
        file_format = messages.REMY_CC_FORMAT_JSON
        return client.get(job), client.remycc(job, epoch=None, file_format=file_format).content


def history(redis: LocalRedis, job: str) -> list[job_pb2.JobEvent]:
    """Reads the job's history from the store."""
    with closing(RedisStore(parse_address(redis.url))) as store:
        events = store.events(job, limit=1_000_000)
    return [job_pb2.JobEvent.FromString(data) for _, data in events]


def check_unaffected(
    finished: job_pb2.Job,
    table: bytes,
    history: list[job_pb2.JobEvent],
    watched: list[job_pb2.JobEvent],
    folder: Path,
) -> None:
    """Checks that faults had no effect on the design's table and history.

    The table equals that of the same design without a service. The history has that design's
    progress without gaps or repetitions, and equals what a watcher saw.
    """
    assert finished.state == SUCCEEDED
    # A fast machine makes more steps than requested before the budget arrives.
    steps = finished.progress.step
    assert steps >= _MIN_STEPS
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(ENDLESS)
    spec.stop.steps = steps
    expected_table, expected = embedded_design(spec, folder)
    assert table == expected_table
    assert [event.revision for event in history] == list(range(1, len(history) + 1))
    assert watched == history
    progress = [event.progress for event in history if event.HasField("progress")]
    assert [without_clocks(event) for event in progress] == expected
