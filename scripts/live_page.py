#!/usr/bin/env python3
"""Builds the live network's page and simulator (WebAssembly), and the script of the farm's page.

The built files are committed, so that users need neither npm nor a compiler for WebAssembly.
`sources.sha256` beside them has the digests of the sources that they were built from. Tests compare
it with the present sources and, if the tools are installed, rebuild the files and compare them.

    scripts/live_page.py            rebuilds the files whose sources have changed; the pages need
                                    `npm ci` in play/, and the simulator needs PyPI's ziglang
    scripts/live_page.py --check    fails if the built files are older than their sources
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

from remy_proto.completion import complete
from remy_proto.v1 import rule_table_pb2
from remy_simulator import signals
from remy_simulator.messages import native_path_model

ROOT = Path(__file__).resolve().parent.parent
#: The directories of the built files: of the live network, and of the farm's page.
BUILT = ROOT / "library/src/remy_farm/live"
FARM = ROOT / "services/src/remy_services/web/page"
SIMULATOR = ROOT / "simulator/src"
PLAY = ROOT / "play"
#: The directories that the live network is compiled from. Others, which read files or evaluate,
#: need exceptions, which this build has not.
FOLDERS = ("core", "elements", "live", "network", "protocols", "senders", "transports")
TABLES = ("rule_table.cc", "compiled_table.cc")
#: The flags of the native build, without those that WebAssembly does not support.
FLAGS = [
    *("-target", "wasm32-wasi", "-std=c++20", "-DNDEBUG", "-ffp-contract=off", "-fno-math-errno"),
    *("-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-g0"),
]
LINK_FLAGS = ["-target", "wasm32-wasi", "-mexec-model=reactor", "-Wl,--export-dynamic", "-s"]
#: The files that are built from PLAY.
PAGES = (BUILT / "page.html", FARM / "farm.js", FARM / "farm.css")
#: Directories that are compiled for speed, because a simulation spends its time there; the others
#: are compiled for size. Results have the same bits either way.
FAST = ("elements", "network", "senders", "transports")
#: Files in these directories that are compiled for size: they run once per simulation or flow, or
#: are rarely used on the page.
SLOW = {
    *("clock", "competitive_mode", "description", "endpoint_observation", "flow_lengths"),
    "link_conditions",
    *("link_description", "live_simulation", "loss_recovery", "network", "newreno_recovery"),
    *("ns2_recovery", "omniscient", "opportunities", "path_model", "queues", "rack_recovery"),
    *("results", "tcp", "telemetry", "topology", "traffic", "traffic_switch", "transport"),
    *("fair_queueing", "fq_codel", "link_driver", "ns2_endpoint", "red", "xcp_router"),
}


def compiled() -> list[Path]:
    """Returns the C++ files in the order in which they are linked."""
    files = [path for folder in FOLDERS for path in sorted((SIMULATOR / folder).glob("*.cc"))]
    return files + [SIMULATOR / "table" / name for name in TABLES]


def sources() -> dict[str, str]:
    """Returns the SHA-256 of each file that is an input of the build, by its path."""
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
    """Returns the digests in the format of sha256sum."""
    return "".join(f"{digest}  {name}\n" for name, digest in sources().items())


def stale() -> list[str]:
    """Returns the paths of sources that have changed since the files were built."""
    lines = (BUILT / "sources.sha256").read_text(encoding="ascii").splitlines()
    before = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    now = sources()
    return sorted(name for name in before | now if before.get(name) != now.get(name))


def build_simulator(to: Path) -> None:
    """Compiles the simulator to WebAssembly. Raises CalledProcessError."""
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
    defaults = native_path_model(complete(rule_table_pb2.PathModel()))
    constants = list(defaults._asdict().items())
    command = ["node", "build.mjs", str(live), str(farm), json.dumps(names), json.dumps(constants)]
    subprocess.run(command, cwd=PLAY, check=True)


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        if changed := stale():
            sys.exit("Run `make live-page`; these sources have changed: " + ", ".join(changed))
        return
    if any(not name.startswith("play/") for name in stale()):
        build_simulator(BUILT / "simulator.wasm")
    build_pages(BUILT, FARM)
    (BUILT / "sources.sha256").write_text(listing(), encoding="ascii")


if __name__ == "__main__":
    main()
