"""Finding out why a coordinator cannot be reached or used, and what to do about it.

The TLS of gRPC says little about what went wrong; that of the standard library says it in codes.
"""

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

from cryptography import x509

from remy_farm.v1 import design_service_pb2 as messages
from remy_rpc.channel import speaks_tls
from remy_rpc.settings import Address, SettingsError, TlsFiles, Token
from remy_services.client.connection import Connection
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import NotAllowed, ServiceError

_TIMEOUT_SECONDS = 10.0
_MOST_SKEW_SECONDS = 5.0
_EXPIRES_SOON = timedelta(days=14)
_MAY_SUBMIT = ("submitter", "admin")
_CHECK_ADDRESS = "check --coordinator, REMY_FARM_COORDINATOR and the configuration file"
_SAME_VERSION = "install the same version of remy-farm on both sides"
# X509_V_ERR_* of OpenSSL.
_NOT_YET_VALID, _EXPIRED, _WRONG_NAME, _WRONG_ADDRESS = 9, 10, 62, 64
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
    """One line of a diagnosis."""

    check: Check
    verdict: Verdict
    #: What was found, one clause.
    text: str
    #: What to do; empty if there is nothing to do.
    advice: str = ""


@dataclass(frozen=True)
class Versions:
    """Of the programs on this side."""

    client: str
    simulator: str
    #: Of a fixed evaluation: equal where results are equal, bit by bit.
    simulator_digest: str


def diagnose(
    settings: ConnectionSettings, own: Versions, *, timeout_seconds: float = _TIMEOUT_SECONDS
) -> Iterator[Finding]:
    """The findings as they are made; what rests on something that failed is skipped."""
    done = set()
    for finding in _findings(settings, own, timeout_seconds):
        done.add(finding.check)
        yield finding
    for check in Check:
        if check not in done and check != Check.SETTINGS:
            yield Finding(check, Verdict.SKIPPED, "not checked because of the above")


def _findings(
    settings: ConnectionSettings, own: Versions, timeout_seconds: float
) -> Iterator[Finding]:
    found = [check_address(settings.address, timeout_seconds=timeout_seconds)]
    if found[0].verdict == Verdict.OK:
        found += check_tls(settings, now=datetime.now(UTC), timeout_seconds=timeout_seconds)
    yield from found
    if any(finding.verdict == Verdict.PROBLEM for finding in found):
        return
    yield from _check_token_file(settings.token)
    asked = time.time()
    try:
        with Connection(settings, deadline_seconds=timeout_seconds) as connection:
            info: messages.GetServerInfoResponse = connection.call_once(
                "GetServerInfo", messages.GetServerInfoRequest()
            )
    except SettingsError as error:
        yield _problem(Check.COORDINATOR, str(error), "put that right")
    except NotAllowed as error:
        came_from = "and none is set"
        if settings.token is not None:
            came_from = f"it came from {settings.token.source}"
        separator = "," if settings.token is None else ";"
        yield _ok(Check.COORDINATOR, "a coordinator answers")
        yield _problem(
            Check.TOKEN,
            f"{error.message}{separator} {came_from}",
            "ask whoever runs the farm for a token with the role that you need, and name its file "
            "with --token-file",
        )
    except ServiceError as error:
        yield _problem(Check.COORDINATOR, error.message, "look at the coordinator's log")
    else:
        heard = time.time()
        yield _ok(Check.COORDINATOR, f"{info.coordinator or 'a coordinator'} answers")
        yield check_role(info)
        yield check_store(info)
        yield check_workers(info)
        yield check_versions(info, own)
        yield check_clock(info, asked_unix_seconds=asked, heard_unix_seconds=heard)


def _ok(check: Check, text: str) -> Finding:
    return Finding(check, Verdict.OK, text)


def _warning(check: Check, text: str, advice: str) -> Finding:
    return Finding(check, Verdict.WARNING, text, advice)


def _problem(check: Check, text: str, advice: str) -> Finding:
    return Finding(check, Verdict.PROBLEM, text, advice)


# Whether anybody listens; whether both sides agree on TLS, know each other, and will for a while.


def check_address(address: Address, *, timeout_seconds: float) -> Finding:
    """Connects and hangs up."""
    try:
        with socket.create_connection((address.host, address.port), timeout_seconds) as found:
            peer = found.getpeername()[0]
    except OSError as error:
        if isinstance(error, ConnectionRefusedError):
            advice = f"start the coordinator there ('remy-farm coordinator'), or {_CHECK_ADDRESS}"
            return _problem(Check.ADDRESS, f"nobody listens at {address}", advice)
        text, advice = f"{address}: {error.strerror or error}", _CHECK_ADDRESS
        if isinstance(error, socket.gaierror):
            text = f"the name {address.host} is not known"
        elif isinstance(error, TimeoutError):
            text = f"{address} does not answer within {timeout_seconds:g} s"
            advice = f"look for a firewall in between, or {_CHECK_ADDRESS}"
        return _problem(Check.ADDRESS, text, advice)
    shown = "" if peer == address.host else f" ({peer})"
    return _ok(Check.ADDRESS, f"something listens at {address}{shown}")


def check_tls(
    settings: ConnectionSettings, *, now: datetime, timeout_seconds: float
) -> list[Finding]:
    """One finding, and another for a client certificate. `now` is aware of its time zone."""
    address, tls = settings.address, settings.tls
    if tls is None:
        return [_check_plain_text(address, timeout_seconds)]
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        context.set_alpn_protocols(["h2"])
        if tls.cert is not None and tls.key is not None:
            # A key that needs a password would be asked for on the terminal.
            context.load_cert_chain(tls.cert, tls.key, password="")
    except (OSError, ValueError) as error:
        text = f"the files of the --tls flags cannot be used ({_words(error)})"
        advice = "each must be a PEM file without a password, and the key that of the certificate"
        return [_problem(Check.TLS, text, advice)]
    try:
        with (
            socket.create_connection((address.host, address.port), timeout_seconds) as raw,
            context.wrap_socket(raw, server_hostname=tls.server_name or address.host) as secure,
        ):
            shown = x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"")
            objection = _objection(secure)
    except ssl.SSLCertVerificationError as error:
        return [_check_distrusted(address, tls, error, timeout_seconds)]
    except OSError:
        return [
            _problem(
                Check.TLS,
                f"what listens at {address} does not speak TLS",
                "check the address; if plain text is meant, say so with --insecure",
            )
        ]
    if objection and not isinstance(tls.cert, Path):
        text = f"the coordinator wants to see a certificate of this client ({objection})"
        return [_problem(Check.TLS, text, "give one with --tls-cert and --tls-key")]
    if objection:
        text = f"the coordinator does not accept the certificate in {tls.cert!s} ({objection})"
        advice = "have it signed by the authority that the coordinator trusts"
        return [_problem(Check.TLS, text, advice)]
    findings = [_ok(Check.TLS, f"the certificate is for {_names(shown)}, until {_day(shown)}")]
    if shown.not_valid_after_utc < now + _EXPIRES_SOON:
        advice = "have the coordinator's certificate renewed"
        findings = [_warning(Check.TLS, findings[0].text, advice)]
    if isinstance(tls.cert, Path):
        own = x509.load_pem_x509_certificate(tls.cert.read_bytes())
        text = f"your certificate in {tls.cert}"
        if own.not_valid_after_utc < now:
            text = f"{text} has expired ({_day(own)})"
            findings.append(_problem(Check.TLS, text, "have it renewed"))
        elif own.not_valid_after_utc < now + _EXPIRES_SOON:
            text = f"{text} expires soon ({_day(own)})"
            findings.append(_warning(Check.TLS, text, "have it renewed"))
    return findings


def _check_plain_text(address: Address, timeout_seconds: float) -> Finding:
    if speaks_tls(address, timeout_seconds=timeout_seconds):
        return _problem(
            Check.TLS,
            f"what listens at {address} speaks TLS, and this client is set to plain text",
            "name the authority of its certificate with --tls-ca, and drop --insecure",
        )
    if address.is_loopback:
        return _ok(Check.TLS, "plain text, which does not leave this machine")
    return _warning(
        Check.TLS,
        "plain text: whoever is in between sees your token and your jobs",
        "give the coordinator a certificate, and drop --insecure here",
    )


def _check_distrusted(
    address: Address, tls: TlsFiles, error: ssl.SSLCertVerificationError, timeout_seconds: float
) -> Finding:
    """Why the certificate that the coordinator shows is not accepted."""
    pem = ssl.get_server_certificate((address.host, address.port), timeout=timeout_seconds)
    shown = x509.load_pem_x509_certificate(pem.encode())
    text, advice = "the coordinator's certificate", "set this machine's clock, or have it renewed"
    if error.verify_code == _EXPIRED:
        text += f" has expired ({_day(shown)})"
    elif error.verify_code == _NOT_YET_VALID:
        text += f" is not valid before {_day(shown, begins=True)}"
    elif error.verify_code in (_WRONG_NAME, _WRONG_ADDRESS):
        text += f" is for {_names(shown)}, not for {tls.server_name or address.host}"
        advice = "use one of these names in --coordinator, or give it as --tls-server-name"
    else:
        asked = f"in {tls.ca}" if isinstance(tls.ca, Path) else "that this machine trusts"
        text += f" is not signed by any of those {asked} ({error.verify_message})"
        advice = "name the authority that signed it with --tls-ca"
    return _problem(Check.TLS, text, advice)


def _objection(secure: ssl.SSLSocket) -> str:
    """What the other side has against us; empty if it talks on."""
    try:
        secure.sendall(_GREETING)
        return "" if secure.recv(1) else "connection closed"
    except OSError as error:
        return _words(error)


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None) or "connection closed"
    return str(reason).rpartition("ALERT_")[2].lower().replace("_", " ")


def _names(certificate: x509.Certificate) -> str:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return "no name at all"
    addresses = found.get_values_for_type(x509.IPAddress)
    return ", ".join([*found.get_values_for_type(x509.DNSName), *map(str, addresses)])


def _day(certificate: x509.Certificate, *, begins: bool = False) -> str:
    day = certificate.not_valid_before_utc if begins else certificate.not_valid_after_utc
    return day.strftime("%Y-%m-%d %H:%M UTC")


def _check_token_file(token: Token | None) -> list[Finding]:
    """A finding if other users of this machine may read the file that the token came from."""
    path = Path(token.source) if token is not None else None
    if path is None or not path.is_file():
        return []
    if not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return []
    text = f"{path} is open to other users of this machine"
    return [_warning(Check.TOKEN, text, f"chmod 600 {path}")]


# What a coordinator's own account says.


def check_role(info: messages.GetServerInfoResponse) -> Finding:
    """Who the coordinator takes us for."""
    who = f"you are {info.caller or 'nobody in particular'}, role {info.role or 'none'}"
    if info.role in _MAY_SUBMIT:
        return _ok(Check.TOKEN, who)
    advice = "ask for a token with the role submitter if you need to"
    return _warning(Check.TOKEN, f"{who}, which may not submit or change jobs", advice)


def check_store(info: messages.GetServerInfoResponse) -> Finding:
    """Whether work is kept."""
    store = info.store
    name = f"{store.kind} {store.version}".strip()
    if not store.available:
        text = f"{name} cannot be written to ({store.trouble or 'no reason given'}); jobs wait"
        return _problem(Check.STORE, text, "put that right; the coordinator goes on by itself")
    if not store.durable:
        text = f"{name} may lose acknowledged work: {store.durability}"
        advice = "have it write before it answers (Redis: appendonly yes, appendfsync always)"
        return _problem(Check.STORE, text, advice)
    return _ok(Check.STORE, f"{name}: {store.durability}")


def check_workers(info: messages.GetServerInfoResponse) -> Finding:
    """Whether there is anybody to evaluate."""
    evaluators = info.evaluators
    if evaluators.quarantined_workers:
        wrong = evaluators.quarantined_workers
        return _problem(
            Check.WORKERS,
            f"{wrong} of the workers gave wrong results and get no tasks",
            "look for their names in the coordinator's log, and replace those machines",
        )
    threads = evaluators.threads
    if evaluators.kind == "local":
        return _ok(Check.WORKERS, f"the coordinator evaluates by itself, threads: {threads}")
    if not evaluators.workers:
        text = f"no worker is connected; {evaluators.tasks_waiting} tasks wait"
        return _problem(Check.WORKERS, text, "start one: remy-farm worker --coordinator HOST:PORT")
    busy = f"connected: {evaluators.workers}, busy: {evaluators.busy_workers}"
    return _ok(Check.WORKERS, f"{busy}, threads of all: {threads}")


def check_versions(info: messages.GetServerInfoResponse, own: Versions) -> Finding:
    """Whether results here and there are the same."""
    if info.simulator_digest and info.simulator_digest != own.simulator_digest:
        text = (
            f"the coordinator's simulator ({info.simulator_version}) gives other results than this "
            f"one ({own.simulator}): RemyCCs and scores differ"
        )
        return _problem(Check.VERSIONS, text, _SAME_VERSION)
    if info.simulator_version != own.simulator:
        theirs = info.simulator_version or "unknown"
        text = f"the coordinator's simulator is {theirs}, this one is {own.simulator}"
        return _warning(Check.VERSIONS, text, _SAME_VERSION)
    if info.version != own.client:
        text = f"the coordinator is {info.version or 'unknown'}, this client is {own.client}"
        return _warning(Check.VERSIONS, text, _SAME_VERSION)
    both = f"remy-farm {own.client} and simulator {own.simulator} on both sides"
    return _ok(Check.VERSIONS, both)


def check_clock(
    info: messages.GetServerInfoResponse, *, asked_unix_seconds: float, heard_unix_seconds: float
) -> Finding:
    """Whether the clocks agree, as far as the time of the call lets that be known."""
    uncertain = (heard_unix_seconds - asked_unix_seconds) / 2
    skew = info.unix_seconds - (asked_unix_seconds + uncertain)
    if abs(skew) <= _MOST_SKEW_SECONDS + uncertain:
        return _ok(Check.CLOCK, f"within {_MOST_SKEW_SECONDS:g} s of the coordinator's")
    direction = "ahead of" if skew > 0 else "behind"
    return _problem(
        Check.CLOCK,
        f"the coordinator's clock is {abs(skew):.0f} s {direction} this machine's",
        "have both machines set their clocks by NTP",
    )
