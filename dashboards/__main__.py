"""Writes `generated/` and docs/reference/metrics.md; with --check fails if they are stale."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.compare import compare
from dashboards.farm import farm
from dashboards.job import job
from dashboards.metrics_page import metrics_page
from dashboards.reliability import reliability

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ROOT / "dashboards" / "generated"
METRICS_PAGE = ROOT / "docs" / "reference" / "metrics.md"
DASHBOARDS = {"farm": farm, "job": job, "compare": compare, "reliability": reliability}


def wanted_files() -> dict[Path, str]:
    """The contents of all generated files, by path."""
    boards = {
        GENERATED / f"{name}.json": json.dumps(make(), cls=JSONEncoder, indent=1, sort_keys=True)
        for name, make in DASHBOARDS.items()
    }
    return {path: f"{text}\n" for path, text in boards.items()} | {METRICS_PAGE: metrics_page()}


def stale_files() -> list[Path]:
    """Generated files that are missing, out of date, or no longer generated."""
    wanted = wanted_files()
    present = {
        path: path.read_text(encoding="utf-8")
        for path in (*GENERATED.glob("*.json"), METRICS_PAGE)
        if path.exists()
    }
    return sorted(
        path for path in wanted.keys() | present.keys() if wanted.get(path) != present.get(path)
    )


def main() -> int:
    """Writes stale files; with --check, only returns 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if stale")
    stale = stale_files()
    if parser.parse_args().check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run `make dashboards`.")
        return 1 if stale else 0
    wanted = wanted_files()
    for path in stale:
        if path in wanted:
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
