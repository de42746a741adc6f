"""The command `remy-worker`, also available as `remy-farm worker`."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import click

_FILE = click.Path(dir_okay=False, path_type=Path)
_LEVELS = ("debug", "info", "warning", "error")


@click.command(
    name="remy-worker",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, told to end, or interrupted by EC2; 1 internal error; 2 bad input; "
    "4 not allowed (token or role); 6 rejected (quarantined); 7 unsuitable (a simulator different "
    "from the coordinator's, or a coordinator that accepts no workers).",
)
@click.option(
    "--coordinator",
    metavar="HOST:PORT",
    required=True,
    envvar="REMY_FARM_COORDINATOR",
    show_envvar=True,
    help="Address of the coordinator; on the same machine also unix:PATH.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1, max=4096),
    metavar="N",
    envvar="REMY_FARM_WORKER_THREADS",
    show_envvar=True,
    help="Number of simulation threads; by default the CPUs allowed by affinity and cgroup.",
)
@click.option(
    "--job",
    "job_id",
    metavar="ID",
    default="",
    envvar="REMY_FARM_WORKER_JOB",
    show_envvar=True,
    help="Work for this job only.",
)
@click.option(
    "--exit-when-idle",
    is_flag=True,
    help="Exit when no work is left: for the job given by --job, or for any job.",
)
@click.option(
    "--interrupted-exit-code",
    type=click.IntRange(0, 255),
    default=0,
    show_default=True,
    metavar="CODE",
    envvar="REMY_FARM_WORKER_INTERRUPTED_EXIT_CODE",
    show_envvar=True,
    help="Exit code after a signal or an EC2 interruption notice. A Kubernetes Job takes 0 as the "
    "completion of all its work.",
)
@click.option("--pin-threads", is_flag=True, help="Pin each thread to one CPU.")
@click.option(
    "--token-file",
    type=_FILE,
    metavar="FILE",
    envvar="REMY_FARM_TOKEN_FILE",
    show_envvar=True,
    help="File with the bearer token; read again at every call.",
)
@click.option(
    "--tls-ca",
    type=_FILE,
    metavar="FILE",
    envvar="REMY_FARM_TLS_CA",
    show_envvar=True,
    help="CA certificates that verify the coordinator's certificate (PEM).",
)
@click.option(
    "--tls-cert",
    type=_FILE,
    metavar="FILE",
    envvar="REMY_FARM_TLS_CERT",
    show_envvar=True,
    help="Client certificate, for a coordinator that requires one (PEM).",
)
@click.option(
    "--tls-key",
    type=_FILE,
    metavar="FILE",
    envvar="REMY_FARM_TLS_KEY",
    show_envvar=True,
    help="Private key of the client certificate (PEM).",
)
@click.option(
    "--tls-server-name",
    metavar="NAME",
    envvar="REMY_FARM_TLS_SERVER_NAME",
    show_envvar=True,
    help="Name in the coordinator's certificate, if it differs from the host.",
)
@click.option(
    "--insecure",
    is_flag=True,
    envvar="REMY_FARM_INSECURE",
    show_envvar=True,
    help="Use plain text, even to another machine.",
)
@click.option(
    "--ec2-interruption-notices",
    is_flag=True,
    envvar="REMY_FARM_WORKER_EC2_INTERRUPTION_NOTICES",
    show_envvar=True,
    help="Drain and exit when EC2 announces that it interrupts this instance.",
)
@click.option(
    "--ec2-metadata-url",
    metavar="URL",
    default="http://169.254.169.254",
    show_default=True,
    envvar="REMY_FARM_WORKER_EC2_METADATA_URL",
    help="URL of the instance metadata service.",
)
@click.option(
    "--metrics-listen",
    metavar="HOST:PORT",
    envvar="REMY_FARM_WORKER_METRICS_LISTEN",
    show_envvar=True,
    help="Address that serves Prometheus metrics; port 0 means any free port.",
)
@click.option(
    "--log-level",
    type=click.Choice(_LEVELS),
    default="info",
    show_default=True,
    envvar="REMY_FARM_WORKER_LOG_LEVEL",
)
def command(**options: Any) -> None:
    """Simulate for a coordinator until it has no work left or this worker is told to exit."""
    sys.stdout.flush()
    code = _run(options)
    sys.stderr.flush()
    # Simulation threads may still run, and would crash an interpreter that shuts down.
    os._exit(code)


def _run(options: dict[str, Any]) -> int:
    # Imported here, so that --help is fast.
    from remy_rpc.logs import report_lines, set_up_logs
    from remy_rpc.settings import SettingsError
    from remy_rpc.tracing import traces
    from remy_workers.interruption import (
        Shutdown,
        shut_down_on_interruption,
        shut_down_on_signals,
    )
    from remy_workers.settings import ExitCode, parse_settings
    from remy_workers.telemetry import WorkerMetrics, served
    from remy_workers.worker import Worker

    shutdown = Shutdown()
    shut_down_on_signals(shutdown)
    try:
        settings = parse_settings(options)
        set_up_logs(options["log_level"], worker_id=settings.worker_id)
        metrics = WorkerMetrics(settings.threads)
        with contextlib.ExitStack() as stack:
            if settings.metrics_listen is not None:
                address = settings.metrics_listen
                stack.enter_context(served(metrics, address.host, address.port))
            stack.enter_context(traces("remy-farm-worker", instance_id=settings.worker_id))
            if settings.metadata_url is not None:
                shut_down_on_interruption(shutdown, settings.metadata_url)
            worker = Worker(settings, shutdown, metrics)
            report_lines(worker.report_line)
            return worker.run()
    except (SettingsError, OSError) as error:
        click.echo(f"remy-worker: {error}", err=True)
        return ExitCode.BAD_INPUT
