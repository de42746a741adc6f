"""The launcher's settings as a file, which the chart writes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from remy_services.files import FileError, read_file
from remy_services.kubernetes.errors import ConfigurationError
from remy_services.kubernetes.settings import LauncherSettings

_MOST_BYTES: Final = 1 << 20


def read_settings(path: Path) -> LauncherSettings:
    """The settings in a YAML file. Raises ConfigurationError."""
    try:
        content = read_file(path, limit=_MOST_BYTES)
        settings = msgspec.yaml.decode(content, type=LauncherSettings)
    except FileError as error:
        raise ConfigurationError(str(error)) from error
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    if settings.minimum_workers > settings.maximum_workers:
        raise ConfigurationError(
            f"{path}: minimum_workers is {settings.minimum_workers}, but must be at most "
            f"maximum_workers, which is {settings.maximum_workers}"
        )
    try:
        container = settings.template["spec"]["template"]["spec"]["containers"][0]
    except (KeyError, IndexError, TypeError):
        container = None
    if not isinstance(container, dict):
        raise ConfigurationError(f"{path}: template must be a Job whose pods have a container")
    return settings
