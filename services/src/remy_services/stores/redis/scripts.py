"""The Lua scripts: each is carried out by the server as one step, and kept whole or not at all."""

from __future__ import annotations

from importlib import resources

_FOLDER = resources.files("remy_services.stores.redis") / "scripts"


def _script(*parts: str) -> str:
    return "\n".join((_FOLDER / f"{part}.lua").read_text(encoding="utf-8") for part in parts)


OPEN = _script("open")
CHECK = _script("check")
BARRIER = _script("barrier")
CREATE = _script("apply", "create")
ACQUIRE = _script("acquire")
COMMIT = _script("apply", "holds", "commit")
PRUNE = _script("holds", "prune")
DELETE = _script("holds", "delete")
