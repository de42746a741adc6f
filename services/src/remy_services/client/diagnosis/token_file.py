"""Whether a token is as private as it should be."""

from __future__ import annotations

import stat
from pathlib import Path

from remy_services.client.diagnosis.finding import Check, Finding, warning
from remy_services.client.token import Token


def check_token_file(token: Token | None) -> list[Finding]:
    """A finding if other users of this machine may read the file that the token came from."""
    if token is None or not Path(token.source).is_file():
        return []
    if not Path(token.source).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return []
    return [
        warning(
            Check.TOKEN,
            f"{token.source} is open to other users of this machine",
            f"chmod 600 {token.source}",
        )
    ]
