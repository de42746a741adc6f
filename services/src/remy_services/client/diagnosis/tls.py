"""Whether both sides agree on TLS, know each other, and will for a while."""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path

from cryptography import x509

from remy_services.client.address import Address
from remy_services.client.diagnosis import certificates
from remy_services.client.diagnosis.finding import Check, Finding, ok, problem, warning
from remy_services.client.diagnosis.handshake import Handshake, shake_hands, speaks_tls
from remy_services.client.settings import ConnectionSettings, TlsSettings

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
    until = certificates.day(shaken.certificate.not_valid_after_utc)
    text = f"the certificate is for {certificates.shown_names(shaken.certificate)}, until {until}"
    if certificates.expires_soon(shaken.certificate, now):
        return warning(Check.TLS, text, "have the coordinator's certificate renewed")
    return ok(Check.TLS, text)


def _not_accepted(
    address: Address, tls: TlsSettings, shaken: Handshake, certificate: x509.Certificate
) -> Finding:
    match shaken.refusal_code:
        case code if code == _EXPIRED:
            until = certificates.day(certificate.not_valid_after_utc)
            return problem(
                Check.TLS,
                f"the coordinator's certificate has expired ({until})",
                "have it renewed; if it has not, set this machine's clock",
            )
        case code if code == _NOT_YET_VALID:
            since = certificates.day(certificate.not_valid_before_utc)
            return problem(
                Check.TLS,
                f"the coordinator's certificate is not valid before {since}",
                "set this machine's clock, or wait",
            )
        case code if code in (_WRONG_NAME, _WRONG_ADDRESS):
            return problem(
                Check.TLS,
                f"the coordinator's certificate is for {certificates.shown_names(certificate)}, "
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
    until = certificates.day(own.not_valid_after_utc)
    if certificates.has_expired(own, now):
        text = f"your certificate in {tls.cert} has expired ({until})"
        return [problem(Check.TLS, text, "have it renewed")]
    if certificates.expires_soon(own, now):
        text = f"your certificate in {tls.cert} expires soon ({until})"
        return [warning(Check.TLS, text, "have it renewed")]
    return []


def _words(reason: str) -> str:
    return reason.lower().replace("_", " ")
