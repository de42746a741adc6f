"""Tests the expiry times of certificates."""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from remy_services.telemetry.telemetry import certificate_expiry_times

_END = datetime.datetime(2040, 1, 2, tzinfo=datetime.UTC)


def certificate() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_END - datetime.timedelta(days=365))
        .not_valid_after(_END)
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(Encoding.PEM)


def test_expiry_times_are_listed_by_use_without_unreadable_files(tmp_path: Path) -> None:
    good, empty = tmp_path / "good.pem", tmp_path / "empty.pem"
    good.write_bytes(certificate())
    empty.write_text("nothing\n")
    files = {"server": good, "client_authority": empty, "other": tmp_path / "missing.pem"}
    assert certificate_expiry_times(files) == {"server": _END.timestamp()}
