"""Builds the site of documents in build/site; every warning, such as a dead link, is an error."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx_build

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"


def main() -> int:
    """Builds anew, since Sphinx does not repeat the warnings of a page that it keeps."""
    shutil.rmtree(SITE, ignore_errors=True)
    pickles = ROOT / "build" / "site-pickles"
    flags = ["--quiet", "--fresh-env", "--fail-on-warning"]
    places = ["--conf-dir", ROOT / "docs", "--doctree-dir", pickles, ROOT, SITE]
    status = sphinx_build([*flags, *map(str, places)])
    if status == 0:
        print(f"The site's first page is {SITE / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
