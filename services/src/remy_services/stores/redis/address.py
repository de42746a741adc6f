"""Addresses of Redis servers: what a URL may say, and what of it may be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from remy_services.stores.contract import StoreError

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
    try:
        parts = urlsplit(url)
        # urlsplit checks a port when it is asked for it, and only one.
        user, hosts = _authority(parts)
        options = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError:
        raise StoreError(
            "the URL of the Redis store cannot be read; redis://HOST:PORT/DATABASE is one"
        ) from None
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    reader = _Reader(shown, options)
    address = _address(parts, shown, user, hosts, reader)
    reader.finish()
    return address


def _authority(parts: SplitResult) -> tuple[str | None, tuple[str, ...]]:
    """User and hosts with their ports."""
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, colon, _ = credentials.partition(":")
    if colon:
        raise StoreError(
            f"the URL of the {parts.scheme} store holds a password, which everybody who may list "
            "processes or settings would see; put it into a file or an environment variable"
        )
    return unquote(user) or None, tuple(host for host in hosts.split(",") if host)


def _address(
    parts: SplitResult, shown: str, user: str | None, hosts: tuple[str, ...], options: _Reader
) -> RedisAddress:
    replicas = options.number("replicas")
    path = [unquote(part) for part in parts.path.split("/") if part]
    if parts.scheme == "unix":
        if hosts or not path:
            raise StoreError(f"{shown} does not name a socket; unix:///run/redis.sock would")
        return RedisAddress(
            shown,
            socket=unquote(parts.path),
            user=user,
            database=options.number("database"),
            replicas=replicas,
        )
    if not hosts:
        raise StoreError(f"{shown} names no host; {parts.scheme}://HOST:PORT would")
    if parts.scheme == "redis+sentinel":
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
            user=user,
            database=_database(shown, path[1:]),
            replicas=replicas,
        )
    if len(hosts) > 1 or len(path) > 1:
        raise StoreError(f"{shown} does not name one server; {parts.scheme}://HOST:PORT/0 would")
    return RedisAddress(
        shown,
        hosts=(_host(shown, hosts[0], _PORT),),
        tls=options.tls() if parts.scheme == "rediss" else None,
        user=user,
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


class _Reader:
    """Options of a URL, each of which must be read."""

    def __init__(self, shown: str, options: Mapping[str, str]) -> None:
        self._shown = shown
        self._options = options
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
