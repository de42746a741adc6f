"""Installs each member's wheel with only its declared dependencies, and runs its tests there.

For each member, in this order:

1. The wheels of all members are built; the simulator's is taken from `make build`.
2. The member's wheel and its dependencies are installed in an empty environment, in the versions of
   `requirements/`. Other members that it depends on are installed from their wheels.
3. Every module of the wheel is imported. A module may fail only if the missing package belongs to
   one of the member's extras.
4. The group `test` of the member's pyproject.toml is installed, and the member's tests run in a
   copy of the repository without the members' sources.

    python scripts/wheels_alone.py [--imports] [MEMBER...]

`--imports` stops after the third step, which takes half a minute; all steps take about eight
minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).with_name("uv")
#: The distribution of each member.
MEMBERS = {
    "proto": "remy-farm-proto",
    "simulator": "remy-simulator",
    "rpc": "remy-farm-rpc",
    "library": "remy-farm",
    "laboratory": "remy-farm-laboratory",
    "services": "remy-farm-services",
    "workers": "remy-farm-worker",
}
SOURCES = [f"{member}/src" for member in MEMBERS] + ["simulator/python"]
#: A program that prints which modules cannot be imported, and fails if no extra explains that.
IMPORT_ALL = """
import importlib, importlib.metadata, re, sys
distribution = importlib.metadata.distribution(sys.argv[1])
normal = lambda name: re.sub(r"[-_.]+", "-", name).lower()
extras = {
    normal(re.match(r"[A-Za-z0-9._-]+", each)[0])
    for each in distribution.requires or () if "extra ==" in each
}
tops = {"grpc": "grpcio", "remy_laboratory": "remy-farm-laboratory",
        "remy_services": "remy-farm-services"}
names = sorted(
    str(path.with_suffix("")).replace("/", ".").removesuffix(".__init__")
    for path in distribution.files
    if path.suffix == ".py" and path.name != "__main__.py" and ".dist-info" not in str(path)
)
status = 0
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        top = (error.name or "").partition(".")[0]
        is_extra = normal(tops.get(top, top)) in extras
        status |= not is_extra
        print(f"  {name} needs {top},", "of an extra" if is_extra else "which nothing declares")
print(f"  {len(names)} modules")
sys.exit(status)
"""


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> int:
    return subprocess.run(command, cwd=cwd, env=os.environ | variables, check=False).returncode


def build_wheels(folder: Path) -> dict[str, Path]:
    """Builds all wheels into a directory; returns the wheel of each distribution."""
    release = (str(ROOT / "scripts/release"), "--out", str(folder), "python")
    subprocess.run(release, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    for simulator in (ROOT / ".venv/wheel").glob("*.whl"):
        shutil.copy(simulator, folder)
    return {path.name.split("-")[0].replace("_", "-"): path for path in folder.glob("*.whl")}


def copy_without_sources(folder: Path) -> None:
    """Copies the repository's files except the members' sources."""
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and not any(name.startswith(f"{each}/") for each in SOURCES):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def check(member: str, folder: Path, constraints: Sequence[str], only_imports: bool) -> str | None:
    """Makes a member's environment and checks it there; returns what failed, or None."""
    environment = folder / "environments" / member
    python = environment / "bin" / "python"
    if run(UV, "venv", "--quiet", "--python", sys.executable, environment):
        return "no environment"
    install: list[str | Path] = [
        *(UV, "pip", "install", "--quiet", "--no-sources", "--python", python),
        *constraints,
    ]
    if run(*install, MEMBERS[member]):
        return "installation"
    if run(python, "-c", IMPORT_ALL, MEMBERS[member], cwd=folder):
        return "imports"
    if only_imports:
        return None
    tests = folder / "repository"
    if run(*install, "pytest-xdist", "--group", f"{tests / member / 'pyproject.toml'}:test"):
        return "installation of what tests need"
    processes = str(len(os.sched_getaffinity(0)) + 1)
    flags = ("-q", "-p", "no:cacheprovider", "-n", processes, "--dist", "worksteal")
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    if run(python, "-m", "pytest", *flags, f"{member}/tests", cwd=tests, PATH=path):
        return "tests"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--imports", action="store_true", help="stop before the tests")
    parser.add_argument(
        "members", nargs="*", metavar="MEMBER", help=f"one or more of {', '.join(MEMBERS)}"
    )
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.members} - {*MEMBERS}):
        parser.error(f"no member {', '.join(unknown)}; there are {', '.join(MEMBERS)}")
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheels = build_wheels(folder / "wheels")
        wheel_list = folder / "members.txt"
        wheel_list.write_text(
            "".join(f"{name} @ {path.as_uri()}\n" for name, path in wheels.items())
        )
        locks = ("services", "workers", "dev")
        constraints = [
            word
            for path in (wheel_list, *(ROOT / "requirements" / f"{lock}.txt" for lock in locks))
            for word in ("--constraint", str(path))
        ]
        copy_without_sources(folder / "repository")
        for member in arguments.members or MEMBERS:
            print(f"=== {MEMBERS[member]}, alone", flush=True)
            began = time.monotonic()
            failed = check(member, folder, constraints, arguments.imports)
            failures += [f"{member} ({failed})"] if failed else []
            outcome = f"FAILED: {failed}" if failed else "passed"
            print(f"    {outcome}, {time.monotonic() - began:.0f} s", flush=True)
    print(f"Failed: {', '.join(failures)}" if failures else "Each wheel stands alone.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
