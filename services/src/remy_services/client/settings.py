"""How to reach a coordinator: flags before the environment, before the configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from remy_services.client.address import Address, parse_address
from remy_services.client.errors import SettingsError
from remy_services.client.token import Token, read_token_file

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
