"""A TLS handshake with whatever listens at an address, taken apart.

The TLS of gRPC says little about what went wrong; that of the standard library says it in codes.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from cryptography import x509

from remy_services.client.address import Address
from remy_services.client.settings import TlsSettings

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
