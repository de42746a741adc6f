"""`remy-farm info`: what a coordinator says of itself."""

from __future__ import annotations

import click

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.cli.options import json_option
from remy_services.cli.output import print_json, print_pairs
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.message_tree import message_tree
from remy_services.client import DesignClient
from remy_services.report.wording import several


@click.command("info")
@json_option()
@connected
def command(client: DesignClient, as_json: bool) -> None:
    """Show what serves there: versions, store, workers, and who you are to it."""
    info = client.server_info()
    if as_json:
        print_json(message_tree(info))
    else:
        print_pairs(_pairs(info, str(client.connection.address)))


def _pairs(info: messages.GetServerInfoResponse, address: str) -> list[tuple[str, str]]:
    store, evaluators = info.store, info.evaluators
    workers = f"{evaluators.workers}, {evaluators.busy_workers} of them busy"
    if evaluators.quarantined_workers:
        workers += f", {evaluators.quarantined_workers} quarantined"
    return [
        ("coordinator", f"{info.coordinator} at {address}"),
        ("version", f"{info.version}, simulator {info.simulator_version}"),
        ("store", f"{store.kind} {store.version}: {store.durability}"),
        ("", "available" if store.available else f"not available: {store.trouble}"),
        ("evaluators", f"{evaluators.kind}, {several(evaluators.threads, 'thread')}"),
        ("workers", workers),
        ("tasks", f"{evaluators.tasks_running} running, {evaluators.tasks_waiting} waiting"),
        ("jobs", f"{info.running_jobs} running, {info.waiting_jobs} waiting"),
        ("you", f"{info.caller or 'nobody in particular'}, role {info.role or 'none'}"),
    ]
