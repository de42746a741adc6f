"""Finding out why a coordinator cannot be reached or used, and what to do about it."""

from __future__ import annotations

import socket
import ssl
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import grpc
from cryptography import x509

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.client.connection import Connection
from remy_services.client.settings import (
    Address,
    ConnectionSettings,
    NotAllowed,
    ServiceError,
    SettingsError,
    TlsSettings,
    Token,
)
from remy_services.client.status import CallFailure

# What a check found.


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
    """One line of a diagnosis."""

    check: Check
    verdict: Verdict
    #: What was found, one clause.
    text: str
    #: What to do; empty if there is nothing to do.
    advice: str = ""


def ok(check: Check, text: str) -> Finding:
    """All is well."""
    return Finding(check, Verdict.OK, text)


def warning(check: Check, text: str, advice: str) -> Finding:
    """Somebody should look at it."""
    return Finding(check, Verdict.WARNING, text, advice)


def problem(check: Check, text: str, advice: str) -> Finding:
    """Something has to be done."""
    return Finding(check, Verdict.PROBLEM, text, advice)


# What is to be said of a certificate.


_EXPIRES_SOON = timedelta(days=14)


def names(certificate: x509.Certificate) -> list[str]:
    """The DNS names and IP addresses that it is for."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    found = extension.value
    return [
        *found.get_values_for_type(x509.DNSName),
        *(str(each) for each in found.get_values_for_type(x509.IPAddress)),
    ]


def shown_names(certificate: x509.Certificate) -> str:
    """For a sentence."""
    return ", ".join(names(certificate)) or "no name at all"


def day(time: datetime) -> str:
    """In UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def has_expired(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether its time is over."""
    return now > certificate.not_valid_after_utc


def expires_soon(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether it is time to renew it."""
    return now + _EXPIRES_SOON > certificate.not_valid_after_utc


# Whether a token is as private as it should be.


def check_token_file(token: Token | None) -> list[Finding]:
    """A finding if other users of this machine may read the file that the token came from."""
    if token is None or not Path(token.source).is_file():
        return []
    if not Path(token.source).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return []
    return [
        warning(
            Check.TOKEN,
            f"{token.source} is open to other users of this machine",
            f"chmod 600 {token.source}",
        )
    ]


# A TLS handshake with whatever listens at an address, taken apart.
#
# The TLS of gRPC says little about what went wrong; that of the standard library says it in codes.


# What begins every HTTP/2 connection, with an empty SETTINGS frame. A server that wants a
# certificate of the client says so only after the handshake, when it is spoken to.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])

_CLOSED = "CONNECTION_CLOSED"


@dataclass(frozen=True)
class Handshake:
    """How it went."""

    #: What the other side showed, if it came to that.
    certificate: x509.Certificate | None = None
    #: Why the certificate was not accepted: OpenSSL's code and words; None if it was.
    refusal_code: int | None = None
    refusal: str = ""
    #: The other side speaks something else than TLS, or nothing at all.
    is_not_tls: bool = False
    #: How the other side ended the connection after the handshake, as "CERTIFICATE_REQUIRED".
    alert: str = ""


def shake_hands(address: Address, tls: TlsSettings, *, timeout_seconds: float) -> Handshake:
    """Says hello as the client would. Raises OSError where there is no connection, and
    ssl.SSLError for files that cannot be used."""
    try:
        return _greet(address, tls, _context(tls), timeout_seconds)
    except ssl.SSLCertVerificationError as error:
        unchecked = _context(tls)
        unchecked.check_hostname = False
        unchecked.verify_mode = ssl.CERT_NONE
        shown = _greet(address, tls, unchecked, timeout_seconds)
        return Handshake(shown.certificate, error.verify_code, error.verify_message)


def speaks_tls(address: Address, *, timeout_seconds: float) -> bool:
    """Whether the other side answers a TLS hello with another. Raises OSError."""
    context = _context(TlsSettings())
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return not _greet(address, TlsSettings(), context, timeout_seconds).is_not_tls


def _context(tls: TlsSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca)
    context.set_alpn_protocols(["h2"])
    if tls.cert is not None and tls.key is not None:
        # A key that needs a password would be asked for on the terminal.
        context.load_cert_chain(tls.cert, tls.key, password="")
    return context


def _greet(
    address: Address, tls: TlsSettings, context: ssl.SSLContext, timeout_seconds: float
) -> Handshake:
    with socket.create_connection((address.host, address.port), timeout=timeout_seconds) as raw:
        try:
            secure = context.wrap_socket(raw, server_hostname=tls.server_name or address.host)
        except ssl.SSLCertVerificationError:
            raise
        except (ssl.SSLError, ConnectionResetError, BrokenPipeError, TimeoutError):
            return Handshake(is_not_tls=True)
        with secure:
            shown = secure.getpeercert(binary_form=True)
            certificate = None if shown is None else x509.load_der_x509_certificate(shown)
            return Handshake(certificate, alert=_alert(secure))


def _alert(secure: ssl.SSLSocket) -> str:
    """What the other side has against us; empty if it talks on."""
    try:
        secure.sendall(_GREETING)
        return "" if secure.recv(1) else _CLOSED
    except ssl.SSLError as error:
        return (error.reason or "UNKNOWN").rpartition("ALERT_")[2]
    except OSError:
        return _CLOSED


# Whether anybody listens at an address.


_CHECK_ADDRESS = "check --coordinator, REMY_FARM_COORDINATOR and the configuration file"


def check_address(address: Address, *, timeout_seconds: float) -> Finding:
    """Connects and hangs up."""
    try:
        with socket.create_connection(
            (address.host, address.port), timeout=timeout_seconds
        ) as found:
            peer = found.getpeername()[0]
    except socket.gaierror:
        return problem(Check.ADDRESS, f"the name {address.host} is not known", _CHECK_ADDRESS)
    except ConnectionRefusedError:
        return problem(
            Check.ADDRESS,
            f"nobody listens at {address}",
            f"start the coordinator there ('remy-farm coordinator'), or {_CHECK_ADDRESS}",
        )
    except TimeoutError:
        return problem(
            Check.ADDRESS,
            f"{address} does not answer within {timeout_seconds:g} s",
            f"look for a firewall in between, or {_CHECK_ADDRESS}",
        )
    except OSError as error:
        return problem(Check.ADDRESS, f"{address}: {error.strerror or error}", _CHECK_ADDRESS)
    shown = "" if peer == address.host else f" ({peer})"
    return ok(Check.ADDRESS, f"something listens at {address}{shown}")


# Whether both sides agree on TLS, know each other, and will for a while.


# X509_V_ERR_* of OpenSSL.
_NOT_YET_VALID, _EXPIRED = 9, 10
_WRONG_NAME, _WRONG_ADDRESS = 62, 64


def check_tls(
    settings: ConnectionSettings, *, now: datetime, timeout_seconds: float
) -> list[Finding]:
    """One finding, and another for a client certificate. `now` is aware of its time zone."""
    address = settings.address
    try:
        if settings.tls is None:
            return [_plain_text(address, speaks_tls(address, timeout_seconds=timeout_seconds))]
        shaken = shake_hands(address, settings.tls, timeout_seconds=timeout_seconds)
        findings = [_secure(address, settings.tls, shaken, now)]
        return findings + _own_certificate(settings.tls, now)
    except ssl.SSLError as error:
        why = _words(error.reason or str(error))
        return [
            problem(
                Check.TLS,
                f"the files of the --tls flags cannot be used ({why})",
                "each must be a PEM file without a password, and the key that of the certificate",
            )
        ]
    except OSError as error:
        return [problem(Check.TLS, f"{error.strerror or error}", "try again")]


def _plain_text(address: Address, is_answered_in_tls: bool) -> Finding:
    if is_answered_in_tls:
        return problem(
            Check.TLS,
            f"what listens at {address} speaks TLS, and this client is set to plain text",
            "name the authority of its certificate with --tls-ca, and drop --insecure",
        )
    if address.is_loopback:
        return ok(Check.TLS, "plain text, which does not leave this machine")
    return warning(
        Check.TLS,
        "plain text: whoever is in between sees your token and your jobs",
        "give the coordinator a certificate, and drop --insecure here",
    )


def _secure(address: Address, tls: TlsSettings, shaken: Handshake, now: datetime) -> Finding:
    if shaken.is_not_tls:
        return problem(
            Check.TLS,
            f"what listens at {address} does not speak TLS",
            "check the address; if plain text is meant, say so with --insecure",
        )
    assert shaken.certificate is not None
    if shaken.refusal_code is not None:
        return _not_accepted(address, tls, shaken, shaken.certificate)
    if shaken.alert:
        return _turned_away(tls, shaken.alert)
    until = day(shaken.certificate.not_valid_after_utc)
    text = f"the certificate is for {shown_names(shaken.certificate)}, until {until}"
    if expires_soon(shaken.certificate, now):
        return warning(Check.TLS, text, "have the coordinator's certificate renewed")
    return ok(Check.TLS, text)


def _not_accepted(
    address: Address, tls: TlsSettings, shaken: Handshake, certificate: x509.Certificate
) -> Finding:
    match shaken.refusal_code:
        case code if code == _EXPIRED:
            until = day(certificate.not_valid_after_utc)
            return problem(
                Check.TLS,
                f"the coordinator's certificate has expired ({until})",
                "have it renewed; if it has not, set this machine's clock",
            )
        case code if code == _NOT_YET_VALID:
            since = day(certificate.not_valid_before_utc)
            return problem(
                Check.TLS,
                f"the coordinator's certificate is not valid before {since}",
                "set this machine's clock, or wait",
            )
        case code if code in (_WRONG_NAME, _WRONG_ADDRESS):
            return problem(
                Check.TLS,
                f"the coordinator's certificate is for {shown_names(certificate)}, "
                f"not for {tls.server_name or address.host}",
                "use one of these names in --coordinator, or give it as --tls-server-name",
            )
    asked = f"those in {tls.ca}" if tls.ca is not None else "those that this machine trusts"
    return problem(
        Check.TLS,
        f"the coordinator's certificate is not signed by any of {asked} ({shaken.refusal})",
        "name the authority that signed it with --tls-ca",
    )


def _turned_away(tls: TlsSettings, alert: str) -> Finding:
    if tls.cert is None:
        return problem(
            Check.TLS,
            f"the coordinator wants to see a certificate of this client ({_words(alert)})",
            "give one with --tls-cert and --tls-key",
        )
    return problem(
        Check.TLS,
        f"the coordinator does not accept the certificate in {tls.cert} ({_words(alert)})",
        "have it signed by the authority that the coordinator trusts",
    )


def _own_certificate(tls: TlsSettings, now: datetime) -> list[Finding]:
    if tls.cert is None:
        return []
    own = x509.load_pem_x509_certificate(Path(tls.cert).read_bytes())
    until = day(own.not_valid_after_utc)
    if has_expired(own, now):
        text = f"your certificate in {tls.cert} has expired ({until})"
        return [problem(Check.TLS, text, "have it renewed")]
    if expires_soon(own, now):
        text = f"your certificate in {tls.cert} expires soon ({until})"
        return [warning(Check.TLS, text, "have it renewed")]
    return []


def _words(reason: str) -> str:
    return reason.lower().replace("_", " ")


# What a coordinator's own account says about its token check, store, workers, versions and clock.
#
# Pure.


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


# All checks, in an order in which each one rests on those before.


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
    yield check_role(info)
    yield check_store(info)
    yield check_workers(info)
    yield check_versions(info, own)
    yield check_clock(info, asked_unix_seconds=asked, heard_unix_seconds=heard)


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
