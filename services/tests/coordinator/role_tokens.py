"""Tokens for each role, and the coordinator's tokens file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from remy_services.coordinator.access import Role

TOKENS = {role: f"token-of-the-{role}-which-is-long" for role in Role}


def tokens_file(folder: Path) -> Path:
    """Writes the tokens file; names are viewer-1, submitter-1 and so on."""
    lines = ["tokens:"]
    for role, token in TOKENS.items():
        digest = hashlib.sha256(token.encode()).hexdigest()
        lines.append(f"  - {{name: {role}-1, role: {role}, sha256: {digest}}}")
    path = folder / "tokens.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def bearer(token: str) -> list[tuple[str, str]]:
    """Returns the call metadata with a token."""
    return [("authorization", f"Bearer {token}")]
