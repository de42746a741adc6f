"""Redis connections: addresses, passwords, clients, and readable errors."""

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
    """Returns the Redis password from the environment or from a file that it names; None if unset.

    There is no flag for the password, because process arguments are visible to all users of a
    machine. A trailing newline of the file is ignored. Raises StoreError.
    """
    path = environment.get(PASSWORD_FILE_VARIABLE)
    if not path:
        return environment.get(PASSWORD_VARIABLE) or None
    try:
        text = read_file(path, limit=_MOST_BYTES).decode()
    except FileError as error:
        raise StoreError(f"Redis password file: {error}") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"Redis password file {path} is not UTF-8 text") from error
    return text.rstrip("\r\n") or None


#: URL options by scheme.
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
    """Paths of PEM files. None means the system's trusted CAs, and no client certificate."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class RedisAddress:
    """Address of a Redis server, and the user name. Contains no password."""

    #: The URL without user and options, for messages.
    shown: str
    #: Host and port of the server or of the Sentinels; empty for a socket.
    hosts: tuple[tuple[str, int], ...] = ()
    #: Path of a Unix domain socket.
    socket: str | None = None
    #: Sentinel's name of the server; None without Sentinel.
    service: str | None = None
    #: Whether the Sentinels require the server's password.
    sentinel_password: bool = False
    #: None means plain text.
    tls: RedisTls | None = None
    user: str | None = None
    database: int = 0
    #: Number of replicas that must have a write before it is acknowledged.
    replicas: int = 0


def parse_address(url: str) -> RedisAddress:
    """Parses a URL with one of SCHEMES.


        redis://[USER@]HOST[:PORT][/DATABASE]
        rediss://[USER@]HOST[:PORT][/DATABASE][?tls_ca=FILE&tls_cert=FILE&tls_key=FILE]
        unix://[USER@]/SOCKET[?database=NUMBER]
        redis+sentinel://[USER@]HOST[:PORT],...,/SERVICE[/DATABASE][?sentinel_password=yes]
        rediss+sentinel://, the same, with TLS to Sentinels and servers

    All schemes accept `replicas=NUMBER`. Raises StoreError; its message never shows a password.
    """
    scheme, _, rest = url.partition("://")
    authority = re.match("[^/?]*", rest)[0]  # type: ignore[index]
    path, _, query = rest[len(authority) :].partition("?")
    credentials, _, hosts = authority.rpartition("@")
    user, colon, _ = credentials.partition(":")
    if colon:
        raise StoreError(
            f"the {scheme} store URL contains a password, which process lists and settings would "
            f"reveal; set {PASSWORD_VARIABLE} instead, or name a file in {PASSWORD_FILE_VARIABLE}"
        )
    shown = f"{scheme}://{hosts}{path}"
    options = _options(scheme, shown, query)
    replicas = _number(shown, options, "replicas")
    if scheme == "unix":
        if hosts or not path.strip("/"):
            raise StoreError(
                f"{shown} has no socket path; use a form such as unix:///run/redis.sock"
            )
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
        raise StoreError(f"{shown} has no host; use the form {scheme}://HOST:PORT")
    service = None
    if scheme.endswith("+sentinel"):
        if not 1 <= len(parts) <= 2:
            raise StoreError(
                f"{shown} has no Sentinel service name; use the form "
                f"{scheme}://HOST:PORT,HOST:PORT/SERVICE"
            )
        service, *parts = parts
    elif count > 1 or len(parts) > 1:
        raise StoreError(
            f"{shown} does not name exactly one server; use the form {scheme}://HOST:PORT/0"
        )
    if parts and not parts[0].isdecimal():
        raise StoreError(f"{shown} has database {parts[0]!r}; a Redis database is a number")
    return service, int(parts[0]) if parts else 0


def _host(shown: str, text: str, default_port: int) -> tuple[str, int]:
    try:
        split = urlsplit(f"//{text}")
        if split.hostname:
            return split.hostname, default_port if split.port is None else split.port
    except ValueError:
        pass
    raise StoreError(f"{text} in {shown} is not a host with an optional port up to 65535")


def _options(scheme: str, shown: str, query: str) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise StoreError(f"the options of {shown} must have the form NAME=VALUE") from None
    for name in options:
        if name not in SCHEMES[scheme]:
            raise StoreError(
                f"{shown} has an unknown option {name}; known options are "
                f"{', '.join(SCHEMES[scheme])}"
            )
    return options


def _number(shown: str, options: Mapping[str, str], name: str) -> int:
    text = options.get(name) or "0"
    if not text.isdecimal():
        raise StoreError(f"{name} of {shown} is {text}; it must be a number")
    return int(text)


def _choice(shown: str, options: Mapping[str, str], name: str) -> bool:
    text = options.get(name) or "no"
    if text not in ("yes", "no"):
        raise StoreError(f"{name} of {shown} is {text}; it must be yes or no")
    return text == "yes"


def _tls(shown: str, options: Mapping[str, str]) -> RedisTls:
    files = RedisTls(options.get("tls_ca"), options.get("tls_cert"), options.get("tls_key"))
    if (files.cert is None) != (files.key is None):
        raise StoreError(f"{shown} has only one of tls_cert and tls_key; set both or neither")
    return files


def new_client(
    address: RedisAddress, password: str | None, *, connect_seconds: float, answer_seconds: float
) -> redis.Redis:
    """Creates a thread-safe client that connects on first use."""
    connection: dict[str, Any] = {
        "db": address.database,
        "username": address.user,
        "password": password,
        "socket_connect_timeout": connect_seconds,
        "socket_timeout": answer_seconds,
        # A request without reply may have been executed, so only the caller can decide to retry it.
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


# Explanation by text in the error reply. Before Redis 7 the text may be inside; the first match
# counts.
_REPLIES = {
    "OOM command not allowed": "is out of memory: it has reached its maxmemory limit",
    "MISCONF": "refuses writes because it cannot write to its disk",
    "READONLY": "is a read-only replica",
    "You can't write against a read only replica": "is a read-only replica",
    "NOREPLICAS": "refuses writes because it has fewer replicas than min-replicas-to-write",
    "Not enough good replicas": (
        "refuses writes because it has fewer replicas than min-replicas-to-write"
    ),
    "LOADING": "is still loading its data",
    "MASTERDOWN": "is a replica that has lost its master",
    "max number of clients reached": "has reached its maxclients limit",
    "MOVED": "is a node of a Redis Cluster; use a single server or Sentinel",
}


def _meaning(error: redis.RedisError) -> str:
    text = f"{getattr(error, 'status_code', None) or ''} {error}"
    for reply, meaning in _REPLIES.items():
        if reply in text:
            return meaning
    if isinstance(error, redis.AuthenticationError):
        return "rejects this user and password"
    if isinstance(error, redis.exceptions.NoPermissionError):
        return f"denies this user a required permission ({error})"
    if isinstance(error, redis.sentinel.MasterNotFoundError):
        return "cannot be found: no reachable Sentinel knows a master of this name"
    if isinstance(error, redis.TimeoutError):
        return "does not answer in time"
    if isinstance(error, redis.ConnectionError):
        return f"cannot be reached ({_system_reason(error)})"
    return f"answers with an error ({error})"


def _system_reason(error: BaseException) -> str:
    """Returns the operating system's error among the causes of an exception."""
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
    """Translates Redis errors to StoreUnavailable, with the given address in the message."""
    try:
        yield
    except redis.RedisError as error:
        # The message describes the server only, because the request may contain secrets.
        raise StoreUnavailable(f"Redis at {shown} {_meaning(error)}") from error


def script_call(script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Command:
    """Returns the command that runs a Lua script."""
    return ("EVAL", script, len(keys), *keys, *arguments)
