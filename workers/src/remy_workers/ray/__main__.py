"""The driver: `python -m remy_workers.ray`, which a coordinator starts and watches over."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from typing import Any

import click

# More than actors are given to end what they have begun.
_LONGEST_END_SECONDS = 8.0
_LEVELS = ("debug", "info", "warning", "error")


@click.command(
    name="remy_workers.ray",
    epilog="Exit codes: 0 told to end; 1 internal error; 2 bad input; 3 the cluster cannot be "
    "reached, or is lost; 4 not allowed; 6 refused by the coordinator.",
)
@click.option(
    "--coordinator",
    metavar="HOST:PORT|unix:PATH",
    required=True,
    help="Whom to work for, on this machine.",
)
@click.option(
    "--ray-address",
    metavar="ADDRESS",
    default="auto",
    show_default=True,
    help="HOST:PORT of the head, where this machine is a node of the cluster; "
    "ray://HOST:PORT where it is not; auto for the cluster that this machine is in.",
)
@click.option(
    "--threads-per-actor",
    type=click.IntRange(min=1, max=1024),
    default=1,
    show_default=True,
    metavar="N",
    help="CPUs that an actor takes.",
)
@click.option(
    "--actors",
    type=click.IntRange(min=1),
    metavar="N",
    help="Actors to ask Ray for; by default as many as fit on its nodes.",
)
@click.option(
    "--resource",
    default="",
    metavar="NAME",
    help="Only use nodes that have this resource.",
)
@click.option(
    "--patience-seconds",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="S",
    help="A cluster that is silent for so long is lost.",
)
@click.option("--log-level", type=click.Choice(_LEVELS), default="info", show_default=True)
def main(**options: Any) -> None:
    """Simulate for a coordinator on the actors of a Ray cluster, until standard input ends."""
    code = _run(options)
    sys.stdout.flush()
    sys.stderr.flush()
    # Ray's threads, and those that wait for its answers, are not waited for.
    os._exit(code)


def _run(options: dict[str, Any]) -> int:
    from remy_workers.address import parse_coordinator
    from remy_workers.ending import Ending, end_on_signals
    from remy_workers.exit_codes import ExitCode
    from remy_workers.settings import SettingsError, WorkerSettings
    from remy_workers.telemetry.logs import set_up_logs

    ending = Ending()
    end_on_signals(ending)
    for target in (_end_with_input, _end_at_last):
        threading.Thread(target=target, args=(ending,), daemon=True).start()
    set_up_logs("ray-driver", options["log_level"])
    try:
        coordinator = parse_coordinator(options["coordinator"])
        if not coordinator.is_loopback:
            raise SettingsError(f"{coordinator} is not on this machine")
        settings = WorkerSettings(
            coordinator=coordinator,
            worker_id="ray-driver",
            threads=options["threads_per_actor"],
        )
    except (ValueError, SettingsError) as error:
        click.echo(f"remy_workers.ray: {error}", err=True)
        return ExitCode.BAD_INPUT
    return _drive(settings, ending, options)


def _drive(settings: Any, ending: Any, options: dict[str, Any]) -> int:
    import structlog

    from remy_workers.connection import open_aio_channel
    from remy_workers.exit_codes import ExitCode
    from remy_workers.ray.cluster import ClusterUnavailable, RayCluster
    from remy_workers.ray.crew import ClusterLost, Crew
    from remy_workers.ray.line import Refused
    from remy_workers.ray.sizing import Sizing
    from remy_workers.ray.tables import TableStore
    from remy_workers.ray.watch import ClusterWatch

    log = structlog.get_logger()
    sizing = Sizing(options["threads_per_actor"], options["resource"], options["actors"])

    async def work(cluster: RayCluster) -> None:
        channel = open_aio_channel(settings)
        watch = ClusterWatch(options["patience_seconds"], time.monotonic())
        store = TableStore(cluster.put)
        await Crew(cluster, sizing, settings, channel, store, ending, watch).run()

    try:
        cluster = RayCluster(options["ray_address"], sizing)
        log.info("connected to a Ray cluster", address=options["ray_address"])
        asyncio.new_event_loop().run_until_complete(work(cluster))
    except (ClusterUnavailable, ClusterLost) as problem:
        log.error("no Ray cluster", why=str(problem))
        return ExitCode.UNREACHABLE
    except Refused as problem:
        return problem.code
    except Exception:
        log.exception("the driver failed")
        return ExitCode.INTERNAL
    log.info("ended", why=ending.why)
    return ExitCode.DONE


def _end_with_input(ending: Any) -> None:
    """Whoever started this process holds the other end, and is gone when that is closed."""
    sys.stdin.buffer.read()
    ending.ask("input_ended")


def _end_at_last(ending: Any) -> None:
    """Ray may be waited for when the end comes, and would be for long."""
    ending.wait()
    time.sleep(_LONGEST_END_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main()
