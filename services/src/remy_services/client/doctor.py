"""Diagnoses why a coordinator cannot be reached or used, with advice."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from cryptography import x509

from remy_proto.v1.design_service_pb2 import GetServerInfoRequest, GetServerInfoResponse
from remy_rpc.channel import speaks_tls
from remy_rpc.settings import Address, SettingsError
from remy_services.client.connection import Connection
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import NotAllowed, ServiceError

_MOST_SKEW_SECONDS = 5.0
_EXPIRES_SOON = timedelta(days=14)
# HTTP/2 connection preface with an empty SETTINGS frame. With TLS 1.3 a server rejects a missing
# client certificate only after the handshake, on the first data.
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


class Check(StrEnum):
    """Checks, in order."""

    SETTINGS = "settings"
    ADDRESS = "address"
    TLS = "TLS"
    COORDINATOR = "coordinator"
    TOKEN = "token"
    STORE = "store"
    WORKERS = "workers"
    VERSIONS = "versions"
    CLOCK = "clock"


class Verdict(StrEnum):
    """Result of a check."""

    OK = "OK"
    #: Works, but may be unintended or fail soon.
    WARNING = "warning"
    PROBLEM = "problem"
    #: Not checked because of an earlier problem.
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """One line of a diagnosis: the result as a clause, and advice if there is any."""

    check: Check
    verdict: Verdict
    text: str
    advice: str = ""


def diagnose(
    settings: ConnectionSettings, client: GetServerInfoResponse, *, timeout_seconds: float = 10.0
) -> Iterator[Finding]:
    """Yields findings as the checks complete; checks that depend on a failed one are skipped.

    `client` has the versions of this client and of its simulator.
    """
    done = {Check.SETTINGS}
    for finding in _run_checks(settings, client, timeout_seconds):
        done.add(finding.check)
        yield finding
    for check in Check:
        if check not in done:
            yield Finding(check, Verdict.SKIPPED, "not checked because of the above")


def _run_checks(
    settings: ConnectionSettings, client: GetServerInfoResponse, timeout_seconds: float
) -> Iterator[Finding]:
    yield (finding := check_address(settings.address, timeout_seconds=timeout_seconds))
    if finding.verdict == Verdict.PROBLEM:
        return
    yield (finding := check_tls(settings, datetime.now(UTC), timeout_seconds=timeout_seconds))
    if finding.verdict == Verdict.PROBLEM:
        return
    token = settings.token
    if token and (path := Path(token.source)).is_file() and path.stat().st_mode & 0o77:
        text = f"{path} is readable by other users of this machine"
        yield _finding(Check.TOKEN, text, f"chmod 600 {path}", Verdict.WARNING)
    sent = time.time()
    try:
        with Connection(settings, deadline_seconds=timeout_seconds) as connection:
            info = connection.call_once("GetServerInfo", GetServerInfoRequest())
    except SettingsError as error:
        yield _finding(Check.COORDINATOR, str(error), "correct the setting")
    except NotAllowed as error:
        yield _finding(Check.COORDINATOR, "a coordinator answers")
        text = error.message + (f"; it came from {token.source}" if token else ", and none is set")
        advice = (
            "ask the farm's operator for a token with the required role, and pass it with "
            "--token-file"
        )
        yield _finding(Check.TOKEN, text, advice)
    except ServiceError as error:
        yield _finding(Check.COORDINATOR, error.message, "look at the coordinator's log")
    else:
        yield _finding(Check.COORDINATOR, f"{info.coordinator or 'a coordinator'} answers")
        yield from check_answer(
            info, client, sent_unix_seconds=sent, received_unix_seconds=time.time()
        )


def _finding(
    check: Check, text: str, advice: str = "", verdict: Verdict = Verdict.PROBLEM
) -> Finding:
    """Builds a finding, which is OK if there is no advice."""
    return Finding(check, verdict if advice else Verdict.OK, text, advice)


def check_address(address: Address, *, timeout_seconds: float) -> Finding:
    """Checks that a TCP connection to the address succeeds."""
    advice = "check --coordinator, REMY_FARM_COORDINATOR and the configuration file"
    try:
        socket.create_connection((address.host, address.port), timeout_seconds).close()
        return _finding(Check.ADDRESS, f"something listens at {address}")
    except ConnectionRefusedError:
        text = f"connection to {address} refused"
        advice = f"start the coordinator there ('remy-farm coordinator'), or {advice}"
    except socket.gaierror:
        text = f"the host name {address.host} cannot be resolved"
    except OSError as error:
        text = f"{address} cannot be reached: {error.strerror or error}"
    return _finding(Check.ADDRESS, text, advice)


def check_tls(settings: ConnectionSettings, now: datetime, *, timeout_seconds: float) -> Finding:
    """Checks the TLS settings, certificates and handshake. `now` must be timezone-aware."""
    where, tls = (settings.address.host, settings.address.port), settings.tls
    if tls is None and speaks_tls(settings.address, timeout_seconds=timeout_seconds):
        text = f"the server at {settings.address} uses TLS"
        text += ", but this client is set to plain text"
        advice = "pass the CA of its certificate with --tls-ca, and remove --insecure"
        return _finding(Check.TLS, text, advice)
    if tls is None:
        if settings.address.is_loopback:
            return _finding(Check.TLS, "plain text, within this machine only")
        text = "plain text: your token and jobs are visible on the network"
        advice = "configure a certificate on the coordinator, and remove --insecure here"
        return _finding(Check.TLS, text, advice, Verdict.WARNING)
    advice = "each must be a PEM file without a password, and the key must match the certificate"
    for path in (tls.ca, tls.cert, tls.key):
        # The TLS library would block on a pipe and could not be interrupted.
        if isinstance(path, Path) and path.is_fifo():
            return _finding(Check.TLS, f"{path} is a pipe, which cannot be read twice", advice)
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        context.set_alpn_protocols(["h2"])
        if tls.cert is not None and tls.key is not None:
            # An empty password prevents a prompt on the terminal.
            context.load_cert_chain(tls.cert, tls.key, password="")
    except (OSError, ValueError) as error:
        text = f"the files of the --tls flags cannot be used ({_reason(error)})"
        return _finding(Check.TLS, text, advice)
    try:
        pem = ssl.get_server_certificate(where, timeout=timeout_seconds)
    except OSError:
        text = f"the server at {settings.address} does not use TLS"
        advice = "check the address; for plain text, pass --insecure"
        return _finding(Check.TLS, text, advice)
    certificate = x509.load_pem_x509_certificate(pem.encode())
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    name, names = tls.server_name or where[0], "no name"
    with contextlib.suppress(x509.ExtensionNotFound):
        kind = x509.SubjectAlternativeName
        found = certificate.extensions.get_extension_for_class(kind).value
        names = ", ".join(str(each.value) for each in found)
    text, advice = (
        "the coordinator's certificate",
        "correct this machine's clock, or renew the certificate",
    )
    try:
        with (
            socket.create_connection(where, timeout_seconds) as raw,
            context.wrap_socket(raw, server_hostname=name) as secure,
        ):
            secure.sendall(_HTTP2_PREFACE)
            rejection = "" if secure.recv(1) else "connection closed"
    except ssl.SSLCertVerificationError as error:
        if ends < now:
            text += f" has expired ({ends:%Y-%m-%d %H:%M UTC})"
        elif begins > now:
            text += f" is not valid before {begins:%Y-%m-%d %H:%M UTC}"
        elif "not valid for" in error.verify_message:
            text += f" is for {names}, not for {name}"
            advice = "use one of these names in --coordinator or --tls-server-name"
        else:
            trusted = f"in {tls.ca}" if isinstance(tls.ca, Path) else "that this machine trusts"
            text += f" is not signed by a CA {trusted} ({error.verify_message})"
            advice = "pass the CA that signed it with --tls-ca"
        return _finding(Check.TLS, text, advice)
    except OSError as error:
        rejection = _reason(error)
    client_certificate = tls.cert
    if rejection and not isinstance(client_certificate, Path):
        text = f"the coordinator requires a client certificate ({rejection})"
        return _finding(Check.TLS, text, "pass one with --tls-cert and --tls-key")
    if rejection and isinstance(client_certificate, Path):
        until = x509.load_pem_x509_certificate(client_certificate.read_bytes()).not_valid_after_utc
        text = f"the coordinator rejects the certificate in {client_certificate} ({rejection}), "
        text += f"which is valid until {until:%Y-%m-%d %H:%M UTC}"
        advice = "renew it, or have it signed by a CA that the coordinator trusts"
        return _finding(Check.TLS, text, advice)
    text = f"the certificate is for {names}, until {ends:%Y-%m-%d %H:%M UTC}"
    if ends < now + _EXPIRES_SOON:
        return _finding(Check.TLS, text, "renew it", Verdict.WARNING)
    return _finding(Check.TLS, text)


def _reason(error: Exception) -> str:
    """Returns OpenSSL's reason, such as "certificate required"."""
    reason = getattr(error, "reason", None) or "connection closed"
    return str(reason).rpartition("ALERT_")[2].lower().replace("_", " ")


def check_answer(
    info: GetServerInfoResponse,
    client: GetServerInfoResponse,
    *,
    sent_unix_seconds: float,
    received_unix_seconds: float,
) -> Iterator[Finding]:
    """Checks the coordinator's server info: role, store, workers, versions and clock."""
    who = f"you are {info.caller or 'nobody in particular'}, role {info.role or 'none'}"
    if info.role in ("submitter", "admin"):
        yield _finding(Check.TOKEN, who)
    else:
        text = f"{who}, which may not submit or change jobs"
        advice = "ask for a token with the role submitter if you need to"
        yield _finding(Check.TOKEN, text, advice, Verdict.WARNING)

    store, name = info.store, f"{info.store.kind} {info.store.version}".strip()
    if not store.available:
        text = f"{name} does not accept writes ({store.trouble or 'no reason given'}); jobs wait"
        yield _finding(
            Check.STORE, text, "repair the store; the coordinator then continues by itself"
        )
    elif not store.durable:
        text = f"{name} may lose acknowledged work: {store.durability}"
        advice = "make its writes durable (Redis: appendonly yes, appendfsync always)"
        yield _finding(Check.STORE, text, advice)
    else:
        yield _finding(Check.STORE, f"{name}: {store.durability}")

    fleet = info.evaluators
    if fleet.quarantined_workers:
        text = f"{fleet.quarantined_workers} workers are quarantined because of wrong results"
        advice = "find their names in the coordinator's log, and replace those machines"
        yield _finding(Check.WORKERS, text, advice)
    elif fleet.kind == "local":
        text = f"the coordinator evaluates locally, threads: {fleet.threads}"
        yield _finding(Check.WORKERS, text)
    elif not fleet.workers:
        text = f"no worker is connected; {fleet.tasks_waiting} tasks wait"
        yield _finding(Check.WORKERS, text, "start one: remy-farm worker --coordinator HOST:PORT")
    else:
        busy = f"connected: {fleet.workers}, busy: {fleet.busy_workers}"
        yield _finding(Check.WORKERS, f"{busy}, total threads: {fleet.threads}")

    theirs, ours = info.simulator_version or "unknown", client.simulator_version
    same = "install the same version of remy-farm on both sides"
    digests = (
        "simulator_digest",
        "scale_free_digest",
        "protocols_digest",
        "path_model_digest",
        "network_signals_digest",
    )
    if any(getattr(info, name) not in ("", getattr(client, name)) for name in digests):
        text = (
            f"the coordinator's simulator ({theirs}) gives different results than this one ({ours})"
        )
        yield _finding(Check.VERSIONS, f"{text}: RemyCCs and scores differ", same)
    elif theirs != ours:
        text = f"the coordinator's simulator is {theirs}, this one is {ours}"
        yield _finding(Check.VERSIONS, text, same, Verdict.WARNING)
    elif info.version != client.version:
        text = f"the coordinator is {info.version or 'unknown'}, this client is {client.version}"
        yield _finding(Check.VERSIONS, text, same, Verdict.WARNING)
    else:
        text = f"remy-farm {client.version} and simulator {ours} on both sides"
        yield _finding(Check.VERSIONS, text)

    uncertain = (received_unix_seconds - sent_unix_seconds) / 2
    skew = info.unix_seconds - (sent_unix_seconds + uncertain)
    if abs(skew) <= _MOST_SKEW_SECONDS + uncertain:
        yield _finding(Check.CLOCK, f"within {_MOST_SKEW_SECONDS:g} s of the coordinator's")
    else:
        direction = "ahead of" if skew > 0 else "behind"
        text = f"the coordinator's clock is {abs(skew):.0f} s {direction} this machine's"
        yield _finding(Check.CLOCK, text, "synchronize both clocks with NTP")
