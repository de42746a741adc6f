"""How to reach a coordinator: flags before the environment, before the configuration file."""

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


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one source says of the connection; None where it says nothing.

    Certificates, authorities and keys are paths of PEM files.
    """

    coordinator: _Text | None = None
    #: Of the authorities that may have signed the coordinator's certificate.
    tls_ca: _Text | None = None
    #: Of this client, where the coordinator asks for one.
    tls_cert: _Text | None = None
    tls_key: _Text | None = None
    #: The name in the coordinator's certificate, where it is reached by another.
    tls_server_name: _Text | None = None
    insecure: bool | None = None
    token_file: _Text | None = None
    token: _Text | None = None

    def __repr__(self) -> str:
        told = msgspec.structs.asdict(self)
        return f"Given({', '.join(f'{key}={told[key]!r}' for key in told if key != 'token')})"

    @property
    def tls_files(self) -> TlsFiles:
        """What it says that only TLS has a use for."""
        paths = (self.tls_ca, self.tls_cert, self.tls_key)
        ca, cert, key = (None if path is None else Path(path) for path in paths)
        return TlsFiles(ca, cert, key, self.tls_server_name)

    def over(self, other: Given) -> Given:
        """This one, with the other's values where it says nothing."""
        mine = msgspec.structs.asdict(self)
        return msgspec.structs.replace(
            other, **{name: value for name, value in mine.items() if value is not None}
        )


@dataclass(frozen=True)
class ConnectionSettings:
    """Everything that is needed to reach a coordinator."""

    address: Address = field(default_factory=Address)
    #: None: in plain text.
    tls: TlsFiles | None = None
    token: Token | None = None


def settings_of(
    given: Given, environment: Mapping[str, str], file: Given, *, file_name: str
) -> ConnectionSettings:
    """The settings that flags, environment (for the token) and configuration file amount to.

    The file describes one coordinator: where flags name another one, nothing of the file holds, so
    that its token goes to nobody else. Outside of this machine everything goes through TLS unless
    `insecure` is set. Raises SettingsError.
    """
    its_address = Address() if file.coordinator is None else parse_address(file.coordinator)
    address = its_address if given.coordinator is None else parse_address(given.coordinator)
    if address != its_address:
        file = Given()
    if not given.tls_files.is_empty and not given.insecure:
        file = msgspec.structs.replace(file, insecure=None)
    merged = given if given.insecure else given.over(file)
    return ConnectionSettings(
        address,
        tls_settings(merged.tls_files, insecure=bool(merged.insecure), coordinator=address),
        _token(given, environment, file, file_name),
    )


def found_settings(given: Given, environment: Mapping[str, str]) -> ConnectionSettings:
    """What is given, the environment and the user's configuration file amount to.

    Raises SettingsError.
    """
    path = configuration_path(environment)
    file = read_configuration(path, required=bool(environment.get(CONFIGURATION_VARIABLE)))
    return settings_of(given, environment, file, file_name=str(path))


def _token(
    given: Given, environment: Mapping[str, str], file: Given, file_name: str
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
    """Where the file is: $REMY_FARM_CONFIG, or remy-farm/config.yaml among the user's settings."""
    if environment.get(CONFIGURATION_VARIABLE):
        return Path(environment[CONFIGURATION_VARIABLE])
    home = environment.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home, "remy-farm", "config.yaml")


def read_configuration(path: Path, *, required: bool = False) -> Given:
    """What the file says, a YAML mapping with the keys of `Given`; nothing, if there is none and
    none is required.

    Paths in it are relative to its folder. A file that holds a token and that others may read is
    refused. Raises SettingsError.
    """
    if not required and not path.exists():
        return Given()
    try:
        tree = read_yaml(read_file(path, limit=_MOST_CONFIGURATION_BYTES).decode(), str(path))
        given = Given() if tree is None else msgspec.convert(tree, Given)
    except (FileError, SpecError) as error:
        raise SettingsError(str(error)) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text") from error
    except msgspec.ValidationError as error:
        raise SettingsError(_explained(str(error), path)) from error
    if given.token is not None and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(
            f"{path} holds a token and is open to other users; run: chmod 600 {path}"
        )
    files = ("tls_ca", "tls_cert", "tls_key", "token_file")
    told = {name: getattr(given, name) for name in files if getattr(given, name) is not None}
    beside = {name: os.fspath(path.parent / Path(told[name]).expanduser()) for name in told}
    return msgspec.structs.replace(given, **beside)


def _explained(problem: str, path: Path) -> str:
    """What msgspec has against a configuration file, for people."""
    known = ", ".join(Given.__struct_fields__)
    unknown = re.search(r"unknown field `(.*)`", problem, re.DOTALL)
    if unknown is not None:
        return f"{path}: {unknown[1][:60]!r} is not a known key; known are {known}"
    key = re.search(r"`\$\.(\w+)`$", problem)
    if key is None:
        return f"{path} must be a mapping with the keys {known}"
    wanted = "true or false" if key[1] == "insecure" else "a text that is not empty"
    return f"{path}: {key[1]} must be {wanted}"
