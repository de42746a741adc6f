"""Finding out why a coordinator cannot be reached or used, and what to do about it."""

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
# What begins every HTTP/2 connection, with an empty SETTINGS frame. A server that wants a
# certificate of the client says so only after the handshake, when it is spoken to.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


class Check(StrEnum):
    """What is checked, in this order."""

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
    """How it is."""

    OK = "OK"
    #: Works, and may not be what was meant or not work for long.
    WARNING = "warning"
    PROBLEM = "problem"
    #: An earlier problem is in the way.
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """One line of a diagnosis: what was found, one clause, and what to do if there is something."""

    check: Check
    verdict: Verdict
    text: str
    advice: str = ""


def diagnose(
    settings: ConnectionSettings, own: GetServerInfoResponse, *, timeout_seconds: float = 10.0
) -> Iterator[Finding]:
    """The findings as they are made; what rests on something that failed is skipped.

    `own` holds this side's version and simulator.
    """
    done = {Check.SETTINGS}
    for finding in _findings(settings, own, timeout_seconds):
        done.add(finding.check)
        yield finding
    for check in Check:
        if check not in done:
            yield Finding(check, Verdict.SKIPPED, "not checked because of the above")


def _findings(
    settings: ConnectionSettings, own: GetServerInfoResponse, timeout_seconds: float
) -> Iterator[Finding]:
    yield (found := check_address(settings.address, timeout_seconds=timeout_seconds))
    if found.verdict == Verdict.PROBLEM:
        return
    yield (found := check_tls(settings, datetime.now(UTC), timeout_seconds=timeout_seconds))
    if found.verdict == Verdict.PROBLEM:
        return
    token = settings.token
    if token and (path := Path(token.source)).is_file() and path.stat().st_mode & 0o77:
        text = f"{path} is open to other users of this machine"
        yield _found(Check.TOKEN, text, f"chmod 600 {path}", Verdict.WARNING)
    asked = time.time()
    try:
        with Connection(settings, deadline_seconds=timeout_seconds) as connection:
            info = connection.call_once("GetServerInfo", GetServerInfoRequest())
    except SettingsError as error:
        yield _found(Check.COORDINATOR, str(error), "put that right")
    except NotAllowed as error:
        yield _found(Check.COORDINATOR, "a coordinator answers")
        text = error.message + (f"; it came from {token.source}" if token else ", and none is set")
        advice = "ask who runs the farm for one with the role you need, and give it by --token-file"
        yield _found(Check.TOKEN, text, advice)
    except ServiceError as error:
        yield _found(Check.COORDINATOR, error.message, "look at the coordinator's log")
    else:
        yield _found(Check.COORDINATOR, f"{info.coordinator or 'a coordinator'} answers")
        yield from check_answer(info, own, asked_unix_seconds=asked, heard_unix_seconds=time.time())


def _found(
    check: Check, text: str, advice: str = "", verdict: Verdict = Verdict.PROBLEM
) -> Finding:
    """All is well where there is nothing to do."""
    return Finding(check, verdict if advice else Verdict.OK, text, advice)


def check_address(address: Address, *, timeout_seconds: float) -> Finding:
    """Whether anybody listens: connects and hangs up."""
    advice = "check --coordinator, REMY_FARM_COORDINATOR and the configuration file"
    try:
        socket.create_connection((address.host, address.port), timeout_seconds).close()
        return _found(Check.ADDRESS, f"something listens at {address}")
    except ConnectionRefusedError:
        text = f"nobody listens at {address}"
        advice = f"start the coordinator there ('remy-farm coordinator'), or {advice}"
    except socket.gaierror:
        text = f"the name {address.host} is not known"
    except OSError as error:
        text = f"{address} cannot be reached: {error.strerror or error}"
    return _found(Check.ADDRESS, text, advice)


def check_tls(settings: ConnectionSettings, now: datetime, *, timeout_seconds: float) -> Finding:
    """Whether both sides agree on TLS and know each other. `now` is aware of its time zone."""
    where, tls = (settings.address.host, settings.address.port), settings.tls
    if tls is None and speaks_tls(settings.address, timeout_seconds=timeout_seconds):
        text = f"what listens at {settings.address} speaks TLS"
        text += ", and this client is set to plain text"
        advice = "name the authority of its certificate with --tls-ca, and drop --insecure"
        return _found(Check.TLS, text, advice)
    if tls is None:
        if settings.address.is_loopback:
            return _found(Check.TLS, "plain text, which does not leave this machine")
        text = "plain text: whoever is in between sees your token and your jobs"
        advice = "give the coordinator a certificate, and drop --insecure here"
        return _found(Check.TLS, text, advice, Verdict.WARNING)
    advice = "each must be a PEM file without a password, and the key that of the certificate"
    for path in (tls.ca, tls.cert, tls.key):
        # It would be waited for, by a library that nothing interrupts.
        if isinstance(path, Path) and path.is_fifo():
            return _found(Check.TLS, f"{path} is a pipe, which cannot be looked at twice", advice)
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        context.set_alpn_protocols(["h2"])
        if tls.cert is not None and tls.key is not None:
            # A key that needs a password would be asked for on the terminal.
            context.load_cert_chain(tls.cert, tls.key, password="")
    except (OSError, ValueError) as error:
        text = f"the files of the --tls flags cannot be used ({_reason(error)})"
        return _found(Check.TLS, text, advice)
    try:
        pem = ssl.get_server_certificate(where, timeout=timeout_seconds)
    except OSError:
        text = f"what listens at {settings.address} does not speak TLS"
        advice = "check the address; if plain text is meant, say so with --insecure"
        return _found(Check.TLS, text, advice)
    certificate = x509.load_pem_x509_certificate(pem.encode())
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    name, names = tls.server_name or where[0], "no name at all"
    with contextlib.suppress(x509.ExtensionNotFound):
        kind = x509.SubjectAlternativeName
        found = certificate.extensions.get_extension_for_class(kind).value
        names = ", ".join(str(each.value) for each in found)
    text, advice = "the coordinator's certificate", "set this machine's clock, or have it renewed"
    try:
        with (
            socket.create_connection(where, timeout_seconds) as raw,
            context.wrap_socket(raw, server_hostname=name) as secure,
        ):
            secure.sendall(_GREETING)
            objection = "" if secure.recv(1) else "connection closed"
    except ssl.SSLCertVerificationError as error:
        if ends < now:
            text += f" has expired ({ends:%Y-%m-%d %H:%M UTC})"
        elif begins > now:
            text += f" is not valid before {begins:%Y-%m-%d %H:%M UTC}"
        elif "not valid for" in error.verify_message:
            text += f" is for {names}, not for {name}"
            advice = "use one of these names in --coordinator, or give it as --tls-server-name"
        else:
            asked = f"in {tls.ca}" if isinstance(tls.ca, Path) else "that this machine trusts"
            text += f" is not signed by any of those {asked} ({error.verify_message})"
            advice = "name the authority that signed it with --tls-ca"
        return _found(Check.TLS, text, advice)
    except OSError as error:
        objection = _reason(error)
    own = tls.cert
    if objection and not isinstance(own, Path):
        text = f"the coordinator wants to see a certificate of this client ({objection})"
        return _found(Check.TLS, text, "give one with --tls-cert and --tls-key")
    if objection and isinstance(own, Path):
        until = x509.load_pem_x509_certificate(own.read_bytes()).not_valid_after_utc
        text = f"the coordinator does not accept the certificate in {own} ({objection}), "
        text += f"which is valid until {until:%Y-%m-%d %H:%M UTC}"
        advice = "have it renewed, or signed by the authority that the coordinator trusts"
        return _found(Check.TLS, text, advice)
    text = f"the certificate is for {names}, until {ends:%Y-%m-%d %H:%M UTC}"
    if ends < now + _EXPIRES_SOON:
        return _found(Check.TLS, text, "have it renewed", Verdict.WARNING)
    return _found(Check.TLS, text)


def _reason(error: Exception) -> str:
    """In OpenSSL's words, as in "certificate required"."""
    reason = getattr(error, "reason", None) or "connection closed"
    return str(reason).rpartition("ALERT_")[2].lower().replace("_", " ")


def check_answer(
    info: GetServerInfoResponse,
    own: GetServerInfoResponse,
    *,
    asked_unix_seconds: float,
    heard_unix_seconds: float,
) -> Iterator[Finding]:
    """What a coordinator says of itself, beside what this side would say."""
    who = f"you are {info.caller or 'nobody in particular'}, role {info.role or 'none'}"
    if info.role in ("submitter", "admin"):
        yield _found(Check.TOKEN, who)
    else:
        text = f"{who}, which may not submit or change jobs"
        advice = "ask for a token with the role submitter if you need to"
        yield _found(Check.TOKEN, text, advice, Verdict.WARNING)

    store, name = info.store, f"{info.store.kind} {info.store.version}".strip()
    if not store.available:
        text = f"{name} cannot be written to ({store.trouble or 'no reason given'}); jobs wait"
        yield _found(Check.STORE, text, "put that right; the coordinator goes on by itself")
    elif not store.durable:
        text = f"{name} may lose acknowledged work: {store.durability}"
        advice = "have it write before it answers (Redis: appendonly yes, appendfsync always)"
        yield _found(Check.STORE, text, advice)
    else:
        yield _found(Check.STORE, f"{name}: {store.durability}")

    fleet = info.evaluators
    if fleet.quarantined_workers:
        text = f"{fleet.quarantined_workers} of the workers gave wrong results and get no tasks"
        advice = "look for their names in the coordinator's log, and replace those machines"
        yield _found(Check.WORKERS, text, advice)
    elif fleet.kind == "local":
        text = f"the coordinator evaluates by itself, threads: {fleet.threads}"
        yield _found(Check.WORKERS, text)
    elif not fleet.workers:
        text = f"no worker is connected; {fleet.tasks_waiting} tasks wait"
        yield _found(Check.WORKERS, text, "start one: remy-farm worker --coordinator HOST:PORT")
    else:
        busy = f"connected: {fleet.workers}, busy: {fleet.busy_workers}"
        yield _found(Check.WORKERS, f"{busy}, threads of all: {fleet.threads}")

    theirs, ours = info.simulator_version or "unknown", own.simulator_version
    same = "install the same version of remy-farm on both sides"
    digests = ("simulator_digest", "scale_free_digest", "protocols_digest")
    if any(getattr(info, name) not in ("", getattr(own, name)) for name in digests):
        text = f"the coordinator's simulator ({theirs}) gives other results than this one ({ours})"
        yield _found(Check.VERSIONS, f"{text}: RemyCCs and scores differ", same)
    elif theirs != ours:
        text = f"the coordinator's simulator is {theirs}, this one is {ours}"
        yield _found(Check.VERSIONS, text, same, Verdict.WARNING)
    elif info.version != own.version:
        text = f"the coordinator is {info.version or 'unknown'}, this client is {own.version}"
        yield _found(Check.VERSIONS, text, same, Verdict.WARNING)
    else:
        text = f"remy-farm {own.version} and simulator {ours} on both sides"
        yield _found(Check.VERSIONS, text)

    uncertain = (heard_unix_seconds - asked_unix_seconds) / 2
    skew = info.unix_seconds - (asked_unix_seconds + uncertain)
    if abs(skew) <= _MOST_SKEW_SECONDS + uncertain:
        yield _found(Check.CLOCK, f"within {_MOST_SKEW_SECONDS:g} s of the coordinator's")
    else:
        direction = "ahead of" if skew > 0 else "behind"
        text = f"the coordinator's clock is {abs(skew):.0f} s {direction} this machine's"
        yield _found(Check.CLOCK, text, "have both machines set their clocks by NTP")
