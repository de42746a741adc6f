"""What a coordinator's own account says about its token check, store, workers, versions and clock.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.client.diagnosis.finding import Check, Finding, ok, problem, warning

_MOST_SKEW_SECONDS = 5.0
_MAY_SUBMIT = ("submitter", "admin")


@dataclass(frozen=True)
class Versions:
    """Of the programs on this side."""

    client: str
    simulator: str
    #: Of a fixed evaluation: equal where results are equal, bit by bit.
    simulator_digest: str


def check_role(info: messages.GetServerInfoResponse) -> Finding:
    """Who the coordinator takes us for."""
    who = f"you are {info.caller or 'nobody in particular'}, role {info.role or 'none'}"
    if info.role in _MAY_SUBMIT:
        return ok(Check.TOKEN, who)
    return warning(
        Check.TOKEN,
        f"{who}, which may not submit or change jobs",
        "ask for a token with the role submitter if you need to",
    )


def check_store(info: messages.GetServerInfoResponse) -> Finding:
    """Whether work is kept."""
    store = info.store
    name = f"{store.kind} {store.version}".strip()
    if not store.available:
        return problem(
            Check.STORE,
            f"{name} cannot be written to ({store.trouble or 'no reason given'}); jobs wait",
            "put that right; the coordinator goes on by itself",
        )
    if not store.durable:
        return problem(
            Check.STORE,
            f"{name} may lose acknowledged work: {store.durability}",
            "have it write before it answers (Redis: appendonly yes, appendfsync always)",
        )
    return ok(Check.STORE, f"{name}: {store.durability}")


def check_workers(info: messages.GetServerInfoResponse) -> Finding:
    """Whether there is anybody to evaluate."""
    evaluators = info.evaluators
    if evaluators.quarantined_workers:
        return problem(
            Check.WORKERS,
            f"{evaluators.quarantined_workers} of the workers gave wrong results and get no tasks",
            "look for their names in the coordinator's log, and replace those machines",
        )
    if evaluators.kind == "local":
        return ok(
            Check.WORKERS, f"the coordinator evaluates by itself, threads: {evaluators.threads}"
        )
    if not evaluators.workers:
        return problem(
            Check.WORKERS,
            f"no worker is connected; {evaluators.tasks_waiting} tasks wait",
            "start one: remy-farm worker --coordinator HOST:PORT",
        )
    return ok(
        Check.WORKERS,
        f"connected: {evaluators.workers}, busy: {evaluators.busy_workers}, "
        f"threads of all: {evaluators.threads}",
    )


def check_versions(info: messages.GetServerInfoResponse, own: Versions) -> Finding:
    """Whether results here and there are the same."""
    if info.simulator_digest and info.simulator_digest != own.simulator_digest:
        return problem(
            Check.VERSIONS,
            f"the coordinator's simulator ({info.simulator_version}) gives other results than this "
            f"one ({own.simulator}): RemyCCs and scores differ",
            "install the same version of remy-farm on both sides",
        )
    if info.simulator_version != own.simulator:
        return warning(
            Check.VERSIONS,
            f"the coordinator's simulator is {info.simulator_version or 'unknown'}, this one is "
            f"{own.simulator}",
            "install the same version of remy-farm on both sides",
        )
    if info.version != own.client:
        return warning(
            Check.VERSIONS,
            f"the coordinator is {info.version or 'unknown'}, this client is {own.client}",
            "install the same version of remy-farm on both sides",
        )
    return ok(Check.VERSIONS, f"remy-farm {own.client} and simulator {own.simulator} on both sides")


def check_clock(
    info: messages.GetServerInfoResponse, *, asked_unix_seconds: float, heard_unix_seconds: float
) -> Finding:
    """Whether the clocks agree, as far as the time of the call lets that be known."""
    uncertain = (heard_unix_seconds - asked_unix_seconds) / 2
    skew = info.unix_seconds - (asked_unix_seconds + uncertain)
    if abs(skew) <= _MOST_SKEW_SECONDS + uncertain:
        return ok(Check.CLOCK, f"within {_MOST_SKEW_SECONDS:g} s of the coordinator's")
    direction = "ahead of" if skew > 0 else "behind"
    return problem(
        Check.CLOCK,
        f"the coordinator's clock is {abs(skew):.0f} s {direction} this machine's",
        "have both machines set their clocks by NTP",
    )
