"""Reloads TLS certificates and tokens when their files change."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import grpc
import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from remy_farm.files import FileError, read_file
from remy_rpc.settings import SettingsError
from remy_services.coordinator.access import Authorizer, Tokens
from remy_services.coordinator.maintenance import BackgroundTask

#: Inode, modification time and size of each file, to detect changes without reading; None if
#: missing.
Signature = tuple[tuple[int, int, int] | None, ...]


def signature_of(paths: Iterable[Path]) -> Signature:
    """Returns a value that changes when a file is replaced, modified or removed."""
    return tuple(_signature(path) for path in paths)


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size)


_MOST_BYTES = 1 << 20

_log = structlog.get_logger()


@dataclass(frozen=True)
class ServerTls:
    """Paths of the server's PEM files."""

    certificate: Path
    key: Path
    #: CA certificates that sign client certificates; None accepts clients without one.
    client_ca: Path | None = None


class ReloadingTls:
    """Server credentials that reload certificate, key and CA when their files change.

    If new files are invalid, the error is logged and the previous credentials stay in use.
    """

    def __init__(self, files: ServerTls) -> None:
        """Raises SettingsError or FileError if the files cannot be used."""
        self._files = files
        paths = (files.certificate, files.key, files.client_ca)
        self._paths = [path for path in paths if path is not None]
        self._lock = threading.Lock()
        self._signature = signature_of(self._paths)
        self._configuration = _read(files)

    def credentials(self) -> grpc.ServerCredentials:
        """Returns the credentials for a server port."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration,
            # gRPC also accepts None ("unchanged"), which its type hints omit.
            cast("Callable[[], grpc.ServerCertificateConfiguration]", self._changed_configuration),
            require_client_authentication=self._files.client_ca is not None,
        )

    def certificate_end(self) -> float:
        """Returns the certificate's expiry as Unix time."""
        return _certificate(self._files.certificate).not_valid_after_utc.timestamp()

    def _changed_configuration(self) -> grpc.ServerCertificateConfiguration | None:
        """Called by gRPC before each handshake, in its threads. Returns None if nothing changed."""
        with self._lock:
            signature: Signature = signature_of(self._paths)
            if signature == self._signature:
                return None
            self._signature = signature
        try:
            configuration = _read(self._files)
        except (FileError, SettingsError) as error:
            _log.error("the new certificate cannot be used", why=str(error))
            return None
        _log.info("the certificate was reloaded", ends=self.certificate_end())
        return configuration


def _read(files: ServerTls) -> grpc.ServerCertificateConfiguration:
    _certificate(files.certificate)
    chain = read_file(files.certificate, limit=_MOST_BYTES)
    key = read_file(files.key, limit=_MOST_BYTES)
    authorities = None
    if files.client_ca is not None:
        _certificate(files.client_ca)
        authorities = read_file(files.client_ca, limit=_MOST_BYTES)
    _check_pair(files)
    return grpc.ssl_server_certificate_configuration([(key, chain)], authorities)


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(read_file(path, limit=_MOST_BYTES))[0]
    except (ValueError, IndexError) as error:
        raise SettingsError(f"{path} does not contain a PEM certificate") from error


def _check_pair(files: ServerTls) -> None:
    """Raises SettingsError if key and certificate do not match, as in the middle of a renewal."""
    try:
        key = load_pem_private_key(read_file(files.key, limit=_MOST_BYTES), password=None)
    except (ValueError, TypeError) as error:
        raise SettingsError(f"{files.key} does not contain a PEM private key") from error
    if key.public_key() != _certificate(files.certificate).public_key():
        raise SettingsError(
            f"{files.key} is not the private key of the certificate {files.certificate}"
        )


_CHECK_SECONDS = 1.0


class TokenWatch(BackgroundTask):
    """Loads an authorizer's tokens from a file, and reloads them when the file changes.

    If the new file is invalid, the error is logged and the previous tokens stay valid.
    """

    def __init__(self, path: Path, authorizer: Authorizer) -> None:
        """Raises FileError if the tokens cannot be read."""
        self._path = path
        self._authorizer = authorizer
        self._paths: tuple[Path, ...] = (path,)
        self._read()
        self._signature = signature_of(self._paths)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            signature = await asyncio.to_thread(signature_of, self._paths)
            if signature == self._signature:
                continue
            self._signature = signature
            try:
                await asyncio.to_thread(self._read)
            except FileError as error:
                _log.error("the new tokens cannot be used", why=str(error))
            else:
                self._signature = signature_of(self._paths)
                _log.info("the tokens were reloaded")

    def _read(self) -> None:
        tokens = Tokens.read(self._path)
        self._authorizer.tokens = tokens
        self._paths = tokens.paths
