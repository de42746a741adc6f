"""The configuration file of the client commands: a YAML mapping with the keys of `Given`."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from remy_services.client.errors import SettingsError
from remy_services.client.settings import Given
from remy_services.files import FileError, read_file
from remy_services.spec import SpecError
from remy_services.spec.text import read_yaml

CONFIGURATION_VARIABLE = "REMY_FARM_CONFIG"

_MOST_BYTES = 64 << 10
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
        tree = read_yaml(read_file(path, limit=_MOST_BYTES).decode(), str(path))
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
