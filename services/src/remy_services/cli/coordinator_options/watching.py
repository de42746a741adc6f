"""What the coordinator lets people see of itself."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import click

from remy_services.cli.coordinator_options.setting import Decorator, setting
from remy_services.cli.options import FiniteRange

OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="Serve metrics for Prometheus there, in plain text to whoever asks.",
    ),
    setting(
        "--profile-dir",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        default=Path(gettempdir()),
        metavar="DIR",
        help="Where the signal USR2 has a profile written.",
    ),
    setting(
        "--profile-seconds",
        type=FiniteRange(min=0, min_open=True, max=3600),
        default=30.0,
        metavar="S",
        help="How long a profile is; the coordinator is about half as fast meanwhile.",
    ),
    setting(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        help="Least level of what is logged, on standard error.",
    ),
)
