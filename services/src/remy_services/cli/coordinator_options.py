"""The settings of `remy-farm coordinator`: flags, environment variables, and a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import click

from remy_services.cli.options import FiniteRange
from remy_simulator.cpus import allowed_cpus

#: What the environment's variables begin with; --listen is REMY_FARM_COORDINATOR_LISTEN.
VARIABLE_PREFIX = "REMY_FARM_COORDINATOR"

_FILE = click.Path(dir_okay=False, path_type=Path)
_MOST_CONFIG_BYTES = 1 << 20

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _setting(*names: str, **attributes: Any) -> _Decorator:
    return click.option(*names, **{"show_envvar": True, "show_default": True, **attributes})


def _read_config(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Makes a file's settings the defaults of this command."""
    if path is None:
        return
    from remy_services.files import read_file
    from remy_services.spec.text import read_yaml

    try:
        text = read_file(path, limit=_MOST_CONFIG_BYTES).decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{path} is not UTF-8 text") from error
    tree = read_yaml(text, str(path))
    known = {
        option.name: next(name.lstrip("-") for name in option.opts)
        for option in context.command.params
        if isinstance(option, click.Option) and option.name not in ("config", "help")
    }
    by_key = {key: name for name, key in known.items()}
    if not isinstance(tree, dict):
        raise click.UsageError(
            f"{path} must be a mapping of settings, as in 'listen: 0.0.0.0:7390'"
        )
    for key, value in tree.items():
        if key not in by_key:
            raise click.UsageError(
                f"{path}: {key[:60]!r} is no setting; there are {', '.join(sorted(by_key))}"
            )
        if isinstance(value, list | dict) or value is None:
            raise click.UsageError(f"{path}: {key} must be one value")
    context.default_map = {
        **(context.default_map or {}),
        **{by_key[key]: _as_flag_value(value) for key, value in tree.items()},
    }


def _as_flag_value(value: Any) -> Any:
    return value if isinstance(value, bool) else str(value)


_OPTIONS: tuple[_Decorator, ...] = (
    _setting(
        "--config",
        type=_FILE,
        is_eager=True,
        expose_value=False,
        callback=_read_config,
        metavar="FILE",
        help="YAML file with settings by the names of the flags, without dashes in front; flags "
        "and the environment go before it.",
    ),
    _setting(
        "--listen",
        default="127.0.0.1:50051",
        metavar="HOST:PORT",
        help="Where to serve; port 0 is any that is free. Other hosts than this one are served "
        "with TLS and tokens only.",
    ),
    _setting(
        "--health-listen",
        metavar="HOST:PORT",
        help="Also serve health, and nothing else, there, in plain text.",
    ),
    _setting(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="Serve metrics for Prometheus there, in plain text to whoever asks.",
    ),
    _setting(
        "--profile-dir",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        default=Path(gettempdir()),
        metavar="DIR",
        help="Where the signal USR2 has a profile written.",
    ),
    _setting(
        "--profile-seconds",
        type=FiniteRange(min=0, min_open=True, max=3600),
        default=30.0,
        metavar="S",
        help="How long a profile is; the coordinator is about half as fast meanwhile.",
    ),
    _setting(
        "--store",
        default="sqlite:remy-farm.db",
        metavar="URL",
        help="Where jobs are kept: sqlite:///PATH, redis://HOST:PORT/DATABASE and others.",
    ),
    _setting(
        "--accept-data-loss",
        is_flag=True,
        help="Use a store that may lose what it has acknowledged.",
    ),
    _setting(
        "--mirror",
        "mirror_url",
        metavar="URL",
        help="Keep an archive of every job there, too, renewed at each epoch: file:///DIRECTORY or "
        "s3://BUCKET/FOLDER.",
    ),
    _setting(
        "--cache",
        "cache_url",
        default="memory:",
        callback=lambda context, parameter, url: None if url == "none" else url,
        metavar="URL",
        help="Where to keep what parts of large steps came to, so that a step which is taken up "
        "again does not evaluate them again: memory:, sqlite:///PATH, redis://... or none.",
    ),
    _setting(
        "--cache-bytes",
        type=click.IntRange(min=1 << 20),
        default=256 << 20,
        metavar="N",
        help="What that may hold.",
    ),
    _setting(
        "--evaluator",
        type=click.Choice(["local", "workers", "ray"]),
        default="local",
        help="Who simulates: this process, workers that call, or a Ray cluster.",
    ),
    _setting(
        "--threads",
        type=click.IntRange(1, 1024),
        default=allowed_cpus,
        show_default="the CPUs allowed",
        metavar="N",
        help="Threads of the evaluator 'local'.",
    ),
    _setting(
        "--ray-address",
        default="auto",
        envvar=[f"{VARIABLE_PREFIX}_RAY_ADDRESS", "REMY_FARM_RAY_ADDRESS"],
        metavar="ADDRESS",
        help="Of the evaluator 'ray': HOST:PORT of the head where this machine is a node of the "
        "cluster, ray://HOST:PORT where it is not, auto for the cluster that this machine is in.",
    ),
    _setting(
        "--ray-threads-per-actor",
        type=click.IntRange(1, 1024),
        default=1,
        metavar="N",
        help="CPUs that an actor takes on its node.",
    ),
    _setting(
        "--ray-actors",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="as many as fit on the nodes",
        help="Actors to ask Ray for, which may have its autoscaler add nodes.",
    ),
    _setting(
        "--ray-resource",
        default="",
        metavar="NAME",
        show_default="any node",
        help="Only use nodes of the Ray cluster that have this resource.",
    ),
    _setting(
        "--reproductions",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        metavar="DIR",
        help="Write there the evaluation tasks that were given up because they kept ending their "
        "workers.",
    ),
    _setting(
        "--kubernetes-workers",
        type=_FILE,
        metavar="FILE",
        help="Have Kubernetes run workers for each job, as this YAML file says; the Helm chart "
        "writes it.",
    ),
    _setting(
        "--name",
        metavar="NAME",
        show_default="the host's name",
        help="Name of this coordinator, for people.",
    ),
    _setting(
        "--checkpoint-seconds",
        type=FiniteRange(min=0),
        default=1.0,
        metavar="S",
        help="Commit a job at most once in S seconds; that much work is lost with the process.",
    ),
    _setting(
        "--maximum-running-jobs",
        type=click.IntRange(min=1),
        default=100,
        metavar="N",
        help="Jobs that run at once; others wait, by priority.",
    ),
    _setting(
        "--maximum-running-jobs-per-user",
        type=click.IntRange(min=1),
        default=100,
        metavar="N",
        help="The same for the jobs of one owner.",
    ),
    _setting(
        "--maximum-packets-per-job",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="any number",
        help="Packets that one job may simulate.",
    ),
    _setting(
        "--price-per-cpu-hour",
        type=FiniteRange(min=0),
        metavar="PRICE",
        help="For the estimated cost of jobs.",
    ),
    _setting(
        "--tokens-file",
        type=_FILE,
        metavar="FILE",
        help="YAML file with those who may call, and what; read again when it changes.",
    ),
    _setting("--tls-cert", type=_FILE, metavar="FILE", help="Certificate of the server (PEM)."),
    _setting("--tls-key", type=_FILE, metavar="FILE", help="Its private key (PEM)."),
    _setting(
        "--tls-client-ca",
        type=_FILE,
        metavar="FILE",
        help="Only let in clients whose certificate one of these authorities signed (PEM).",
    ),
    _setting(
        "--insecure",
        is_flag=True,
        help="Serve other hosts although TLS or tokens are missing.",
    ),
    _setting(
        "--reflection/--no-reflection",
        default=True,
        help="Tell callers what services there are (gRPC reflection).",
    ),
    _setting(
        "--maximum-spec-bytes",
        type=click.IntRange(min=1),
        default=256 << 10,
        metavar="N",
        help="Size of a specification.",
    ),
    _setting(
        "--maximum-message-bytes",
        type=click.IntRange(min=1 << 16),
        default=16 << 20,
        metavar="N",
        help="Size of any message.",
    ),
    _setting(
        "--maximum-open-streams",
        type=click.IntRange(min=1),
        default=1000,
        metavar="N",
        help="Watches and transfers of jobs at once.",
    ),
    _setting(
        "--grace-seconds",
        type=FiniteRange(min=0),
        default=20.0,
        metavar="S",
        help="When told to end (SIGTERM, Ctrl-C), do so within S seconds.",
    ),
    _setting(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        help="Least level of what is logged, on standard error.",
    ),
    _setting(
        "--ready-file",
        type=_FILE,
        metavar="FILE",
        help="Write the address there when the coordinator serves.",
    ),
)


def coordinator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
