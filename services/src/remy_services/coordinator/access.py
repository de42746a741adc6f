"""Access control: tokens, roles, and the methods that each role may call."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

import grpc

from remy_farm.files import FileError, read_file
from remy_farm.specification import SpecError
from remy_farm.specification.reading import Tree, read_yaml
from remy_services.coordinator.refusals import CallRefused


class Role(StrEnum):
    """Role of a token."""

    #: May read all jobs.
    VIEWER = "viewer"
    #: May also submit jobs, and change its own.
    SUBMITTER = "submitter"
    #: May also change the jobs of others.
    ADMIN = "admin"
    #: May evaluate tasks only; may not read jobs.
    WORKER = "worker"


_VIEWERS: Final = frozenset({Role.VIEWER, Role.SUBMITTER, Role.ADMIN})
_SUBMITTERS: Final = frozenset({Role.SUBMITTER, Role.ADMIN})
_WORKERS: Final = frozenset({Role.WORKER, Role.ADMIN})
#: Methods with this value need no token.
OPEN: Final[frozenset[Role]] = frozenset()

DESIGN_SERVICE: Final = "/remy_farm.v1.DesignService/"
_READING: Final = (
    *("GetJob", "ListJobs", "WatchJob", "GetRemyCC"),
    *("ListEpochs", "ListWorkerLines", "CompareJobs", "ExportJob", "GetServerInfo"),
    "ReadEvaluation",
)
_CHANGING: Final = (
    *("SubmitJob", "PauseJob", "ResumeJob", "CancelJob"),
    *("ExtendJob", "ForkJob", "DeleteJob", "ImportJob", "UploadTrace"),
    "SubmitEvaluation",
)

#: Roles that may call each method. Unlisted methods are refused. Whether the caller may change a
#: #: particular job is checked by the handler.
METHOD_ROLES: Final[Mapping[str, frozenset[Role]]] = MappingProxyType(
    {
        **{DESIGN_SERVICE + method: _VIEWERS for method in _READING},
        **{DESIGN_SERVICE + method: _SUBMITTERS for method in _CHANGING},
        "/remy_farm.v1.WorkerService/Work": _WORKERS,
        "/remy_farm.v1.WorkerService/ReadTrace": _WORKERS,
        # Health probes have no token, and the health service reveals nothing about jobs.
        "/grpc.health.v1.Health/Check": OPEN,
        "/grpc.health.v1.Health/List": OPEN,
        "/grpc.health.v1.Health/Watch": OPEN,
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _VIEWERS | _WORKERS,
    }
)


@dataclass(frozen=True)
class Caller:
    """An authenticated caller."""

    #: Becomes the owner of submitted jobs.
    name: str
    role: Role


_caller: ContextVar[Caller] = ContextVar("caller")


def set_caller(caller: Caller) -> None:
    """Sets the caller of the current call."""
    _caller.set(caller)


def current_caller() -> Caller:
    """Returns the caller of the current call. Raises LookupError in methods without tokens."""
    return _caller.get()


_MOST_BYTES = 1 << 20
_MOST_TOKEN_BYTES = 4096
_SHORTEST_TOKEN = 16
_KEYS = ("name", "role", "sha256", "file")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,100}")


#: The SHA-256 of a token, and its caller.
_Entry = tuple[bytes, Caller]


class Tokens:
    """Maps tokens to callers. Only hashes of tokens are kept."""

    def __init__(self, entries: tuple[_Entry, ...], paths: tuple[Path, ...]) -> None:
        self._entries = entries
        #: The files that the tokens were read from.
        self.paths = paths

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Tokens:
        """Reads the tokens of a YAML or JSON file, and of the token files that it names.


        The file holds a mapping with the key `tokens`: a list of mappings with `name`, `role`, and
        either `sha256` (hash of the token, in hexadecimal) or `file` (path of a file with only the
        token, relative to this file). Raises FileError.
        """
        source = Path(path)
        entries, paths = [], [source]
        for place, tree in enumerate(_entries(source)):
            entry, token_file = _entry(source, f"tokens[{place}]", tree)
            entries.append(entry)
            paths += [token_file] if token_file is not None else []
        if len({digest for digest, _ in entries}) < len(entries):
            raise FileError(f"{source} gives several names the same token; each needs its own")
        return cls(tuple(entries), tuple(paths))

    def find_caller(self, token: str) -> Caller | None:
        """Returns the caller with this token, or None.

        Takes constant time: all hashes are compared, each in constant time.
        """
        digest = hashlib.sha256(token.encode()).digest()
        found = None
        for known, caller in self._entries:
            if hmac.compare_digest(known, digest):
                found = caller
        return found


def _entries(path: Path) -> list[Tree]:
    try:
        tree = read_yaml(read_file(path, limit=_MOST_BYTES).decode(), str(path))
    except SpecError as error:
        raise FileError(str(error)) from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text") from error
    entries = tree.get("tokens") if isinstance(tree, dict) and set(tree) == {"tokens"} else None
    if not isinstance(entries, list):
        raise FileError(f"{path} must be a mapping with the key tokens, a list")
    return entries


def _entry(path: Path, place: str, tree: Tree) -> tuple[_Entry, Path | None]:
    if not isinstance(tree, dict) or not set(tree) <= set(_KEYS):
        raise FileError(f"{path}: {place} must be a mapping with keys from {', '.join(_KEYS)}")
    name, role = tree.get("name"), tree.get("role")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FileError(
            f"{path}: {place}.name must be 1 to 100 letters, digits or the characters . _ @ + -"
        )
    if role not in tuple(Role):
        raise FileError(f"{path}: {place}.role must be one of {', '.join(Role)}")
    if ("sha256" in tree) == ("file" in tree):
        raise FileError(f"{path}: {place} must have either sha256 or file")
    caller = Caller(name, Role(str(role)))
    if "sha256" in tree:
        digest = tree["sha256"]
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise FileError(f"{path}: {place}.sha256 must be 64 hexadecimal digits")
        return (bytes.fromhex(digest), caller), None
    token_file = path.parent / str(tree["file"])
    return (hashlib.sha256(_token_in(token_file)).digest(), caller), token_file


def _token_in(path: Path) -> bytes:
    token = read_file(path, limit=_MOST_TOKEN_BYTES).strip()
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or len(token.split()) != 1:
        raise FileError(
            f"{path} must contain a token: at least {_SHORTEST_TOKEN} ASCII characters without "
            "spaces"
        )
    return token


_SCHEME = "bearer "
#: The caller of a server without tokens.
LOCAL = Caller("local", Role.ADMIN)


@dataclass
class Authorizer:
    """Authenticates and authorizes calls.

    Without tokens (None), every caller is an administrator.
    """

    tokens: Tokens | None

    def authorize(self, method: str, metadata: Iterable[tuple[str, str | bytes]]) -> Caller | None:
        """Returns the caller of a method, or None for a method without token.

        Raises CallRefused.
        """
        roles = METHOD_ROLES.get(method)
        if roles is OPEN:
            return None
        caller = LOCAL if self.tokens is None else _authenticate(self.tokens, metadata)
        if roles is None:
            raise CallRefused(grpc.StatusCode.UNIMPLEMENTED, "this server has no such method")
        if caller.role not in roles:
            raise CallRefused(
                grpc.StatusCode.PERMISSION_DENIED,
                f"{caller.name} has role {caller.role}, but {method.rpartition('/')[2]} requires "
                f"one of {', '.join(sorted(roles))}",
            )
        return caller


def _authenticate(tokens: Tokens, metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
    given = [value for key, value in metadata if key == "authorization"]
    if len(given) != 1 or not isinstance(given[0], str):
        raise _not_authenticated("the call carries no token")
    scheme, token = given[0][: len(_SCHEME)], given[0][len(_SCHEME) :]
    caller = tokens.find_caller(token.strip()) if scheme.lower() == _SCHEME else None
    if caller is None:
        raise _not_authenticated("the call's token is not valid on this farm")
    return caller


def _not_authenticated(message: str) -> CallRefused:
    return CallRefused(grpc.StatusCode.UNAUTHENTICATED, message)
