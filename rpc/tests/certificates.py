"""A certificate authority for tests."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """Files of a certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """A CA that signs certificates."""

    def __init__(self, folder: Path, name: str = "an authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        certificate = (
            _builder(self._subject, self._subject, self._key, now - timedelta(days=400))
            .not_valid_after(now + timedelta(days=400))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=True,
                    crl_sign=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / "ca.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        *names: str,
        begins: timedelta = timedelta(days=-1),
        ends: timedelta = timedelta(days=90),
    ) -> Pair:
        """Issues a certificate for DNS names and IP addresses; validity is relative to now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        now = datetime.now(UTC)
        certificate = (
            _builder(subject, self._subject, key, now + begins)
            .not_valid_after(now + ends)
            .add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        stem = f"{names[0]}-{certificate.serial_number:x}"
        pair = Pair(self._folder / f"{stem}.pem", self._folder / f"{stem}.key")
        pair.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begins: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
