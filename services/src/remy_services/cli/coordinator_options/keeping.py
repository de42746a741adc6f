"""Where jobs are kept, and what each may have."""

from __future__ import annotations

import click

from remy_services.cli.coordinator_options.setting import Decorator, setting
from remy_services.cli.options import FiniteRange

OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--store",
        default="sqlite:remy-farm.db",
        metavar="URL",
        help="Where jobs are kept: sqlite:///PATH, redis://HOST:PORT/DATABASE and others.",
    ),
    setting(
        "--accept-data-loss",
        is_flag=True,
        help="Use a store that may lose what it has acknowledged.",
    ),
    setting(
        "--mirror",
        "mirror_url",
        metavar="URL",
        help="Keep an archive of every job there, too, renewed at each epoch: file:///DIRECTORY or "
        "s3://BUCKET/FOLDER.",
    ),
    setting(
        "--name",
        metavar="NAME",
        show_default="the host's name",
        help="Name of this coordinator, for people.",
    ),
    setting(
        "--checkpoint-seconds",
        type=FiniteRange(min=0),
        default=1.0,
        metavar="S",
        help="Commit a job at most once in S seconds; that much work is lost with the process.",
    ),
    setting(
        "--maximum-running-jobs",
        type=click.IntRange(min=1),
        default=100,
        metavar="N",
        help="Jobs that run at once; others wait, by priority.",
    ),
    setting(
        "--maximum-running-jobs-per-user",
        type=click.IntRange(min=1),
        default=100,
        metavar="N",
        help="The same for the jobs of one owner.",
    ),
    setting(
        "--maximum-packets-per-job",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="any number",
        help="Packets that one job may simulate.",
    ),
    setting(
        "--maximum-spec-bytes",
        type=click.IntRange(min=1),
        default=256 << 10,
        metavar="N",
        help="Size of a specification.",
    ),
    setting(
        "--price-per-cpu-hour",
        type=FiniteRange(min=0),
        metavar="PRICE",
        help="For the estimated cost of jobs.",
    ),
)
