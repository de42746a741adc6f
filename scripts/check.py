"""Runs what CI runs and ends with one line: `N passed, N failed`.

Lint checks (one count each), the C++ tests with the library as released and with sanitizers, and
the Python tests of every member, beside each other. Everything runs even when something before it
failed; output is shown where it helps to mend a failure. A suite in which no test ran has failed.
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
#: The tests of each C++ program are dealt out to so many processes, CPUS of which run at a time, so
#: that none has all of the slow ones.
SHARDS = min(8, 2 * CPUS)
#: And the Python tests: two of them wait, mostly, for processes that they have started.
PYTHON_PROCESSES = CPUS + 2
# What the newest release promised; `make proto-baseline` writes it.
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
    """What a part of the checks came to: how many passed, and the names of those that did not."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.passed += other.passed
        self.failures += other.failures


def lint() -> Outcome:
    """Formatting, lint, types, direction of imports, and fresh generated code."""
    checks = {
        "format of Python": ("ruff", "format", "--check", "."),
        "lint of Python": ("ruff", "check", "--quiet", "."),
        "types": ("mypy",),
        # As installed: the stub of the native module is only there.
        "types of the simulator": ("mypy", "--package", "remy_simulator"),
        "direction of imports": ("lint-imports", "--no-logo", "--no-cache"),
        "format of C++": ("clang-format", "--dry-run", "-Werror", *cpp_sources()),
        "lint of wire formats": ("buf", "lint", "proto"),
        "compatibility of wire formats": ("buf", "breaking", "proto", "--against", BASELINE),
        "freshness of generated code": ("python", "scripts/generate_proto.py", "--check"),
        "freshness of DesignJobs' schema": ("python", "-m", "scripts.design_job_crd", "--check"),
        "freshness of JSON schemas": ("python", "-m", "scripts.json_schema", "--check"),
        "freshness of dashboards": ("python", "-m", "dashboards", "--check"),
    }
    outcome = Outcome()
    for name, command in checks.items():
        status, output = quietly(command)
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
    """The C++ tests, with the library as released and with sanitizers."""
    released, outcome = released_library()
    if released is None:
        return outcome
    folder = ROOT / "build" / "sanitized"
    built = cpp_built(
        folder,
        ("remy_tests", "remy_tests_released"),
        *("-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DREMY_SANITIZE=ON", "-DREMY_BUILD_TESTS=ON"),
        f"-DREMY_RELEASED_LIBRARY={released}",
    )
    if built.failures:
        return built
    parts = [
        (folder / program, shard)
        for program in ("remy_tests_released", "remy_tests")
        for shard in range(SHARDS)
    ]
    with ThreadPoolExecutor(CPUS) as pool:
        for part in pool.map(cpp_shard, *zip(*parts, strict=True)):
            outcome.add(part)
    return outcome


def released_library() -> tuple[Path | None, Outcome]:
    """The library that `make build` compiled; compiled here where it was not."""
    wheels = ROOT / "simulator" / "build"
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    built = sorted(wheels.glob(f"{python}-*/libremy.a"), key=lambda path: path.stat().st_mtime)
    if built:
        return built[-1], Outcome()
    folder = ROOT / "build" / "release"
    outcome = cpp_built(folder, ("remy",), "-DCMAKE_BUILD_TYPE=Release")
    return None if outcome.failures else folder / "libremy.a", outcome


def cpp_built(folder: Path, targets: Sequence[str], *options: str) -> Outcome:
    """Configures and builds; what failed, if anything did."""
    for step in (
        ("cmake", "-S", "simulator", "-B", str(folder), "-G", "Ninja", *options),
        ("cmake", "--build", str(folder), "--target", *targets),
    ):
        status, output = beside_python(step)
        if status != 0:
            command = " ".join(step[:3])
            print(f"--- C++: {command}\n{output}", flush=True)
            return Outcome(failures=[f"C++: {command} failed"])
    return Outcome()


def cpp_shard(program: Path, shard: int) -> Outcome:
    """One of SHARDS parts of the tests, which GoogleTest deals out in turn."""
    report = fresh_report(f"cpp-{program.name}-{shard}")
    status, output = beside_python(
        (str(program), "--gtest_brief=1", f"--gtest_output=xml:{report}"),
        GTEST_TOTAL_SHARDS=str(SHARDS),
        GTEST_SHARD_INDEX=str(shard),
    )
    if status != 0:
        print(f"--- {program.name}, part {shard + 1} of {SHARDS}\n{output}", flush=True)
    return read_report(f"C++ {program.name}", report, status)


def beside_python(command: Sequence[str], **variables: str) -> tuple[int, str]:
    """As `quietly`, behind the Python tests, which come first."""
    return quietly(("nice", "-n", "10", *command), **variables)


def python() -> Outcome:
    """The Python tests of every member, and those that cross members."""
    report = fresh_report("python")
    # Neighbouring tests stay in one process, which starts once what they have in common.
    spread = ("-n", str(PYTHON_PROCESSES), "--dist", "worksteal")
    status = loudly(("pytest", "-q", *spread, f"--junitxml={report}", *PYTHON_TESTS))
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
    """Where a suite is to write its report; what an earlier run left there is gone."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    report = RESULTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    return report


def read_report(suite: str, report: Path, status: int) -> Outcome:
    """Counts a JUnit report; a suite that crashed, or ran nothing, has failed whatever it says."""
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


def quietly(command: Sequence[str], **variables: str) -> tuple[int, str]:
    """Runs a command at the root, with these variables; its status and all that it printed."""
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


def loudly(command: Sequence[str]) -> int:
    """Runs a command at the root, its output shown as it comes; its status."""
    return subprocess.run(
        command, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, check=False
    ).returncode


Step = Callable[[], Outcome]
PARTS: dict[str, tuple[Step, ...]] = {
    "lint": (lint,),
    "cpp": (cpp,),
    "python": (python,),
}


def announced(step: Step) -> Outcome:
    print(f"=== {step.__doc__}", flush=True)
    return step()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="run one part")
    only = parser.parse_args().only
    # A shell starts what runs in its background with Ctrl-C ignored, and so would all that is
    # started here be; the tests that interrupt programs need them to listen.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    wanted = {part: steps for part, steps in PARTS.items() if only in (None, part)}
    total = Outcome()
    # Most Python tests wait for processes that they start: C++ compiles meanwhile.
    beside = ThreadPoolExecutor(max_workers=1)
    try:
        cpp = [beside.submit(announced, step) for step in wanted.pop("cpp", ())]
        for step in chain.from_iterable(wanted.values()):
            total.add(announced(step))
        for outcome in cpp:
            total.add(outcome.result())
    finally:
        beside.shutdown(cancel_futures=True)
    if total.failures:
        print("=== Failed:", *total.failures, sep="\n  ")
    print(f"{total.passed} passed, {len(total.failures)} failed", flush=True)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
