"""Studies and leagues on a farm: their cells as one evaluation job, waited for and brought home."""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from remy_cli.common import option, say
from remy_cli.connecting import (
    connection_settings,
    failures_of_the_service,
    taken,
    with_farm_options,
)
from remy_cli.failures import ExitCode, Failure, complain
from remy_cli.views import Meter, called
from remy_farm.analysis import several
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client import Given
from remy_services.jobs import state

if TYPE_CHECKING:
    from remy_laboratory.studies import CellBatch, CellRunner
    from remy_services.client import Connection, DesignClient

_ENDED_BEFORE = (job_pb2.JOB_STATE_CANCELLED, job_pb2.JOB_STATE_FAILED)


@dataclass(frozen=True)
class OnFarm:
    """The coordinator on whose workers a command simulates."""

    given: Given
    patience_seconds: float
    priority: int

    def simulate(
        self, name: str, parts: Sequence[CellBatch], runner: CellRunner, shown: Meter
    ) -> None:
        """Has the runner take what these parts come to, once all of them are there.

        The same parts are the same job, until it has failed or was cancelled. Raises Failure if the
        job does not succeed, ServiceError and SettingsError.
        """
        from remy_services.client import Connection, DesignClient

        with Connection(
            connection_settings(self.given),
            patience_seconds=self.patience_seconds,
            on_trouble=complain,
        ) as connection:
            client = DesignClient(connection)
            job = self._submit(client, name, parts)
            shown.work(job.name)
            say(f"{called(job)} evaluates {several(len(parts), 'part')}: {state(job)}")
            try:
                job = _watched(connection, job, runner.weight(parts), shown)
            except KeyboardInterrupt:
                say(f"{called(job)} goes on; the same command waits for it, and has its results")
                click.get_current_context().exit(ExitCode.INTERRUPTED)
            if job.state != job_pb2.JOB_STATE_SUCCEEDED:
                raise Failure(f"{called(job)} is {state(job)}", ExitCode.JOB_FAILED)
            for number, part in enumerate(parts):
                runner.take(part, client.outcome(job.id, number))

    def _submit(self, client: DesignClient, name: str, parts: Sequence[CellBatch]) -> job_pb2.Job:
        from remy_services.client import upload_trace
        from remy_services.transport import SimulatorIdentity

        simulator_sha256 = SimulatorIdentity.own().sha256
        contents, recordings = [], {}
        for part in parts:
            request = part.request()
            for trace in request.traces:
                recordings[trace.sha256] = trace.opportunities_us
                trace.ClearField("opportunities_us")
            contents.append(request.SerializeToString(deterministic=True))
        for opportunities_us in recordings.values():
            upload_trace(client.connection, opportunities_us)
        digests = b"".join(hashlib.sha256(content).digest() for content in contents)
        head = messages.SubmitEvaluationRequest(
            client_request_id=hashlib.sha256(simulator_sha256 + digests).hexdigest(),
            name=name,
            priority=self.priority,
            simulator_sha256=simulator_sha256,
        )
        job = client.submit_evaluation(head, contents)
        if job.state in _ENDED_BEFORE:
            # It ended some time ago; what it has come to is not evaluated again.
            head.client_request_id = str(uuid.uuid4())
            job = client.submit_evaluation(head, contents)
        return job


def _watched(connection: Connection, job: job_pb2.Job, total: float, shown: Meter) -> job_pb2.Job:
    """The job as it ended."""
    from remy_services.client import ConnectionBack, ConnectionLost, watch_job

    for update in watch_job(connection, job.id, after_revision=job.revision):
        match update:
            case job_pb2.Job():
                if update.state == job_pb2.JOB_STATE_PAUSED != job.state:
                    say(f"{called(update)} is paused; remy-farm resume {update.id} has it go on")
                job = update
                shown.advance(job.progress.share_done * total)
            case ConnectionLost():
                say(f"{update.why}; waiting for it")
            case ConnectionBack():
                say("the coordinator is back")
    return job


def on_farm_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command --coordinator and what goes with it, as the argument `farm`: None where it is
    to simulate on this machine."""

    @functools.wraps(function)
    def run(*, patience_seconds: float, priority: int, **values: Any) -> Any:
        given = taken(values)
        farm = OnFarm(given, patience_seconds, priority) if given.coordinator else None
        with failures_of_the_service():
            return function(farm=farm, **values)

    priority = option(
        "--priority P", "Of the job with --coordinator: higher runs first.", click.INT, default=0
    )
    return with_farm_options(priority(run))


def simulate_missing(
    farm: OnFarm | None, name: str, batches: Iterable[CellBatch], runner: CellRunner, shown: Meter
) -> None:
    """Has a farm simulate what is not there yet, if there is a farm."""
    parts = [] if farm is None else runner.requests(batches)
    if farm is not None and parts:
        farm.simulate(name, parts, runner, shown)
