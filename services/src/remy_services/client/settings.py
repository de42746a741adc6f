"""How to reach a coordinator: address, TLS and token, by flags, environment or file."""

from __future__ import annotations

import ipaddress
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import grpc

from remy_services.files import FileError, read_file
from remy_services.specification import SpecError
from remy_services.specification.reading import read_yaml

# What can go wrong between a client and a coordinator.


class SettingsError(Exception):
    """A setting of the connection cannot be used. One sentence, which names the setting."""


class ServiceError(Exception):
    """A request to a coordinator failed; its text is one sentence for the user."""

    def __init__(self, message: str, code: grpc.StatusCode, *, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        #: What happened, without the advice what to do.
        self.message = message
        #: As the coordinator, or the transport in its place, has it.
        self.code = code
        #: Whether the request had been sent before, and may have taken effect then.
        self.is_repeated = False


class Unreachable(ServiceError):
    """The coordinator could not be reached, or did not answer in time; later it may."""


class NotAllowed(ServiceError):
    """The token is missing, unknown, or has too low a role."""


class BadRequest(ServiceError):
    """What was asked for makes no sense, whatever the state of the farm."""


class Refused(ServiceError):
    """What was asked for cannot be done now: no such job, not in this state, over a limit."""


class ServerFailed(ServiceError):
    """A defect of the coordinator; its log has the details."""


# Where a coordinator is.


DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 50051

_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?"
)
_BRACKETED = re.compile(r"\[(?P<host>[^\]]*)\](:(?P<port>.*))?")


@dataclass(frozen=True)
class Address:
    """A host and a TCP port."""

    #: A name, or an IP address without brackets.
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there does not leave this machine."""
        if self.host.rstrip(".").lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """The address in "HOST:PORT", "HOST" or "[IPV6]:PORT". Raises SettingsError."""
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        host, port = bracketed["host"], bracketed["port"]
        is_host = _is_ip_address(host)
    else:
        host, colon, rest = text.partition(":")
        port = rest if colon else None
        is_host = _HOST_NAME.fullmatch(host) is not None
    if not is_host or (port is not None and not _is_port(port)):
        raise SettingsError(
            f"the coordinator's address {text[:300]!r} must be HOST:PORT, as in "
            "farm.example.org:50051 or [::1]:50051"
        )
    return Address(host, DEFAULT_PORT if port is None else int(port))


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_port(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 1 <= int(text) <= 65535


# The bearer token that says who a client is. It is read from a file or the environment only:
# anybody on a machine may list the flags of its processes.


_MOST_TOKEN_BYTES = 16 << 10
# What a header of a request may hold.
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Token:
    """A token and where it was found; what is printed of it never shows the token."""

    text: str = field(repr=False)
    #: As in "REMY_FARM_TOKEN" or the name of a file.
    source: str

    def __post_init__(self) -> None:
        if not self.text:
            raise SettingsError(f"the token in {self.source} is empty")
        if not _TOKEN.fullmatch(self.text):
            raise SettingsError(
                f"the token in {self.source} has a character that tokens do not have; printable "
                "ASCII without spaces is allowed"
            )


def read_token_file(path: str) -> Token:
    """The token that is all that a file holds; space around it does not count.

    Raises SettingsError.
    """
    try:
        text = read_file(path, limit=_MOST_TOKEN_BYTES).decode("ascii")
    except FileError as error:
        raise SettingsError(f"the token file {error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"the token file {path} does not hold a token, but other data"
        ) from error
    return Token(text.strip(), path)


# How to reach a coordinator: flags before the environment, before the configuration file.


TOKEN_VARIABLE = "REMY_FARM_TOKEN"


@dataclass(frozen=True)
class Given:
    """What one source says of the connection; None where it says nothing.

    Certificates, authorities and keys are paths of PEM files.
    """

    coordinator: str | None = None
    #: Of the authorities that may have signed the coordinator's certificate.
    tls_ca: str | None = None
    #: Of this client, where the coordinator asks for one.
    tls_cert: str | None = None
    tls_key: str | None = None
    #: The name in the coordinator's certificate, where it is reached by another.
    tls_server_name: str | None = None
    insecure: bool | None = None
    token_file: str | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def asks_for_tls(self) -> bool:
        """Whether it says anything that only TLS has a use for."""
        return any((self.tls_ca, self.tls_cert, self.tls_key, self.tls_server_name))

    def over(self, other: Given) -> Given:
        """This one, with the other's values where it says nothing."""
        mine = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(other, **{name: value for name, value in mine.items() if value is not None})


@dataclass(frozen=True)
class TlsSettings:
    """How to know the coordinator, and how it is to know this client."""

    #: Path of a PEM file; None: the authorities that are trusted by default.
    ca: str | None = None
    #: Paths of PEM files, both or none.
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None


@dataclass(frozen=True)
class ConnectionSettings:
    """Everything that is needed to reach a coordinator."""

    address: Address = field(default_factory=Address)
    #: None: in plain text.
    tls: TlsSettings | None = None
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
    return ConnectionSettings(
        address, _tls(given, file, address), _token(given, environment, file, file_name)
    )


def _tls(given: Given, file: Given, address: Address) -> TlsSettings | None:
    if given.asks_for_tls and not given.insecure:
        file = replace(file, insecure=None)
    merged = given if given.insecure else given.over(file)
    if merged.insecure and merged.asks_for_tls:
        raise SettingsError(
            "--insecure and the --tls flags exclude each other: the one is for plain text, the "
            "others are for TLS"
        )
    if (merged.tls_cert is None) != (merged.tls_key is None):
        missing = "--tls-key" if merged.tls_key is None else "--tls-cert"
        raise SettingsError(
            f"a client certificate needs both --tls-cert and --tls-key; {missing} is missing"
        )
    if merged.insecure or (address.is_loopback and not merged.asks_for_tls):
        return None
    return TlsSettings(merged.tls_ca, merged.tls_cert, merged.tls_key, merged.tls_server_name)


def _token(
    given: Given, environment: Mapping[str, str], file: Given, file_name: str
) -> Token | None:
    if given.token_file is not None:
        return read_token_file(given.token_file)
    if environment.get(TOKEN_VARIABLE):
        return Token(environment[TOKEN_VARIABLE].strip(), TOKEN_VARIABLE)
    if file.token is not None:
        return Token(file.token.strip(), file_name)
    if file.token_file is not None:
        return read_token_file(file.token_file)
    return None


# The configuration file of the client commands: a YAML mapping with the keys of `Given`.


CONFIGURATION_VARIABLE = "REMY_FARM_CONFIG"

_MOST_CONFIGURATION_BYTES = 64 << 10
_KEYS = tuple(each.name for each in fields(Given))


def configuration_path(environment: Mapping[str, str]) -> Path:
    """Where the file is: $REMY_FARM_CONFIG, or remy-farm/config.yaml among the user's settings."""
    if environment.get(CONFIGURATION_VARIABLE):
        return Path(environment[CONFIGURATION_VARIABLE])
    home = environment.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home, "remy-farm", "config.yaml")


def read_configuration(path: Path, *, required: bool = False) -> Given:
    """What the file says; nothing, if there is none and none is required.

    Paths in it are relative to its folder. A file that holds a token and that others may read is
    refused. Raises SettingsError.
    """
    if not required and not path.exists():
        return Given()
    try:
        tree = read_yaml(read_file(path, limit=_MOST_CONFIGURATION_BYTES).decode(), str(path))
    except (FileError, SpecError) as error:
        raise SettingsError(str(error)) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text") from error
    if tree is None:
        return Given()
    if not isinstance(tree, dict):
        raise SettingsError(f"{path} must be a mapping with the keys {', '.join(_KEYS)}")
    given = Given(**{key: _checked(path, key, value) for key, value in tree.items()})
    if given.token is not None and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(
            f"{path} holds a token and is open to other users; run: chmod 600 {path}"
        )
    return replace(
        given,
        tls_ca=_beside(path, given.tls_ca),
        tls_cert=_beside(path, given.tls_cert),
        tls_key=_beside(path, given.tls_key),
        token_file=_beside(path, given.token_file),
    )


def _checked(path: Path, key: str, value: object) -> Any:
    if key not in _KEYS:
        raise SettingsError(
            f"{path}: {key[:60]!r} is not a known key; known are {', '.join(_KEYS)}"
        )
    if key == "insecure":
        if not isinstance(value, bool):
            raise SettingsError(f"{path}: insecure must be true or false")
    elif not isinstance(value, str) or not value:
        raise SettingsError(f"{path}: {key} must be a text that is not empty")
    return value


def _beside(path: Path, name: str | None) -> str | None:
    return None if name is None else os.fspath(path.parent / Path(name).expanduser())
