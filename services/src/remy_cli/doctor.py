"""`remy-farm doctor` and `remy-farm info`: diagnose and describe a coordinator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import click

from remy_cli.common import POSITIVE, json_option, option, print_json, print_pairs
from remy_cli.connecting import (
    connection_settings,
    pass_client,
    pop_connection_options,
    with_connection_options,
)
from remy_cli.failures import ExitCode
from remy_farm.analysis import plural
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import rule_table_pb2
from remy_rpc.settings import SettingsError
from remy_services.client import Check, DesignClient, Finding, SettingsSource, Verdict, diagnose
from remy_services.jobs import message_dict
from remy_simulator import (
    fingerprint,
    network_signals_fingerprint,
    path_model_fingerprint,
    protocols_fingerprint,
)


@click.command("info")
@pass_client
def info_command(client: DesignClient, as_json: bool) -> None:
    """Show a coordinator's versions, store and workers, and your name and role."""
    info = client.server_info()
    if as_json:
        print_json(message_dict(info))
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
        ("evaluators", f"{evaluators.kind}, {plural(evaluators.threads, 'thread')}"),
        ("workers", workers),
        ("tasks", f"{evaluators.tasks_running} running, {evaluators.tasks_waiting} waiting"),
        ("jobs", f"{info.running_jobs} running, {info.waiting_jobs} waiting"),
        ("you", f"{info.caller or 'anonymous'}, role {info.role or 'none'}"),
    ]


_EXIT_CODES = {
    Check.SETTINGS: ExitCode.BAD_INPUT,
    Check.ADDRESS: ExitCode.UNREACHABLE,
    Check.TLS: ExitCode.UNREACHABLE,
    Check.COORDINATOR: ExitCode.UNREACHABLE,
    Check.TOKEN: ExitCode.NOT_ALLOWED,
}
_COLORS = {
    Verdict.OK: "green",
    Verdict.WARNING: "yellow",
    Verdict.PROBLEM: "red",
    Verdict.SKIPPED: "bright_black",
}
_CHECK_WIDTH = max(len(check) for check in Check)
_VERDICT_WIDTH = max(len(verdict) for verdict in Verdict)


@click.command("doctor")
@option(
    "--timeout SECONDS",
    "Timeout of each check, in seconds.",
    POSITIVE,
    name="timeout_seconds",
    default=10.0,
)
@json_option
@with_connection_options
@click.pass_context
def doctor_command(
    context: click.Context, /, timeout_seconds: float, as_json: bool, **connection: Any
) -> None:
    """Diagnose the connection to a coordinator and suggest fixes.

    Checks the settings, the address, TLS (names and expiry), the token and role, the store's
    durability, the workers, the versions and the clocks, in this order.

    Exits with 0 if there are no problems or only warnings, 2 for wrong settings, 3 if the
    coordinator is unreachable, 4 for a wrong token, and 6 for any other problem.
    """
    findings = []
    for finding in _findings(pop_connection_options(connection), timeout_seconds):
        findings.append(finding)
        if not as_json:
            _print_finding(finding)
    problems = [finding for finding in findings if finding.verdict == Verdict.PROBLEM]
    if as_json:
        print_json({"ok": not problems, "checks": [_finding_dict(finding) for finding in findings]})
    context.exit(_exit_code(problems))


def _findings(given: SettingsSource, timeout_seconds: float) -> Iterator[Finding]:
    client = messages.GetServerInfoResponse(
        version=version("remy-farm"),
        simulator_version=version("remy-simulator"),
        simulator_digest=fingerprint(),
        scale_free_digest=fingerprint(rule_table_pb2.RULES_SCALE_FREE),
        protocols_digest=protocols_fingerprint(),
        path_model_digest=path_model_fingerprint(),
        network_signals_digest=network_signals_fingerprint(),
    )
    try:
        settings = connection_settings(given)
    except SettingsError as error:
        yield Finding(Check.SETTINGS, Verdict.PROBLEM, str(error), "correct this setting")
        return
    yield from diagnose(settings, client, timeout_seconds=timeout_seconds)


def _exit_code(problems: Sequence[Finding]) -> int:
    return _EXIT_CODES.get(problems[0].check, ExitCode.REFUSED) if problems else 0


def _finding_dict(finding: Finding) -> dict[str, Any]:
    fields = asdict(finding)
    return {**fields, "verdict": finding.verdict.lower(), "check": finding.check.lower()}


def _print_finding(finding: Finding) -> None:
    verdict = click.style(f"{finding.verdict:<{_VERDICT_WIDTH}}", fg=_COLORS[finding.verdict])
    click.echo(f"{finding.check:<{_CHECK_WIDTH}}  {verdict}  {finding.text}")
    if finding.advice:
        click.echo(f"{'':<{_CHECK_WIDTH + _VERDICT_WIDTH + 4}}-> {finding.advice}")
