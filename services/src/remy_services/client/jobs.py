"""Jobs of a coordinator for programs and notebooks: submitted, watched, changed, their tables."""

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
from remy_services.client.settings import PATIENCE_SECONDS, TOKEN_VARIABLE, Given, found_settings
from remy_services.client.watching import watch_job
from remy_services.jobs.wording import state_name


class Client:
    """A coordinator, and the jobs that it has. Every method raises ServiceError."""

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
        """A client that connects when it first asks for something.

        What is not given is as the command line has it: by variables such as REMY_FARM_COORDINATOR
        and REMY_FARM_TOKEN, and by the user's configuration file (docs/reference/command-line.md).

        Args:
            coordinator: Its address, as "localhost:50051".
            token: Says who asks.
            tls_ca: A PEM file of the authorities that may have signed its certificate.
            tls_cert: A PEM file with this client's certificate, where it asks for one.
            tls_key: The certificate's key.
            insecure: Whether to talk in plain text to another machine.
            patience_seconds: For how long a request is repeated while it is away, s.

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
        settings = found_settings(Given(insecure=insecure, **texts), environment)
        self.requests = DesignClient(Connection(settings, patience_seconds=patience_seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self.requests.connection.close()

    def submit(
        self, spec: Spec, *, name: str | None = None, priority: int = 0, weight: float | None = None
    ) -> Job:
        """Submits a design to the coordinator; the result is that of `remy_farm.design`.

        Args:
            spec: What is designed; recordings that it names are sent along.
            name: The job's, in place of the specification's.
            priority: Jobs of higher priority run first.
            weight: Its share of the evaluators among running jobs of equal priority; 1 unless
                given.

        Returns:
            The job. A submission that meets a coordinator which restarts makes one job.
        """
        message = spec.message
        for recording in link_traces(message):
            upload_trace(self.requests.connection, recording.opportunities_us)
        request = messages.SubmitJobRequest(
            spec=message, name=name or "", priority=priority, weight=weight
        )
        return Job(self, self.requests.submit(request))

    def job(self, job: str) -> Job:
        """A job by its id, its name or how its id begins, where that is unambiguous."""
        return Job(self, self.requests.get(job))

    def jobs(self) -> list[Job]:
        """All jobs, the newest first."""
        return [Job(self, each) for each in self.requests.list_all(messages.ListJobsRequest())]

    def __repr__(self) -> str:
        return f"Client({str(self.requests.connection.address)!r})"


class Job(Tabular):
    """One job of a coordinator, as it was when it was last asked. Every method raises
    ServiceError."""

    def __init__(self, client: Client, message: job_pb2.Job) -> None:
        """The job that the coordinator describes in a message; `Client` makes them."""
        self._client = client
        self._message = message

    @property
    def id(self) -> str:
        """The coordinator's identifier of the job."""
        return self._message.id

    @property
    def name(self) -> str:
        """The name that its specification gives it."""
        return self._message.name

    @property
    def state(self) -> str:
        """The state when it was last asked, as "running" or "succeeded"."""
        return state_name(self._message.state)

    @property
    def spec(self) -> Spec:
        """The specification of the design."""
        return Spec.of_message(self.refresh()._message.spec)

    def refresh(self) -> Self:
        """Asks how the job is now."""
        return self._became(self._client.requests.get(self.id))

    def watch(self, *, progress: bool | None = None) -> Self:
        """Waits until the job has ended, through restarts of the coordinator.

        Args:
            progress: Whether a line on standard error shows how far it is; where that is a terminal
                or a notebook unless given.
        """
        line = progress_line(self.name, progress)
        try:
            for update in watch_job(self._client.requests.connection, self.id):
                if isinstance(update, job_pb2.Job):
                    self._became(update)
                    if line is not None:
                        line.show(update.progress)
        finally:
            if line is not None:
                line.close()
        return self

    def table(self, *, epoch: int | None = None, name: str | None = None) -> Table:
        """The best table so far.

        Args:
            epoch: That of this epoch in its place.
            name: Which of several that are designed together; the first unless given.
        """
        response = self._client.requests.remycc(
            self.id, epoch=epoch, file_format=messages.REMY_CC_FORMAT_JSON, table=name
        )
        return Table(RemyCC.from_message(from_json(response.content)), name or self.name)

    def rows(self) -> Rows:
        """A row for each epoch: its step, its rules, and what it scored on validation specimens."""
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
        """A new job that begins with this one's best table, for other `settings` by path."""
        told = [f"{path}={json.dumps(value)}" for path, value in (settings or {}).items()]
        request = messages.ForkJobRequest(job=self.id, name=name, settings=told)
        return Job(self._client, self._client.requests.fork(request))

    def pause(self) -> Self:
        """Pauses it: it keeps its state, and evaluates nothing until it is resumed."""
        return self._became(self._client.requests.pause(self.id))

    def resume(self) -> Self:
        """Resumes it after a pause."""
        return self._became(self._client.requests.resume(self.id))

    def cancel(self) -> Self:
        """Ends it; its best table stays."""
        return self._became(self._client.requests.cancel(self.id))

    def delete(self) -> None:
        """Removes it from the coordinator, with its history and tables, once it has ended or is
        paused."""
        self._client.requests.delete(self.id)

    def _became(self, message: job_pb2.Job) -> Self:
        self._message = message
        return self

    def __repr__(self) -> str:
        return f"Job({self.name!r}, {self.state}, id={self.id!r})"
