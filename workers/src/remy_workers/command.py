"""The command `remy-worker`, which `remy-farm worker` is as well."""

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
    "4 not allowed (token or role); 6 refused (quarantined); 7 of no use (another simulator than "
    "the coordinator's, or a coordinator that takes no workers).",
)
@click.option(
    "--coordinator",
    metavar="HOST:PORT",
    required=True,
    envvar="REMY_FARM_COORDINATOR",
    show_envvar=True,
    help="Whom to work for; on this machine unix:PATH as well.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1, max=4096),
    metavar="N",
    envvar="REMY_FARM_WORKER_THREADS",
    show_envvar=True,
    help="Threads to simulate with; by default the CPUs that affinity and control group allow.",
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
    help="End when there is nothing left to do, for the job or at all.",
)
@click.option(
    "--interrupted-exit-code",
    type=click.IntRange(0, 255),
    default=0,
    show_default=True,
    metavar="CODE",
    envvar="REMY_FARM_WORKER_INTERRUPTED_EXIT_CODE",
    show_envvar=True,
    help="How to end when told to by a signal or by EC2. A Kubernetes Job takes 0 for the end of "
    "all its work.",
)
@click.option("--pin-threads", is_flag=True, help="Keep each thread on one CPU.")
@click.option(
    "--token-file",
    type=_FILE,
    metavar="FILE",
    envvar="REMY_FARM_TOKEN_FILE",
    show_envvar=True,
    help="Holds the token; read again at every call.",
)
@click.option(
    "--tls-ca",
    type=_FILE,
    metavar="FILE",
    envvar="REMY_FARM_TLS_CA",
    show_envvar=True,
    help="Authorities that may have signed the coordinator's certificate (PEM).",
)
@click.option(
    "--tls-cert",
    type=_FILE,
    metavar="FILE",
    envvar="REMY_FARM_TLS_CERT",
    show_envvar=True,
    help="This worker's certificate, where the coordinator asks for one (PEM).",
)
@click.option(
    "--tls-key",
    type=_FILE,
    metavar="FILE",
    envvar="REMY_FARM_TLS_KEY",
    show_envvar=True,
    help="Its key (PEM).",
)
@click.option(
    "--tls-server-name",
    metavar="NAME",
    envvar="REMY_FARM_TLS_SERVER_NAME",
    show_envvar=True,
    help="The name in the coordinator's certificate, if it is reached by another.",
)
@click.option(
    "--insecure",
    is_flag=True,
    envvar="REMY_FARM_INSECURE",
    show_envvar=True,
    help="Talk in plain text to another machine.",
)
@click.option(
    "--ec2-interruption-notices",
    is_flag=True,
    envvar="REMY_FARM_WORKER_EC2_INTERRUPTION_NOTICES",
    show_envvar=True,
    help="End in order when EC2 announces that it takes this instance away.",
)
@click.option(
    "--ec2-metadata-url",
    metavar="URL",
    default="http://169.254.169.254",
    show_default=True,
    envvar="REMY_FARM_WORKER_EC2_METADATA_URL",
    help="Where the instance metadata service is.",
)
@click.option(
    "--metrics-listen",
    metavar="HOST:PORT",
    envvar="REMY_FARM_WORKER_METRICS_LISTEN",
    show_envvar=True,
    help="Where Prometheus may fetch metrics; port 0: any that is free.",
)
@click.option(
    "--log-level",
    type=click.Choice(_LEVELS),
    default="info",
    show_default=True,
    envvar="REMY_FARM_WORKER_LOG_LEVEL",
)
def command(**options: Any) -> None:
    """Simulate for a coordinator, until there is nothing left to do or this worker is to end."""
    sys.stdout.flush()
    code = _run(options)
    sys.stderr.flush()
    # Threads may be in the simulator still; the interpreter would trip over them at its end.
    os._exit(code)


def _run(options: dict[str, Any]) -> int:
    # Loaded here, so that --help is instant.
    from remy_rpc.logs import report_lines, set_up_logs
    from remy_rpc.settings import SettingsError
    from remy_rpc.tracing import traces
    from remy_workers.interruption import (
        Shutdown,
        shut_down_on_interruption,
        shut_down_on_signals,
    )
    from remy_workers.settings import ExitCode, settings_of
    from remy_workers.telemetry import WorkerMetrics, served
    from remy_workers.worker import Worker

    shutdown = Shutdown()
    shut_down_on_signals(shutdown)
    try:
        settings = settings_of(options)
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
