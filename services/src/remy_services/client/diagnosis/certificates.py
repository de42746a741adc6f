"""What is to be said of a certificate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509

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
