"""The way to a Redis server: addresses, passwords, connections, and errors of one sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from remy_farm.files import FileError, read_file, reason
from remy_services.stores.contract import StoreError, StoreUnavailable

PASSWORD_VARIABLE = "REMY_FARM_REDIS_PASSWORD"
PASSWORD_FILE_VARIABLE = "REMY_FARM_REDIS_PASSWORD_FILE"

_MOST_BYTES = 16 << 10


def find_password(environment: Mapping[str, str]) -> str | None:
    """The password in the file that the environment names, or in the environment itself.

    It comes from nowhere else: anybody on a machine may list the flags of its processes. None if
    there is neither. A newline at the file's end does not count. Raises StoreError.
    """
    path = environment.get(PASSWORD_FILE_VARIABLE)
    if not path:
        return environment.get(PASSWORD_VARIABLE) or None
    try:
        text = read_file(path, limit=_MOST_BYTES).decode()
    except FileError as error:
        raise StoreError(f"the file of the Redis password {error}") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"the file of the Redis password {path} is not text in UTF-8") from error
    return text.rstrip("\r\n") or None


#: The options of each scheme.
SCHEMES = {
    "redis": ("replicas",),
    "rediss": ("replicas", "tls_ca", "tls_cert", "tls_key"),
    "unix": ("database", "replicas"),
    "redis+sentinel": ("replicas", "sentinel_password"),
    "rediss+sentinel": ("replicas", "sentinel_password", "tls_ca", "tls_cert", "tls_key"),
}

_PORT = 6379
_SENTINEL_PORT = 26379


@dataclass(frozen=True)
class RedisTls:
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
    tls: RedisTls | None = None
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
        rediss+sentinel://, the same, with TLS to Sentinels and servers

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
    options = _options(scheme, shown, query)
    replicas = _number(shown, options, "replicas")
    if scheme == "unix":
        if hosts or not path.strip("/"):
            raise StoreError(f"{shown} does not name a socket; unix:///run/redis.sock would")
        return RedisAddress(
            shown,
            socket=unquote(path),
            user=unquote(user) or None,
            database=_number(shown, options, "database"),
            replicas=replicas,
        )
    service, database = _service_and_database(scheme, shown, hosts, path)
    port = _PORT if service is None else _SENTINEL_PORT
    return RedisAddress(
        shown,
        hosts=tuple(_host(shown, host, port) for host in hosts.split(",") if host),
        service=service,
        sentinel_password=_choice(shown, options, "sentinel_password"),
        tls=_tls(shown, options) if scheme.startswith("rediss") else None,
        user=unquote(user) or None,
        database=database,
        replicas=replicas,
    )


def _service_and_database(scheme: str, shown: str, hosts: str, path: str) -> tuple[str | None, int]:
    count = len([host for host in hosts.split(",") if host])
    parts = [unquote(part) for part in path.split("/") if part]
    if not count:
        raise StoreError(f"{shown} names no host; {scheme}://HOST:PORT would")
    service = None
    if scheme.endswith("+sentinel"):
        if not 1 <= len(parts) <= 2:
            raise StoreError(
                f"{shown} does not name the service that its Sentinels watch; "
                f"{scheme}://HOST:PORT,HOST:PORT/SERVICE would"
            )
        service, *parts = parts
    elif count > 1 or len(parts) > 1:
        raise StoreError(f"{shown} does not name one server; {scheme}://HOST:PORT/0 would")
    if parts and not parts[0].isdecimal():
        raise StoreError(f"{shown} names database {parts[0]}; databases of Redis are numbers")
    return service, int(parts[0]) if parts else 0


def _host(shown: str, text: str, default_port: int) -> tuple[str, int]:
    try:
        split = urlsplit(f"//{text}")
        if split.hostname:
            return split.hostname, default_port if split.port is None else split.port
    except ValueError:
        pass
    raise StoreError(f"{text} in {shown} is not a host, or not one with a port up to 65535")


def _options(scheme: str, shown: str, query: str) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise StoreError(f"the options of {shown} are not of the form NAME=VALUE") from None
    for name in options:
        if name not in SCHEMES[scheme]:
            raise StoreError(f"{shown} has no option {name}; it has {', '.join(SCHEMES[scheme])}")
    return options


def _number(shown: str, options: Mapping[str, str], name: str) -> int:
    text = options.get(name) or "0"
    if not text.isdecimal():
        raise StoreError(f"{name} of {shown} is {text}; a number is needed")
    return int(text)


def _choice(shown: str, options: Mapping[str, str], name: str) -> bool:
    text = options.get(name) or "no"
    if text not in ("yes", "no"):
        raise StoreError(f"{name} of {shown} is {text}; yes or no is needed")
    return text == "yes"


def _tls(shown: str, options: Mapping[str, str]) -> RedisTls:
    files = RedisTls(options.get("tls_ca"), options.get("tls_cert"), options.get("tls_key"))
    if (files.cert is None) != (files.key is None):
        raise StoreError(f"{shown} has one of tls_cert and tls_key; both are needed")
    return files


def new_client(
    address: RedisAddress, password: str | None, *, connect_seconds: float, answer_seconds: float
) -> redis.Redis:
    """A client for any number of threads, which connects when it is first used."""
    connection: dict[str, Any] = {
        "db": address.database,
        "username": address.user,
        "password": password,
        "socket_connect_timeout": connect_seconds,
        "socket_timeout": answer_seconds,
        # A request whose answer was lost may have been carried out; only the caller can tell
        # whether to ask again.
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
    }
    if address.socket is not None:
        return redis.Redis(unix_socket_path=address.socket, **connection)
    if address.tls is not None:
        connection |= {
            "ssl": True,
            "ssl_ca_certs": address.tls.ca,
            "ssl_certfile": address.tls.cert,
            "ssl_keyfile": address.tls.key,
        }
    if address.service is not None:
        to_sentinels = connection | {
            "db": 0,
            "username": None,
            "password": password if address.sentinel_password else None,
        }
        sentinel: Any = Sentinel(  # type: ignore[no-untyped-call]
            list(address.hosts), sentinel_kwargs=to_sentinels, **connection
        )
        client: redis.Redis = sentinel.master_for(address.service)
        return client
    ((host, port),) = address.hosts
    return redis.Redis(host=host, port=port, **connection)


# What a reply has in it, before Redis 7 somewhere inside; the first that fits.
_REPLIES = {
    "OOM command not allowed": "is out of memory: it holds as much as its maxmemory allows",
    "MISCONF": "refuses writes because it cannot write to its disk",
    "READONLY": "is a read-only replica",
    "You can't write against a read only replica": "is a read-only replica",
    "NOREPLICAS": "refuses writes because it has fewer replicas than min-replicas-to-write",
    "Not enough good replicas": (
        "refuses writes because it has fewer replicas than min-replicas-to-write"
    ),
    "LOADING": "is reading its data after a start",
    "MASTERDOWN": "is a replica that has lost its master",
    "max number of clients reached": "has as many clients as its maxclients allows",
    "MOVED": "is a node of a Redis Cluster; a single server, or Sentinel, is needed",
}


def _meaning(error: redis.RedisError) -> str:
    text = f"{getattr(error, 'status_code', None) or ''} {error}"
    for reply, meaning in _REPLIES.items():
        if reply in text:
            return meaning
    if isinstance(error, redis.AuthenticationError):
        return "refuses this user and password"
    if isinstance(error, redis.exceptions.NoPermissionError):
        return f"does not let this user do what is needed ({error})"
    if isinstance(error, redis.sentinel.MasterNotFoundError):
        return "cannot be found: no Sentinel that answers knows a master of this name"
    if isinstance(error, redis.TimeoutError):
        return "does not answer in time"
    if isinstance(error, redis.ConnectionError):
        return f"cannot be reached ({_system_reason(error)})"
    return f"answers with an error ({error})"


def _system_reason(error: BaseException) -> str:
    """What the operating system said, of all that an error goes back to."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and not isinstance(cause, redis.RedisError):
            return reason(cause)
        cause = cause.__cause__ or cause.__context__
    return str(error).rstrip(".").lower()


Argument = str | bytes | int
Command = Sequence[Argument]


@contextmanager
def translated(shown: str) -> Iterator[None]:
    """Errors of the server at the address shown, as one sentence each."""
    try:
        yield
    except redis.RedisError as error:
        # About the server: nothing of the request is in it.
        raise StoreUnavailable(f"Redis at {shown} {_meaning(error)}") from error


def script_call(script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Command:
    """The command that carries out a Lua script."""
    return ("EVAL", script, len(keys), *keys, *arguments)
