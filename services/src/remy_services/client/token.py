"""The bearer token that says who a client is. It is read from a file or the environment only:
anybody on a machine may list the flags of its processes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from remy_services.client.errors import SettingsError
from remy_services.files import FileError, read_file

_MOST_BYTES = 16 << 10
# What a header of a request may hold.
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Token:
    """A token and where it was found; what is printed of it never shows the token."""

    text: str = field(repr=False)
    #: As in "REMY_FARM_TOKEN" or the name of a file.
    source: str

    def __post_init__(self) -> None:
        if not self.text:
            raise SettingsError(f"the token in {self.source} is empty")
        if not _TOKEN.fullmatch(self.text):
            raise SettingsError(
                f"the token in {self.source} has a character that tokens do not have; printable "
                "ASCII without spaces is allowed"
            )


def read_token_file(path: str) -> Token:
    """The token that is all that a file holds; space around it does not count.

    Raises SettingsError.
    """
    try:
        text = read_file(path, limit=_MOST_BYTES).decode("ascii")
    except FileError as error:
        raise SettingsError(f"the token file {error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"the token file {path} does not hold a token, but other data"
        ) from error
    return Token(text.strip(), path)
