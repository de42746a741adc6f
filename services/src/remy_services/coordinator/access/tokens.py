"""The tokens that are let in, from a file."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from dataclasses import dataclass
from pathlib import Path

from remy_services.coordinator.access.caller import Caller
from remy_services.coordinator.access.roles import Role
from remy_services.files import FileError, read_file
from remy_services.spec import SpecError
from remy_services.spec.text import Tree, read_yaml

_MOST_BYTES = 1 << 20
_MOST_TOKEN_BYTES = 4096
_SHORTEST_TOKEN = 16
_KEYS = ("name", "role", "sha256", "file")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,100}")


@dataclass(frozen=True)
class _Entry:
    caller: Caller
    sha256: bytes


class Tokens:
    """Who has which token, known by hash alone."""

    def __init__(self, entries: tuple[_Entry, ...], paths: tuple[Path, ...]) -> None:
        self._entries = entries
        #: The files that they come from.
        self.paths = paths

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Tokens:
        """The tokens in a YAML or JSON file, and in the files that it names.

        The file holds a mapping with the key `tokens`: a list of mappings with `name`, `role`, and
        either `sha256` (of the token, in hexadecimal) or `file` (which holds the token alone, and
        is looked for beside this file). Raises FileError.
        """
        source = Path(path)
        entries, paths = [], [source]
        for place, tree in enumerate(_entries(source)):
            entry, token_file = _entry(source, f"tokens[{place}]", tree)
            entries.append(entry)
            paths += [token_file] if token_file is not None else []
        digests = {entry.sha256 for entry in entries}
        if len(digests) < len(entries):
            raise FileError(f"{source} has one token for several names; each needs its own")
        return cls(tuple(entries), tuple(paths))

    def caller_with(self, token: str) -> Caller | None:
        """Whose token it is; None if it is nobody's.

        Takes the same time whichever it is: hashes are compared, and all of them.
        """
        digest = hashlib.sha256(token.encode()).digest()
        found = None
        for entry in self._entries:
            if hmac.compare_digest(entry.sha256, digest):
                found = entry.caller
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
        raise FileError(f"{path}: {place} must be a mapping with keys out of {', '.join(_KEYS)}")
    name, role = tree.get("name"), tree.get("role")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FileError(
            f"{path}: {place}.name must be 1 to 100 letters, digits and characters out of . _ @ + -"
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
        return _Entry(caller, bytes.fromhex(digest)), None
    token_file = path.parent / str(tree["file"])
    return _Entry(caller, hashlib.sha256(_token_in(token_file)).digest()), token_file


def _token_in(path: Path) -> bytes:
    token = read_file(path, limit=_MOST_TOKEN_BYTES).strip()
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or len(token.split()) != 1:
        raise FileError(
            f"{path} must hold a token: at least {_SHORTEST_TOKEN} ASCII characters without spaces"
        )
    return token
