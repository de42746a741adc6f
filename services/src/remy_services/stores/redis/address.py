"""Addresses of Redis servers: what a URL may say, and what of it may be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from remy_services.stores.contract import StoreError
from remy_services.stores.redis.password import PASSWORD_FILE_VARIABLE, PASSWORD_VARIABLE

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel")

_PORT = 6379
_SENTINEL_PORT = 26379


@dataclass(frozen=True)
class TlsFiles:
    """Paths of PEM files; None: the authorities that are trusted by default, no certificate."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class RedisAddress:
    """Where a server is, and who asks. Holds no password."""

    #: The URL without options, for people.
    shown: str
    #: The server, or the Sentinels; empty for a socket.
    hosts: tuple[tuple[str, int], ...] = ()
    #: Path of a Unix domain socket.
    socket: str | None = None
    #: Name by which Sentinels know the server; None: there are no Sentinels.
    service: str | None = None
    #: Whether the Sentinels ask for the server's password too.
    sentinel_password: bool = False
    #: None: in plain text.
    tls: TlsFiles | None = None
    user: str | None = None
    database: int = 0
    #: Replicas that must have every write before it is acknowledged.
    replicas: int = 0


def parse_address(url: str) -> RedisAddress:
    """What a URL of one of SCHEMES says.

        redis://[USER@]HOST[:PORT][/DATABASE]
        rediss://[USER@]HOST[:PORT][/DATABASE][?tls_ca=FILE&tls_cert=FILE&tls_key=FILE]
        unix://[USER@]/SOCKET[?database=NUMBER]
        redis+sentinel://[USER@]HOST[:PORT],...,/SERVICE[/DATABASE][?sentinel_password=yes]

    All take `replicas=NUMBER`. Raises StoreError, which never shows a password.
    """
    scheme, _, rest = url.partition("://")
    authority = re.match("[^/?]*", rest)[0]  # type: ignore[index]
    path, _, query = rest[len(authority) :].partition("?")
    credentials, _, hosts = authority.rpartition("@")
    user, colon, _ = credentials.partition(":")
    if colon:
        raise StoreError(
            f"the URL of the {scheme} store holds a password, which everybody who may list "
            f"processes or settings would see; it belongs into {PASSWORD_VARIABLE}, or a file that "
            f"{PASSWORD_FILE_VARIABLE} names"
        )
    shown = f"{scheme}://{hosts}{path}"
    url_parts = _Parts(scheme, shown, unquote(user) or None, hosts, path)
    options = _Options(shown, query)
    address = _address(url_parts, options)
    options.finish()
    return address


@dataclass(frozen=True)
class _Parts:
    scheme: str
    shown: str
    user: str | None
    hosts: str
    path: str


def _address(url: _Parts, options: _Options) -> RedisAddress:
    shown = url.shown
    replicas = options.number("replicas")
    path = [unquote(part) for part in url.path.split("/") if part]
    if url.scheme == "unix":
        if url.hosts or not path:
            raise StoreError(f"{shown} does not name a socket; unix:///run/redis.sock would")
        return RedisAddress(
            shown,
            socket=unquote(url.path),
            user=url.user,
            database=options.number("database"),
            replicas=replicas,
        )
    hosts = [host for host in url.hosts.split(",") if host]
    if not hosts:
        raise StoreError(f"{shown} names no host; {url.scheme}://HOST:PORT would")
    if url.scheme == "redis+sentinel":
        if not 1 <= len(path) <= 2:
            raise StoreError(
                f"{shown} does not name the service that its Sentinels watch; "
                "redis+sentinel://HOST:PORT,HOST:PORT/SERVICE would"
            )
        return RedisAddress(
            shown,
            hosts=tuple(_host(shown, host, _SENTINEL_PORT) for host in hosts),
            service=path[0],
            sentinel_password=options.choice("sentinel_password"),
            user=url.user,
            database=_database(shown, path[1:]),
            replicas=replicas,
        )
    if len(hosts) > 1 or len(path) > 1:
        raise StoreError(f"{shown} does not name one server; {url.scheme}://HOST:PORT/0 would")
    return RedisAddress(
        shown,
        hosts=(_host(shown, hosts[0], _PORT),),
        tls=options.tls() if url.scheme == "rediss" else None,
        user=url.user,
        database=_database(shown, path),
        replicas=replicas,
    )


def _host(shown: str, text: str, default_port: int) -> tuple[str, int]:
    try:
        split = urlsplit(f"//{text}")
        if split.hostname:
            return split.hostname, default_port if split.port is None else split.port
    except ValueError:
        pass
    raise StoreError(f"{text} in {shown} is not a host, or not one with a port up to 65535")


def _database(shown: str, path: list[str]) -> int:
    if not path:
        return 0
    if not path[0].isdecimal():
        raise StoreError(f"{shown} names database {path[0]}; databases of Redis are numbers")
    return int(path[0])


class _Options:
    """Options of a URL, each of which must be asked for."""

    def __init__(self, shown: str, query: str) -> None:
        try:
            options = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        except ValueError:
            raise StoreError(f"the options of {shown} are not of the form NAME=VALUE") from None
        self._shown = shown
        self._options = dict(options)
        self._known: set[str] = set()

    def number(self, name: str) -> int:
        """Its value; 0 if it is absent."""
        text = self._read(name) or "0"
        if not text.isdecimal():
            raise StoreError(f"{name} of {self._shown} is {text}; a number is needed")
        return int(text)

    def choice(self, name: str) -> bool:
        """Whether it is yes; no if it is absent."""
        text = self._read(name) or "no"
        if text not in ("yes", "no"):
            raise StoreError(f"{name} of {self._shown} is {text}; yes or no is needed")
        return text == "yes"

    def tls(self) -> TlsFiles:
        """The files that it names."""
        files = TlsFiles(self._read("tls_ca"), self._read("tls_cert"), self._read("tls_key"))
        if (files.cert is None) != (files.key is None):
            raise StoreError(f"{self._shown} has one of tls_cert and tls_key; both are needed")
        return files

    def finish(self) -> None:
        """Raises StoreError if there are others."""
        for name in self._options:
            if name not in self._known:
                known = ", ".join(sorted(self._known))
                raise StoreError(f"{self._shown} has no option {name}; it has {known}")

    def _read(self, name: str) -> str | None:
        self._known.add(name)
        return self._options.get(name)
