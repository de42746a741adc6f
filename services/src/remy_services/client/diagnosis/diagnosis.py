"""All checks, in an order in which each one rests on those before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import grpc

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.client.connection import Connection
from remy_services.client.diagnosis import answer
from remy_services.client.diagnosis.answer import Versions
from remy_services.client.diagnosis.finding import Check, Finding, Verdict, ok, problem
from remy_services.client.diagnosis.reaching import check_address
from remy_services.client.diagnosis.tls import check_tls
from remy_services.client.diagnosis.token_file import check_token_file
from remy_services.client.errors import NotAllowed, ServiceError, SettingsError
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import CallFailure

_TIMEOUT_SECONDS = 10.0


def diagnose(
    settings: ConnectionSettings, own: Versions, *, timeout_seconds: float = _TIMEOUT_SECONDS
) -> Iterator[Finding]:
    """The findings as they are made; what rests on something that failed is skipped."""
    done = set()
    is_broken = False
    for finding in _findings(settings, own, timeout_seconds):
        done.add(finding.check)
        is_broken = is_broken or finding.verdict == Verdict.PROBLEM
        yield finding
    for check in Check:
        if check not in done and check != Check.SETTINGS:
            yield Finding(check, Verdict.SKIPPED, "not checked because of the above")


def _findings(
    settings: ConnectionSettings, own: Versions, timeout_seconds: float
) -> Iterator[Finding]:
    reached = check_address(settings.address, timeout_seconds=timeout_seconds)
    yield reached
    if reached.verdict == Verdict.PROBLEM:
        return
    now = datetime.now(UTC)
    secured = check_tls(settings, now=now, timeout_seconds=timeout_seconds)
    yield from secured
    if any(finding.verdict == Verdict.PROBLEM for finding in secured):
        return
    yield from check_token_file(settings.token)
    asked = time.time()
    try:
        info = _ask(settings, timeout_seconds)
    except (ServiceError, SettingsError) as error:
        yield from _unanswered(error, settings)
        return
    heard = time.time()
    yield ok(Check.COORDINATOR, f"{info.coordinator or 'a coordinator'} answers")
    yield answer.check_role(info)
    yield answer.check_store(info)
    yield answer.check_workers(info)
    yield answer.check_versions(info, own)
    yield answer.check_clock(info, asked_unix_seconds=asked, heard_unix_seconds=heard)


def _ask(settings: ConnectionSettings, timeout_seconds: float) -> messages.GetServerInfoResponse:
    with Connection(settings, deadline_seconds=timeout_seconds) as connection:
        try:
            response: messages.GetServerInfoResponse = connection.call_once(
                "GetServerInfo", messages.GetServerInfoRequest()
            )
        except grpc.RpcError as error:
            raise connection.error(CallFailure(error)) from None
    return response


def _unanswered(
    error: ServiceError | SettingsError, settings: ConnectionSettings
) -> Iterator[Finding]:
    if isinstance(error, SettingsError):
        yield problem(Check.COORDINATOR, str(error), "put that right")
        return
    if not isinstance(error, NotAllowed):
        yield problem(Check.COORDINATOR, error.message, "look at the coordinator's log")
        return
    yield ok(Check.COORDINATOR, "a coordinator answers")
    if settings.token is None:
        yield problem(
            Check.TOKEN,
            f"{error.message}, and none is set",
            "ask whoever runs the farm for a token, and name its file with --token-file",
        )
    else:
        yield problem(
            Check.TOKEN,
            f"{error.message}; it came from {settings.token.source}",
            "ask whoever runs the farm for a token with the role that you need",
        )
