#!/usr/bin/env python3
"""Builds the live network's page and simulator (WebAssembly), and the script of the farm's page.

The built files are in the repository, so that nobody who uses them needs npm or a compiler for
WebAssembly. `sources.sha256` beside them says what they were built of; tests compare it with the
sources, and what is built with the files where the tools are there.

    scripts/live_page.py            builds what is not of these sources (needs npm ci in play/, and
                                    for the simulator PyPI's ziglang)
    scripts/live_page.py --check    says whether what is built is of these sources
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from multiprocessing.pool import ThreadPool
from pathlib import Path

from remy_simulator import signals

ROOT = Path(__file__).resolve().parent.parent
#: The live network, and the farm's page.
BUILT = ROOT / "library/src/remy_farm/live"
FARM = ROOT / "services/src/remy_services/web/page"
SIMULATOR = ROOT / "simulator/src"
PLAY = ROOT / "play"
#: All that the network needs; what reads and writes files and evaluates needs exceptions.
FOLDERS = ("core", "elements", "live", "network", "protocols", "senders")
TABLES = ("rule_table.cc", "compiled_table.cc")
#: The simulator's own, but for what a browser has none of.
FLAGS = [
    *("-target", "wasm32-wasi", "-std=c++20", "-DNDEBUG", "-ffp-contract=off", "-fno-math-errno"),
    *("-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-g0"),
]
LINK_FLAGS = ["-target", "wasm32-wasi", "-mexec-model=reactor", "-Wl,--export-dynamic", "-s"]
#: What is built of PLAY.
PAGES = (BUILT / "page.html", FARM / "farm.js", FARM / "farm.css")
#: Where a simulation spends its time; the rest is made small, with the same bits.
FAST = ("elements", "network", "senders")
#: Of these folders, what is asked once a run or once a flow, and what few ask for on a page.
SLOW = {
    *("bodies", "clock", "description", "flow_lengths", "link_conditions", "link_description"),
    *("omniscient", "opportunities", "queues", "traffic"),
    *("fair_queueing", "fq_codel", "link_driver", "ns2_body", "red", "xcp_router"),
}


def compiled() -> list[Path]:
    """The C++ files, in the order in which they are linked."""
    files = [path for folder in FOLDERS for path in sorted((SIMULATOR / folder).glob("*.cc"))]
    return files + [SIMULATOR / "table" / name for name in TABLES]


def sources() -> dict[str, str]:
    """Digests of all that either file is built of, by its name in the repository."""
    headers = [path for folder in (*FOLDERS, "table") for path in (SIMULATOR / folder).glob("*.h")]
    page = [*PLAY.glob("src/*"), *PLAY.glob("farm/*")]
    page += [PLAY / name for name in ("build.mjs", "package-lock.json")]
    page.append(PLAY / "template.html")
    files = [*compiled(), *headers, *page, Path(__file__)]
    return {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


def listing() -> str:
    """The digests as sha256sum prints them."""
    return "".join(f"{digest}  {name}\n" for name, digest in sources().items())


def stale() -> list[str]:
    """Names of sources that are not those that the built files were made of."""
    lines = (BUILT / "sources.sha256").read_text(encoding="ascii").splitlines()
    before = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    now = sources()
    return sorted(name for name in before | now if before.get(name) != now.get(name))


def build_simulator(to: Path) -> None:
    """Raises CalledProcessError."""
    zig = [sys.executable, "-m", "ziglang", "c++"]
    with tempfile.TemporaryDirectory() as folder, ThreadPool(os.cpu_count()) as pool:

        def compile_one(path: Path) -> str:
            is_fast = path.parent.name in FAST and path.stem not in SLOW
            level = "-O3" if is_fast else "-Os"
            out = f"{folder}/{path.parent.name}-{path.stem}.o"
            name = str(path.relative_to(SIMULATOR))
            command = [*zig, *FLAGS, level, "-I.", "-c", name, "-o", out]
            subprocess.run(command, cwd=SIMULATOR, check=True)
            return out

        objects = pool.map(compile_one, compiled(), chunksize=1)
        subprocess.run([*zig, *LINK_FLAGS, *objects, "-o", str(to)], cwd=folder, check=True)


def build_pages(live: Path, farm: Path) -> None:
    """Bundles the live network's page into a folder, and the farm's script and style into another.

    Raises CalledProcessError.
    """
    names = [[axis.form(kind).name for kind in (False, True)] for axis in signals.AXES]
    command = ["node", "build.mjs", str(live), str(farm), json.dumps(names)]
    subprocess.run(command, cwd=PLAY, check=True)


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        if found := stale():
            sys.exit("Built of other sources; run make live-page: " + ", ".join(found))
        return
    if any(not name.startswith("play/") for name in stale()):
        build_simulator(BUILT / "simulator.wasm")
    build_pages(BUILT, FARM)
    (BUILT / "sources.sha256").write_text(listing(), encoding="ascii")


if __name__ == "__main__":
    main()
