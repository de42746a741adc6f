"""Who evaluates for the jobs."""

from __future__ import annotations

from pathlib import Path

import click

from remy_services.cli.coordinator_options.setting import FILE, VARIABLE_PREFIX, Decorator, setting
from remy_simulator.cpus import allowed_cpus

OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--evaluator",
        type=click.Choice(["local", "workers", "ray"]),
        default="local",
        help="Who simulates: this process, workers that call, or a Ray cluster.",
    ),
    setting(
        "--threads",
        type=click.IntRange(1, 1024),
        default=allowed_cpus,
        show_default="the CPUs allowed",
        metavar="N",
        help="Threads of the evaluator 'local'.",
    ),
    setting(
        "--ray-address",
        default="auto",
        envvar=[f"{VARIABLE_PREFIX}_RAY_ADDRESS", "REMY_FARM_RAY_ADDRESS"],
        metavar="ADDRESS",
        help="Of the evaluator 'ray': HOST:PORT of the head where this machine is a node of the "
        "cluster, ray://HOST:PORT where it is not, auto for the cluster that this machine is in.",
    ),
    setting(
        "--ray-threads-per-actor",
        type=click.IntRange(1, 1024),
        default=1,
        metavar="N",
        help="CPUs that an actor takes on its node.",
    ),
    setting(
        "--ray-actors",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="as many as fit on the nodes",
        help="Actors to ask Ray for, which may have its autoscaler add nodes.",
    ),
    setting(
        "--ray-resource",
        default="",
        metavar="NAME",
        show_default="any node",
        help="Only use nodes of the Ray cluster that have this resource.",
    ),
    setting(
        "--reproductions",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        metavar="DIR",
        help="Write there the evaluation tasks that were given up because they kept ending their "
        "workers.",
    ),
    setting(
        "--kubernetes-workers",
        type=FILE,
        metavar="FILE",
        help="Have Kubernetes run workers for each job, as this YAML file says; the Helm chart "
        "writes it.",
    ),
)
