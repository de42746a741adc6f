"""Rewrites the specification's digest in the provenance of each shipped RemyCC.

Run `python -m scripts.renew_provenance` after a change to the computation of digests or to a key of
specifications. It changes only `spec_digest`, and refuses a table whose specification no longer
draws the networks that tests/pinned/records/specimens.json has for it.
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
    """Renews one table's provenance and returns a line that reports it.

    Raises ValueError if the specification draws other networks than the pinned ones.
    """
    spec_path = folder / "spec.yaml"
    if digest_of_specification(spec_path) != pinned.get(str(spec_path.relative_to(ROOT))):
        raise ValueError(f"{folder.name}: spec.yaml no longer draws the pinned networks")
    path = folder / "provenance.json"
    provenance = json.loads(path.read_text())
    before, now = provenance["spec_digest"], content_digest(load_spec(spec_path))
    write_file(path, json.dumps({**provenance, "spec_digest": now}, indent=2) + "\n")
    return f"{folder.name}: {before[:12]} -> {now[:12]}, the same networks"


def main() -> None:
    """Renews the provenance of all shipped tables; stops at the first that is refused."""
    pinned = json.loads(RECORDS[0].path.read_text())
    for path in sorted((ROOT / "data" / "remyccs").glob("*/provenance.json")):
        print(renew(path.parent, pinned))


if __name__ == "__main__":
    try:
        main()
    except ValueError as problem:
        sys.exit(str(problem))
