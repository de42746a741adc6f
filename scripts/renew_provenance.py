"""Rewrites the specification's digest in the provenance of each shipped RemyCC.

`python -m scripts.renew_provenance` after a change of how digests are computed, or of a name in
specifications. It refuses a table whose specification draws other networks than those that are
pinned (tests/pinned/records/specimens.json), and changes nothing but `spec_digest`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from remy_farm.files import write_file
from remy_farm.specification import content_digest, load_spec
from tests.pinned.specimens import RECORDS, digest_of_specification

ROOT: Final = Path(__file__).resolve().parent.parent


def renew(folder: Path, pinned: dict[str, str]) -> str:
    """Renews one table's provenance, and says what became of it. Raises ValueError."""
    spec_path = folder / "spec.yaml"
    if digest_of_specification(spec_path) != pinned.get(str(spec_path.relative_to(ROOT))):
        raise ValueError(f"{folder.name}: spec.yaml draws other networks than the table was for")
    path = folder / "provenance.json"
    provenance = json.loads(path.read_text())
    before, now = provenance["spec_digest"], content_digest(load_spec(spec_path))
    write_file(path, json.dumps({**provenance, "spec_digest": now}, indent=2) + "\n")
    return f"{folder.name}: {before[:12]} -> {now[:12]}, the same networks"


def main() -> None:
    """Renews all, and stops at the first that may not be."""
    pinned = json.loads(RECORDS[0].path.read_text())
    for path in sorted((ROOT / "data" / "remyccs").glob("*/provenance.json")):
        print(renew(path.parent, pinned))


if __name__ == "__main__":
    try:
        main()
    except ValueError as problem:
        sys.exit(str(problem))
