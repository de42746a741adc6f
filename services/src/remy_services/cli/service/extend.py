"""`remy-farm extend`: larger budgets for a job."""

from __future__ import annotations

import click

from remy_farm.v1 import spec_pb2
from remy_services.cli.options import FiniteRange, json_option
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import job_argument
from remy_services.cli.service.job_output import print_change
from remy_services.client import DesignClient

_COUNT = click.IntRange(1, 2**32 - 1)
_SECONDS = FiniteRange(min=0, min_open=True)


@click.command("extend")
@job_argument()
@click.option("--max-epochs", type=_COUNT, metavar="N", help="End after N epochs in all.")
@click.option("--max-rules", type=_COUNT, metavar="N", help="End with N rules (mode paper).")
@click.option("--max-steps", type=_COUNT, metavar="N", help="End after N steps in all.")
@click.option(
    "--max-cpu-seconds", type=_SECONDS, metavar="S", help="End after S seconds of CPU time in all."
)
@click.option(
    "--max-wall-seconds", type=_SECONDS, metavar="S", help="End after running S seconds in all."
)
@click.option(
    "--epochs-without-gain", type=_COUNT, metavar="N", help="End after N epochs without a gain."
)
@click.option(
    "--steps",
    type=_COUNT,
    metavar="N",
    help="The whole schedule's length in place of search.joint.steps.",
)
@json_option()
@connected
def command(
    client: DesignClient,
    job: str,
    max_epochs: int | None,
    max_rules: int | None,
    max_steps: int | None,
    max_cpu_seconds: float | None,
    max_wall_seconds: float | None,
    epochs_without_gain: int | None,
    steps: int | None,
    as_json: bool,
) -> None:
    """Give a job larger budgets; one that has ended goes on, under the same id.

    Budgets that are not named stay as they are.
    """
    changes = {
        "epochs": max_epochs,
        "rules": max_rules,
        "steps": max_steps,
        "cpu_seconds": max_cpu_seconds,
        "wall_seconds": max_wall_seconds,
        "epochs_without_gain": epochs_without_gain,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if not given and steps is None:
        raise click.UsageError("name at least one budget, as in --max-epochs 20")
    found = client.get(job)
    stop = None
    if given:
        stop = spec_pb2.Stop()
        stop.CopyFrom(found.spec.stop)
        for name, value in given.items():
            setattr(stop, name, value)
    print_change(client.extend(found.id, stop=stop, joint_steps=steps), as_json=as_json)
