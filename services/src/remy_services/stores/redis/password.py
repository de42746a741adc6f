"""The password of a Redis server. It is read from a file or the environment only: anybody on a
machine may list the flags of its processes."""

from __future__ import annotations

from collections.abc import Mapping

from remy_services.files import FileError, read_file
from remy_services.stores.contract import StoreError

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
