"""Connection settings: flags take precedence over the environment, then the configuration file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec

from remy_farm.files import FileError, read_file
from remy_farm.specification import SpecError
from remy_farm.specification.reading import read_yaml
from remy_rpc.settings import (
    Address,
    SettingsError,
    TlsFiles,
    Token,
    parse_address,
    read_token_file,
    tls_settings,
)

TOKEN_VARIABLE = "REMY_FARM_TOKEN"
CONFIGURATION_VARIABLE = "REMY_FARM_CONFIG"
PATIENCE_SECONDS = 10.0

_MOST_CONFIGURATION_BYTES = 64 << 10

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class SettingsSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Connection settings from one source; None where the source sets nothing.

    Certificates, CAs and keys are paths of PEM files.
    """

    coordinator: _Text | None = None
    #: CAs that may have signed the coordinator's certificate.
    tls_ca: _Text | None = None
    #: Client certificate, if the coordinator requires one.
    tls_cert: _Text | None = None
    tls_key: _Text | None = None
    #: Name in the coordinator's certificate, if it differs from the address.
    tls_server_name: _Text | None = None
    insecure: bool | None = None
    token_file: _Text | None = None
    token: _Text | None = None

    def __repr__(self) -> str:
        values = msgspec.structs.asdict(self)
        shown = ", ".join(f"{key}={value!r}" for key, value in values.items() if key != "token")
        return f"SettingsSource({shown})"

    @property
    def tls_files(self) -> TlsFiles:
        """The TLS settings."""
        paths = (self.tls_ca, self.tls_cert, self.tls_key)
        ca, cert, key = (None if path is None else Path(path) for path in paths)
        return TlsFiles(ca, cert, key, self.tls_server_name)

    def or_else(self, other: SettingsSource) -> SettingsSource:
        """Returns these settings, with values of `other` where they are None."""
        values = msgspec.structs.asdict(self)
        return msgspec.structs.replace(
            other, **{name: value for name, value in values.items() if value is not None}
        )


@dataclass(frozen=True)
class ConnectionSettings:
    """Address, TLS settings and token of a coordinator."""

    address: Address = field(default_factory=Address)
    #: None means plain text.
    tls: TlsFiles | None = None
    token: Token | None = None


def combine_settings(
    given: SettingsSource, environment: Mapping[str, str], file: SettingsSource, *, file_name: str
) -> ConnectionSettings:
    """Combines flags, environment (for the token) and configuration file.

    The file describes one coordinator. If flags name another address, the file is ignored, so that
    its token is not sent elsewhere. Other machines require TLS unless `insecure` is set. Raises
    SettingsError.
    """
    its_address = Address() if file.coordinator is None else parse_address(file.coordinator)
    address = its_address if given.coordinator is None else parse_address(given.coordinator)
    if address != its_address:
        file = SettingsSource()
    if not given.tls_files.is_empty and not given.insecure:
        file = msgspec.structs.replace(file, insecure=None)
    merged = given if given.insecure else given.or_else(file)
    return ConnectionSettings(
        address,
        tls_settings(merged.tls_files, insecure=bool(merged.insecure), coordinator=address),
        _token(given, environment, file, file_name),
    )


def load_settings(given: SettingsSource, environment: Mapping[str, str]) -> ConnectionSettings:
    """Combines given settings with the environment and the user's configuration file.


    Raises SettingsError.
    """
    path = configuration_path(environment)
    file = read_configuration(path, required=bool(environment.get(CONFIGURATION_VARIABLE)))
    return combine_settings(given, environment, file, file_name=str(path))


def _token(
    given: SettingsSource, environment: Mapping[str, str], file: SettingsSource, file_name: str
) -> Token | None:
    if given.token_file is not None:
        return read_token_file(Path(given.token_file))
    if environment.get(TOKEN_VARIABLE):
        return Token(environment[TOKEN_VARIABLE].strip(), TOKEN_VARIABLE)
    if file.token is not None:
        return Token(file.token.strip(), file_name)
    if file.token_file is not None:
        return read_token_file(Path(file.token_file))
    return None


def configuration_path(environment: Mapping[str, str]) -> Path:
    """Returns $REMY_FARM_CONFIG, or remy-farm/config.yaml in the user's configuration folder."""
    if environment.get(CONFIGURATION_VARIABLE):
        return Path(environment[CONFIGURATION_VARIABLE])
    home = environment.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home, "remy-farm", "config.yaml")


def read_configuration(path: Path, *, required: bool = False) -> SettingsSource:
    """Reads a configuration file: a YAML mapping with the fields of `SettingsSource`.

    A missing file is empty unless `required`. Paths are relative to the file. A file that contains
    a token and is readable by other users is refused. Raises SettingsError.
    """
    if not required and not path.exists():
        return SettingsSource()
    try:
        tree = read_yaml(read_file(path, limit=_MOST_CONFIGURATION_BYTES).decode(), str(path))
        given = SettingsSource() if tree is None else msgspec.convert(tree, SettingsSource)
    except (FileError, SpecError) as error:
        raise SettingsError(str(error)) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text") from error
    except msgspec.ValidationError as error:
        raise SettingsError(_explained(str(error), path)) from error
    if given.token is not None and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(
            f"{path} contains a token and is readable by other users; run: chmod 600 {path}"
        )
    files = ("tls_ca", "tls_cert", "tls_key", "token_file")
    values = {name: getattr(given, name) for name in files if getattr(given, name) is not None}
    beside = {name: os.fspath(path.parent / Path(values[name]).expanduser()) for name in values}
    return msgspec.structs.replace(given, **beside)


def _explained(problem: str, path: Path) -> str:
    """Rewrites msgspec's error about a configuration file for users."""
    known = ", ".join(SettingsSource.__struct_fields__)
    unknown = re.search(r"unknown field `(.*)`", problem, re.DOTALL)
    if unknown is not None:
        return f"{path}: {unknown[1][:60]!r} is not a known key; known keys are {known}"
    key = re.search(r"`\$\.(\w+)`$", problem)
    if key is None:
        return f"{path} must be a mapping with the keys {known}"
    wanted = "true or false" if key[1] == "insecure" else "a non-empty string"
    return f"{path}: {key[1]} must be {wanted}"
