"""When certificates end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cryptography import x509

from remy_services.files import FileError, read_file

_MOST_BYTES = 1 << 20


def ends_of(files: Mapping[str, Path]) -> dict[str, float]:
    """Unix time at which the first certificate of each PEM file ends, by its use.

    A file without a certificate is left out: whoever serves with it says what is wrong.
    """
    ends = {}
    for use, path in files.items():
        try:
            certificate = x509.load_pem_x509_certificates(read_file(path, limit=_MOST_BYTES))[0]
        except (FileError, ValueError, IndexError):
            continue
        ends[use] = certificate.not_valid_after_utc.timestamp()
    return ends
