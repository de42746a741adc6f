"""The way to a Redis server: addresses, passwords, connections, and errors of one sentence each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from remy_services.files import FileError, read_file, reason
from remy_services.stores.contract import StoreError, StoreUnavailable

# The password of a Redis server. It is read from a file or the environment only: anybody on a
# machine may list the flags of its processes.


PASSWORD_VARIABLE = "REMY_FARM_REDIS_PASSWORD"
PASSWORD_FILE_VARIABLE = "REMY_FARM_REDIS_PASSWORD_FILE"

_MOST_BYTES = 16 << 10


def find_password(environment: Mapping[str, str]) -> str | None:
    """The password in the file that the environment names, or in the environment itself.

    None if it has neither. A newline at the file's end does not count. Raises StoreError.
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


# Addresses of Redis servers: what a URL may say, and what of it may be shown.


SCHEMES = ("redis", "rediss", "unix", "redis+sentinel")

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

    def tls(self) -> RedisTls:
        """The files that it names."""
        files = RedisTls(self._read("tls_ca"), self._read("tls_cert"), self._read("tls_key"))
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


# Connections to a Redis server, set up so that nothing is sent twice.


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
    if address.service is not None:
        return _by_sentinels(address, address.service, password, connection)
    ((host, port),) = address.hosts
    if address.tls is not None:
        connection |= {
            "ssl": True,
            "ssl_ca_certs": address.tls.ca,
            "ssl_certfile": address.tls.cert,
            "ssl_keyfile": address.tls.key,
        }
    return redis.Redis(host=host, port=port, **connection)


def _by_sentinels(
    address: RedisAddress, service: str, password: str | None, connection: dict[str, Any]
) -> redis.Redis:
    to_sentinels = connection | {
        "db": 0,
        "username": None,
        "password": password if address.sentinel_password else None,
    }
    sentinel: Any = Sentinel(  # type: ignore[no-untyped-call]
        list(address.hosts), sentinel_kwargs=to_sentinels, **connection
    )
    client: redis.Redis = sentinel.master_for(service)
    return client


# What errors of Redis and of the way to it mean for whoever uses a store.


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


def translated(shown: str, error: redis.RedisError) -> StoreUnavailable:
    """One sentence about the server at the address shown; nothing of the request is in it."""
    return StoreUnavailable(f"Redis at {shown} {_meaning(error)}")


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


# The way to a Redis server, whose errors are one sentence each.


_Answer = TypeVar("_Answer")

Argument = str | bytes | int
Command = Sequence[Argument]


class RedisConnection:
    """Asks a server, from any thread. Methods raise StoreUnavailable; nothing is sent twice."""

    def __init__(
        self,
        address: RedisAddress,
        password: str | None,
        *,
        connect_seconds: float,
        answer_seconds: float,
    ) -> None:
        """Connects when it is first used. See `new_client`."""
        self.shown = address.shown
        self._client = new_client(
            address, password, connect_seconds=connect_seconds, answer_seconds=answer_seconds
        )

    def ask(self, *command: Argument) -> Any:
        """The answer to one command."""
        with self._translating():
            return self._client.execute_command(*command)  # type: ignore[no-untyped-call]

    def ask_all(self, commands: Sequence[Command], *, at_once: bool) -> list[Any]:
        """The answers to some commands, sent together; `at_once`: as they are at one moment.

        The first that is an error is raised.
        """
        with self._translating(), self._client.pipeline(transaction=at_once) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            # The pipeline's own way of raising writes the whole request into the message.
            answers = pipeline.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, redis.RedisError):
                    raise answer
            return answers

    def with_client(self, call: Callable[[redis.Redis], _Answer]) -> _Answer:
        """What a call that needs the client itself returns."""
        with self._translating():
            return call(self._client)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except redis.RedisError as error:
            raise translated(self.shown, error) from error


def script_call(script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Command:
    """The command that carries out a Lua script."""
    return ("EVAL", script, len(keys), *keys, *arguments)
