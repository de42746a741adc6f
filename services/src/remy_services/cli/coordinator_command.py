"""`remy-farm coordinator`: the server that a team's designs share."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from remy_services.cli.options import threads_option


@click.command("coordinator", context_settings={"auto_envvar_prefix": "REMY_FARM_COORDINATOR"})
@click.option("--listen", default="127.0.0.1:7390", show_default=True, metavar="HOST:PORT")
@click.option("--store", metavar="URL", default="sqlite:remy-farm.db", show_default=True)
@click.option("--evaluator", default="local", show_default=True)
@threads_option()
@click.option("--ready-file", type=click.Path(dir_okay=False, path_type=Path))
def command(
    listen: str, store: str, evaluator: str, threads: int, ready_file: Path | None
) -> None:
    """Serve design jobs to a team."""
    from remy_services.coordinator.server import Settings, serve

    asyncio.run(serve(Settings(listen, store, threads, ready_file)))
