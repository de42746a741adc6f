"""Runs the cells of studies and leagues on a farm, as one evaluation job."""

from __future__ import annotations

import functools
import hashlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from remy_cli.common import option, print_status
from remy_cli.connecting import (
    connection_settings,
    pop_connection_options,
    service_errors_exit,
    with_farm_options,
)
from remy_cli.failures import ExitCode, Failure, print_error
from remy_cli.views import Meter, job_label, state_sentence
from remy_farm.analysis import plural
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client import SettingsSource
from remy_services.jobs import describe_state

if TYPE_CHECKING:
    from remy_laboratory.studies import CellBatch, CellRunner
    from remy_services.client import Connection, DesignClient

_ENDED_BEFORE = (job_pb2.JOB_STATE_CANCELLED, job_pb2.JOB_STATE_FAILED)


@dataclass(frozen=True)
class FarmRunner:
    """A coordinator that simulates for a command on its workers."""

    given: SettingsSource
    patience_seconds: float
    priority: int

    def simulate(
        self, name: str, parts: Sequence[CellBatch], runner: CellRunner, progress: Meter
    ) -> None:
        """Evaluates the parts in a job and passes their outcomes to the runner when it ends.

        The same parts use the same job again, unless that job failed or was cancelled. Raises
        Failure if the job does not succeed, and ServiceError and SettingsError.
        """
        from remy_services.client import Connection, DesignClient

        with Connection(
            connection_settings(self.given),
            patience_seconds=self.patience_seconds,
            on_trouble=print_error,
        ) as connection:
            client = DesignClient(connection)
            job = self._submit(client, name, parts)
            progress.start_task(job.name)
            print_status(
                f"{job_label(job)} evaluates {plural(len(parts), 'part')}: {describe_state(job)}"
            )
            try:
                job = _watch_job(connection, job, runner.weight(parts), progress)
            except KeyboardInterrupt:
                print_status(
                    f"{job_label(job)} continues; run the same command again to get its results"
                )
                click.get_current_context().exit(ExitCode.INTERRUPTED)
            if job.state != job_pb2.JOB_STATE_SUCCEEDED:
                raise Failure(state_sentence(job_label(job), job), ExitCode.JOB_FAILED)
            for number, part in enumerate(parts):
                runner.store_outcome(part, client.outcome(job.id, number))

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
            # An earlier job with this id failed or was cancelled, so a new one is needed.
            head.client_request_id = str(uuid.uuid4())
            job = client.submit_evaluation(head, contents)
        return job


def _watch_job(
    connection: Connection, job: job_pb2.Job, total: float, progress: Meter
) -> job_pb2.Job:
    """Follows a job until it ends and returns its final state."""
    from remy_services.client import ConnectionBack, ConnectionLost, watch_job

    for update in watch_job(connection, job.id, after_revision=job.revision):
        match update:
            case job_pb2.Job():
                if update.state == job_pb2.JOB_STATE_PAUSED != job.state:
                    print_status(
                        f"{job_label(update)} is paused; to resume it: remy-farm resume {update.id}"
                    )
                job = update
                progress.set_done(job.progress.share_done * total)
            case ConnectionLost():
                print_status(f"{update.why}; retrying")
            case ConnectionBack():
                print_status("the coordinator is reachable again")
    return job


def pass_farm(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --coordinator and its related options, and passes a FarmRunner as argument `farm`.

    Without --coordinator, `farm` is None and the command simulates on this machine.
    """

    @functools.wraps(function)
    def run(*, patience_seconds: float, priority: int, **values: Any) -> Any:
        given = pop_connection_options(values)
        farm = FarmRunner(given, patience_seconds, priority) if given.coordinator else None
        with service_errors_exit():
            return function(farm=farm, **values)

    priority = option(
        "--priority P",
        "Priority of the job with --coordinator; higher priorities run first.",
        click.INT,
        default=0,
    )
    return with_farm_options(priority(run))


def simulate_missing(
    farm: FarmRunner | None,
    name: str,
    batches: Iterable[CellBatch],
    runner: CellRunner,
    progress: Meter,
) -> None:
    """Simulates the cells that the store lacks on the farm; does nothing if `farm` is None."""
    parts = [] if farm is None else runner.parts_for_farm(batches)
    if farm is not None and parts:
        farm.simulate(name, parts, runner, progress)
