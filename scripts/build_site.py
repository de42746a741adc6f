"""Builds the site of documents; every warning, such as a dead link, is an error."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import main as sphinx_build

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Builds anew, since Sphinx does not repeat the warnings of a page that it keeps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", metavar="DIR")
    site = parser.parse_args().out
    shutil.rmtree(site, ignore_errors=True)
    with tempfile.TemporaryDirectory() as pickles:
        flags = ["--quiet", "--fresh-env", "--fail-on-warning"]
        places = ["--conf-dir", ROOT / "docs", "--doctree-dir", pickles, ROOT, site]
        status = sphinx_build([*flags, *map(str, places)])
    if status == 0:
        print(f"The site's first page is {site / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
