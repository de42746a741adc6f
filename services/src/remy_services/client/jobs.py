"""Client and Job: a coordinator's jobs for programs and notebooks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Self

from remy_farm.api.progress import progress_line
from remy_farm.api.showing import Rows, Tabular, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.remycc import RemyCC, from_json
from remy_farm.specification.referenced_files import link_traces
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient, upload_trace
from remy_services.client.settings import (
    PATIENCE_SECONDS,
    TOKEN_VARIABLE,
    SettingsSource,
    load_settings,
)
from remy_services.client.watching import watch_job
from remy_services.jobs.formatting import state_name


class Client:
    """A coordinator and its jobs. Every method raises ServiceError."""

    def __init__(
        self,
        coordinator: str | None = None,
        *,
        token: str | None = None,
        tls_ca: str | None = None,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        insecure: bool | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Creates a client that connects on first use.

        Arguments that are None come from environment variables such as REMY_FARM_COORDINATOR and
        REMY_FARM_TOKEN, and from the user's configuration file (docs/reference/command-line.md).

        Args:
            coordinator: The coordinator's address, such as "localhost:50051".
            token: The token that identifies the caller.
            tls_ca: PEM file of the CAs that may have signed the coordinator's certificate.
            tls_cert: PEM file of this client's certificate, if the coordinator requires one.
            tls_key: PEM file of the client certificate's key.
            insecure: Whether to allow plain text to another machine.
            patience_seconds: Time for which requests are retried while the coordinator is
            unavailable.

        Raises:
            SettingsError: The settings contradict each other, or a file cannot be read.
        """
        given = {
            "coordinator": coordinator,
            "tls_ca": tls_ca,
            "tls_cert": tls_cert,
            "tls_key": tls_key,
        }
        texts = {
            name: os.environ.get(f"REMY_FARM_{name.upper()}") or None if text is None else text
            for name, text in given.items()
        }
        environment = {**os.environ, **({TOKEN_VARIABLE: token} if token is not None else {})}
        settings = load_settings(SettingsSource(insecure=insecure, **texts), environment)
        self.requests = DesignClient(Connection(settings, patience_seconds=patience_seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self.requests.connection.close()

    def submit(
        self, spec: Spec, *, name: str | None = None, priority: int = 0, weight: float | None = None
    ) -> Job:
        """Submits a design. The result equals that of `remy_farm.design`.


        Args:
            spec: The specification. Link traces that it names are uploaded.
            name: Name of the job; None uses the specification's name.
            priority: Jobs of higher priority run first.
            weight: Share of the evaluators among running jobs of equal priority; 1 if None.

        Returns:
            The job. Retries during a restart of the coordinator create only one job.
        """
        message = spec.message
        for recording in link_traces(message):
            upload_trace(self.requests.connection, recording.opportunities_us)
        request = messages.SubmitJobRequest(
            spec=message, name=name or "", priority=priority, weight=weight
        )
        return Job(self, self.requests.submit(request))

    def job(self, job: str) -> Job:
        """Returns the job with this id, unique name or unique id prefix."""
        return Job(self, self.requests.get(job))

    def jobs(self) -> list[Job]:
        """Returns all jobs, newest first."""
        return [Job(self, each) for each in self.requests.list_all(messages.ListJobsRequest())]

    def __repr__(self) -> str:
        return f"Client({str(self.requests.connection.address)!r})"


class Job(Tabular):
    """A coordinator's job, in the state of the last request. Every method raises ServiceError."""

    def __init__(self, client: Client, message: job_pb2.Job) -> None:
        """Wraps the coordinator's message. Jobs are created by `Client`."""
        self._client = client
        self._message = message

    @property
    def id(self) -> str:
        """The job's id."""
        return self._message.id

    @property
    def name(self) -> str:
        """The job's name."""
        return self._message.name

    @property
    def state(self) -> str:
        """The job's state at the last request, such as "running" or "succeeded"."""
        return state_name(self._message.state)

    @property
    def spec(self) -> Spec:
        """The specification of the design."""
        return Spec.of_message(self.refresh()._message.spec)

    def refresh(self) -> Self:
        """Updates the job from the coordinator."""
        return self._update(self._client.requests.get(self.id))

    def watch(self, *, progress: bool | None = None) -> Self:
        """Waits until the job has ended, across restarts of the coordinator.


        Args:
            progress: Whether to show a progress line on standard error. None shows it in terminals
                and notebooks.
        """
        line = progress_line(self.name, progress)
        try:
            for update in watch_job(self._client.requests.connection, self.id):
                if isinstance(update, job_pb2.Job):
                    self._update(update)
                    if line is not None:
                        line.show(update.progress)
        finally:
            if line is not None:
                line.close()
        return self

    def table(self, *, epoch: int | None = None, name: str | None = None) -> Table:
        """Downloads the best table so far.


        Args:
            epoch: Downloads the table of this epoch instead.
            name: Name of one of several tables designed together; None means the first.
        """
        response = self._client.requests.remycc(
            self.id, epoch=epoch, file_format=messages.REMY_CC_FORMAT_JSON, table=name
        )
        return Table(RemyCC.from_message(from_json(response.content)), name or self.name)

    def rows(self) -> Rows:
        """Returns a row per epoch: step, rules, and score on validation specimens."""
        kinds = {
            "epoch": int,
            "step": int,
            "rules": int,
            "accepted": bool,
            "score": float,
            "score_standard_error": float,
        }
        rows = []
        for epoch in self._client.requests.epochs(self.id):
            record = epoch.record
            after = record.comparison.after if record.comparison.HasField("after") else None
            rows.append(
                {
                    "epoch": record.epoch,
                    "step": record.step,
                    "rules": record.rules,
                    "accepted": record.comparison.accepted,
                    "score": None if after is None else after.mean,
                    "score_standard_error": None if after is None else after.standard_error,
                }
            )
        return rows_of(kinds, rows)

    def fork(self, settings: Mapping[str, Any] | None = None, *, name: str = "") -> Job:
        """Creates a job that starts from this job's best table, with changed `settings` by path."""
        changes = [f"{path}={json.dumps(value)}" for path, value in (settings or {}).items()]
        request = messages.ForkJobRequest(job=self.id, name=name, settings=changes)
        return Job(self._client, self._client.requests.fork(request))

    def pause(self) -> Self:
        """Pauses the job after a checkpoint, until it is resumed."""
        return self._update(self._client.requests.pause(self.id))

    def resume(self) -> Self:
        """Resumes the job after a pause."""
        return self._update(self._client.requests.resume(self.id))

    def cancel(self) -> Self:
        """Cancels the job; its best table is kept."""
        return self._update(self._client.requests.cancel(self.id))

    def delete(self) -> None:
        """Deletes the job with its history and tables. It must be final or paused."""
        self._client.requests.delete(self.id)

    def _update(self, message: job_pb2.Job) -> Self:
        self._message = message
        return self

    def __repr__(self) -> str:
        return f"Job({self.name!r}, {self.state}, id={self.id!r})"
