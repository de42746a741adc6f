"""Runs what CI runs and ends with one line: `N passed, N failed`.

It runs the lint checks (each counts as one), the C++ tests against the release build and with
sanitizers, and all Python tests, in parallel. A failure does not stop the other checks; the output
of what failed is shown. A suite in which no test ran has failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-results"
TOOLS = Path(sys.executable).parent
CPUS = len(os.sched_getaffinity(0))
#: Each C++ test program is split into this many shards, of which CPUS run at a time. More shards
#: than CPUs even out the slow tests.
SHARDS = min(8, 2 * CPUS)
#: More processes than CPUs, because many Python tests mostly wait for processes that they started.
PYTHON_PROCESSES = CPUS + 2
# The wire formats of the newest release; `make proto-baseline` writes this file.
BASELINE = "proto/baseline.binpb"
PYTHON_TESTS = (
    "proto/tests",
    "simulator/tests",
    "library/tests",
    "rpc/tests",
    "services/tests",
    "laboratory/tests",
    "workers/tests",
    "tests",
)


@dataclass
class Outcome:
    """The result of some checks: how many passed, and the names of those that failed."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.passed += other.passed
        self.failures += other.failures


def lint() -> Outcome:
    """Lint: formatting, types, direction of imports, and freshness of generated files"""
    checks = {
        "format of Python": ("ruff", "format", "--check", "."),
        "lint of Python": ("ruff", "check", "--quiet", "."),
        "types": ("mypy",),
        # Checks the installed package, because only that has the native module's stub.
        "types of the simulator": ("mypy", "--package", "remy_simulator"),
        "direction of imports": ("lint-imports", "--no-logo", "--no-cache"),
        "format of C++": ("clang-format", "--dry-run", "-Werror", *cpp_sources()),
        "lint of wire formats": ("buf", "lint", "proto"),
        "compatibility of wire formats": ("buf", "breaking", "proto", "--against", BASELINE),
        "freshness of generated code": ("python", "scripts/generate_proto.py", "--check"),
        "freshness of DesignJobs' schema": ("python", "-m", "scripts.design_job_crd", "--check"),
        "freshness of JSON schemas": ("python", "-m", "scripts.json_schema", "--check"),
        "freshness of dashboards": ("python", "-m", "dashboards", "--check"),
        "documents as a site": ("python", "-m", "scripts.build_site"),
    }
    outcome = Outcome()
    for name, command in checks.items():
        status, output = run_captured(command)
        if status == 0:
            outcome.passed += 1
        else:
            outcome.failures.append(name)
            print(f"--- {name}: {' '.join(command[:4])}\n{output}")
    return outcome


def cpp_sources() -> list[str]:
    folder = ROOT / "simulator"
    return [
        str(path.relative_to(ROOT))
        for suffix in ("h", "cc")
        for path in sorted(folder.rglob(f"*.{suffix}"))
        if path.relative_to(folder).parts[0] != "build"
    ]


def cpp() -> Outcome:
    """C++ tests, against the release build and with sanitizers"""
    released, outcome = release_build_library()
    if released is None:
        return outcome
    folder = ROOT / "build" / "sanitized"
    built = build_cpp(
        folder,
        ("remy_tests", "remy_tests_release_build"),
        *("-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DREMY_SANITIZE=ON", "-DREMY_BUILD_TESTS=ON"),
        f"-DREMY_RELEASE_BUILD_LIBRARY={released}",
    )
    if built.failures:
        return built
    parts = [
        (folder / program, shard)
        for program in ("remy_tests_release_build", "remy_tests")
        for shard in range(SHARDS)
    ]
    with ThreadPoolExecutor(CPUS) as pool:
        for part in pool.map(run_cpp_shard, *zip(*parts, strict=True)):
            outcome.add(part)
    return outcome


def release_build_library() -> tuple[Path | None, Outcome]:
    """Returns the library that `make build` compiled, or compiles it if there is none."""
    wheels = ROOT / "simulator" / "build"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    built = sorted(wheels.glob(f"{python}-*/libremy.a"), key=lambda path: path.stat().st_mtime)
    if built:
        return built[-1], Outcome()
    folder = ROOT / "build" / "release"
    outcome = build_cpp(folder, ("remy",), "-DCMAKE_BUILD_TYPE=Release")
    return None if outcome.failures else folder / "libremy.a", outcome


def build_cpp(folder: Path, targets: Sequence[str], *options: str) -> Outcome:
    """Configures and builds targets; the outcome is empty if that succeeds."""
    for step in (
        ("cmake", "-S", "simulator", "-B", str(folder), "-G", "Ninja", *options),
        ("cmake", "--build", str(folder), "--target", *targets),
    ):
        status, output = run_at_low_priority(step)
        if status != 0:
            command = " ".join(step[:3])
            print(f"--- C++: {command}\n{output}", flush=True)
            return Outcome(failures=[f"C++: {command} failed"])
    return Outcome()


def run_cpp_shard(program: Path, shard: int) -> Outcome:
    """Runs one of the SHARDS shards of a GoogleTest program."""
    report = fresh_report(f"cpp-{program.name}-{shard}")
    status, output = run_at_low_priority(
        (str(program), "--gtest_brief=1", f"--gtest_output=xml:{report}"),
        GTEST_TOTAL_SHARDS=str(SHARDS),
        GTEST_SHARD_INDEX=str(shard),
    )
    if status != 0:
        print(f"--- {program.name}, shard {shard + 1} of {SHARDS}\n{output}", flush=True)
    return read_report(f"C++ {program.name}", report, status)


def run_at_low_priority(command: Sequence[str], **variables: str) -> tuple[int, str]:
    """Runs a command like `run_captured`, but lets the Python tests have the CPUs first."""
    return run_captured(("nice", "-n", "10", *command), **variables)


def python() -> Outcome:
    """Python tests of every member, and those that cross members"""
    report = fresh_report("python")
    # With worksteal, neighbouring tests mostly share a process, and so their fixtures.
    parallel = ("-n", str(PYTHON_PROCESSES), "--dist", "worksteal")
    status = run_shown(("pytest", "-q", *parallel, f"--junitxml={report}", *PYTHON_TESTS))
    outcome = read_report("Python", report, status)
    if report.exists():
        files = [case.get("file", "") for case in ElementTree.parse(report).iter("testcase")]
        outcome.failures += [
            f"Python: no test ran in {folder}"
            for folder in PYTHON_TESTS
            if not any(file.startswith(f"{folder}/") for file in files)
        ]
    return outcome


def fresh_report(name: str) -> Path:
    """Returns the path of a suite's report, and removes the report of an earlier run."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    report = RESULTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    return report


def read_report(suite: str, report: Path, status: int) -> Outcome:
    """Counts the tests of a JUnit report.

    A suite has failed if it ended with another status than 0 or ran no test, whatever it reports.
    """
    outcome = Outcome()
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{suite}: {case.get('classname')}.{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                outcome.failures.append(name)
            elif case.find("skipped") is None and case.get("status") != "notrun":
                outcome.passed += 1
    if status != 0 and not outcome.failures:
        outcome.failures.append(f"{suite}: ended with status {status}")
    if status == 0 and outcome.passed == 0:
        outcome.failures.append(f"{suite}: no test ran")
    return outcome


def environment() -> dict[str, str]:
    return os.environ | {
        "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run_captured(command: Sequence[str], **variables: str) -> tuple[int, str]:
    """Runs a command in the root directory; returns its status and its output.

    `variables` are added to the environment.
    """
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment() | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def run_shown(command: Sequence[str]) -> int:
    """Runs a command in the root directory, shows its output as it appears, returns its status."""
    return subprocess.run(
        command, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, check=False
    ).returncode


Step = Callable[[], Outcome]
PARTS: dict[str, tuple[Step, ...]] = {
    "lint": (lint,),
    "cpp": (cpp,),
    "python": (python,),
}


def announce_and_run(step: Step) -> Outcome:
    """Prints the step's docstring as a heading and runs the step."""
    print(f"=== {step.__doc__}", flush=True)
    return step()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="run one part")
    only = parser.parse_args().only
    # A shell starts background commands with SIGINT ignored, and child processes inherit that.
    # Tests that interrupt programs need the default.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    wanted = {part: steps for part, steps in PARTS.items() if only in (None, part)}
    total = Outcome()
    # Many Python tests wait for processes that they start: C++ compiles meanwhile.
    background = ThreadPoolExecutor(max_workers=1)
    try:
        cpp = [background.submit(announce_and_run, step) for step in wanted.pop("cpp", ())]
        for step in chain.from_iterable(wanted.values()):
            total.add(announce_and_run(step))
        for outcome in cpp:
            total.add(outcome.result())
    finally:
        background.shutdown(cancel_futures=True)
    if total.failures:
        print("=== Failed:", *total.failures, sep="\n  ")
    print(f"{total.passed} passed, {len(total.failures)} failed", flush=True)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
