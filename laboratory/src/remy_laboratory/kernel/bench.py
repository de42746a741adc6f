"""The bench as calls: tables checked, verified and measured as congestion control of Linux."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from remy_farm.analysis import wording
from remy_farm.analysis.wording import count, several
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Plot, Rows, Tabular, rows_like, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.files import make_folder, write_file
from remy_farm.specification.checking import check_one_table
from remy_laboratory.kernel.checks import CheckResult, check_kernel, check_scores, check_table
from remy_laboratory.kernel.differential import Differences, compare, compare_compiled
from remy_laboratory.kernel.emulated import Link
from remy_laboratory.kernel.fixed_point import IntegerTable, header
from remy_laboratory.kernel.libbpf import LoadedObject
from remy_laboratory.kernel.linux import KernelExportError, ebpf_files, write_ebpf
from remy_laboratory.kernel.measuring import (
    SIMULATED,
    USUAL_JITTER_MS,
    Row,
    Workload,
    build_emulator,
    draw,
    drawn,
    measure,
    predict,
)
from remy_laboratory.kernel.running import Scope, running_table

_REFUSED: Final = "refused"
_PREFIX: Final = "remy-farm-"


class KernelCheck(Tabular):
    """The findings of checks of a table before this machine's Linux loads it, a sentence each."""

    def __init__(self, findings: Sequence[CheckResult]) -> None:
        """Wraps findings; call `check_on_kernel` to get them."""
        self.findings = [*findings]

    @property
    def is_refused(self) -> bool:
        """Whether something keeps the table from this Linux."""
        return any(each.verdict == _REFUSED for each in self.findings)

    def rows(self) -> Rows:
        """A row for each thing that was looked at: `verdict` is fine, doubtful or refused."""
        kinds = {"check": str, "verdict": str, "sentence": str}
        names = [{name: getattr(each, name) for name in kinds} for each in self.findings]
        return rows_of(kinds, names)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `remy-farm kernel check --json` prints it."""
        return {"refused": self.is_refused, "findings": [asdict(each) for each in self.findings]}

    def __repr__(self) -> str:
        return "\n".join(
            f"{each.verdict:<9} {each.check}: {each.sentence}" for each in self.findings
        )


def check_on_kernel(
    table: Table,
    spec: Spec | None = None,
    *,
    deadband_us: int = 0,
    networks: int = 16,
    seed: int = 1,
    threads: int | None = None,
) -> KernelCheck:
    """Says what can be known of a table before this machine's Linux loads it.

    Args:
        table: What is checked.
        spec: What it was designed for; with it scores with jitter are measured, too.
        deadband_us: RTTs up to this above the smallest count as it, us.
        networks: Networks to measure these scores on.
        seed: Names the networks, as `evaluate` does.
        threads: Threads to simulate with; the CPUs allowed unless given.

    Returns:
        A sentence for each thing that was looked at, and whether the table is refused.

    Raises:
        FileError: This kernel cannot be read.
        SpecError: The specification designs several tables.
    """
    message = None if spec is None else spec.message
    if spec is not None:
        check_one_table(spec.message, source=spec.source)
    own = table.rule_table
    findings = [check_kernel(), *check_table(own, message, deadband_us=deadband_us)]
    if message is not None:
        with local_evaluator(threads) as evaluator:
            findings.append(
                check_scores(
                    own, message, seed=seed, specimens=networks, evaluate=evaluator.evaluate
                )
            )
    return KernelCheck(findings)


class KernelVerification(Tabular):
    """The differences between a table's exported arithmetic and the simulator's: under "c" those of
    a plain C build, under "kernel" those of compiled eBPF in this machine's Linux."""

    def __init__(self, differences: Mapping[str, Differences]) -> None:
        """Wraps differences; call `verify_on_kernel` to get them."""
        self.differences = dict(differences)

    @property
    def is_same(self) -> bool:
        """Whether nothing differs by more than docs/how-to/kernel.md says."""
        return all(each.is_same for each in self.differences.values())

    def rows(self) -> Rows:
        """A row for each place: what was compared, and what differed."""
        trees: list[dict[str, Any]] = [
            {"place": place, "same": each.is_same, **asdict(each)}
            for place, each in self.differences.items()
        ]
        return rows_like(
            [
                {name: value for name, value in tree.items() if not isinstance(value, tuple)}
                for tree in trees
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `remy-farm kernel verify --json` prints it."""
        return {
            "same": self.is_same,
            **{
                place: {"same": each.is_same, **asdict(each)}
                for place, each in self.differences.items()
            },
        }

    def __repr__(self) -> str:
        compared = ", ".join(
            f"{place}: {count(each.records)} ACKs and look-ups, "
            f"{several(each.rules_different, 'other rule')}"
            for place, each in self.differences.items()
        )
        return f"KernelVerification({'the same' if self.is_same else 'different'}; {compared})"


def verify_on_kernel(
    table: Table, *, vectors: int = 100_000, in_kernel: bool = False, seed: int = 1
) -> KernelVerification:
    """Compares the exported arithmetic of a table with the simulator's.

    Args:
        table: What is verified.
        vectors: ACKs and look-ups to compare.
        in_kernel: Has this machine's Linux run it, too; needs root and clang.
        seed: Names the ACKs.

    Returns:
        What differs, by place.

    Raises:
        FileError: There is no C compiler, no clang, or no right to load eBPF.
    """
    integers = IntegerTable.of(table.rule_table)
    found = {"c": compare_compiled(integers, header(integers), vectors=vectors, seed=seed)}
    if in_kernel:
        with TemporaryDirectory(prefix=_PREFIX) as folder:
            built = write_ebpf(Path(folder), ebpf_files(integers, "remy_verify"))
            if built is None:
                raise KernelExportError(
                    "there is no clang, which compiles for eBPF; install the package"
                )
            with LoadedObject(built, None) as loaded:
                found["kernel"] = compare(integers, loaded.replay, vectors=vectors, seed=seed)
    return KernelVerification(found)


class KernelMeasurement(Tabular):
    """Algorithms of a machine's Linux on an emulated link, with predictions of the simulator."""

    def __init__(self, link: Link, load: Workload, deadband_us: int, rows: Sequence[Row]) -> None:
        """Wraps measurements; call `measure_on_kernel` to get them. `load` says what all loads have
        in common."""
        self.link = link
        self.load = load
        self.deadband_us = deadband_us
        self.measured = [*rows]
        #: The release of the kernel.
        self.kernel = os.uname().release

    def rows(self) -> Rows:
        """A row for each algorithm, or prediction, with each load: medians over its runs."""
        kinds = {
            "algorithm": str,
            "load": str,
            "flows": int,
            "total_mbps": float,
            "own_mbps": float,
            "mean_rtt_ms": float,
            "fairness": float,
            "seconds": float,
            "runs": int,
            "disturbed": int,
        }
        return rows_of(kinds, [{name: getattr(row, name) for name in kinds} for row in self])

    def __iter__(self) -> Iterator[Row]:
        return iter(self.measured)

    def to_dict(self) -> dict[str, Any]:
        """All of it, run by run, as `remy-farm kernel measure --json` prints it."""
        return {
            "link": dict(self.link.tree),
            "seconds": self.load.seconds,
            "apart_seconds": self.load.apart_seconds,
            "offloads": self.load.offloads,
            "delayed_acks": self.load.delayed_acks,
            "deadband_us": self.deadband_us,
            "kernel": self.kernel,
            "rows": [row.tree() for row in self.measured],
        }

    def plot(self) -> Plot:
        """Draws rates over RTTs, a line for each algorithm."""
        return Plot(drawn(self.link, self.measured))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes measured.json and measured.png into a directory. Raises FileError."""
        place = Path(directory)
        make_folder(place)
        write_file(place / "measured.json", json.dumps(self.to_dict(), indent=2) + "\n")
        draw(place / "measured.png", self.link, self.measured)

    def __repr__(self) -> str:
        cells = [
            (
                row.algorithm,
                row.load,
                str(row.flows),
                f"{row.total_mbps:.2f}",
                f"{row.own_mbps:.2f}",
                f"{row.mean_rtt_ms:.1f}",
                f"{row.fairness:.3f}",
            )
            for row in self.measured
        ]
        head = ("algorithm", "load", "flows", "Mbit/s", "own", "RTT ms", "Jain")
        return "\n".join([f"Linux {self.kernel}, medians", *wording.aligned(head, cells)])


def measure_on_kernel(
    table: Table,
    link: Link | None = None,
    *,
    algorithms: Sequence[str] = (),
    flows: Sequence[int] = (1, 2, 4, 8),
    competitor: str | None = "cubic",
    download_mb: float = 10.0,
    load: Workload | None = None,
    repeats: int = 3,
    deadband_us: int = 0,
    seed: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> KernelMeasurement:
    """Measures a table with real sockets of this machine's Linux over an emulated link.

    A run in which the emulator was late is made again. Needs root, a C compiler and clang; nothing
    outside of its own network namespaces changes.

    Args:
        table: What is measured.
        link: The link; 15 Mbit/s and 150 ms with 1,000 packets of buffer unless given.
        algorithms: Names of kernel algorithms that are also measured.
        flows: Numbers of always-on flows.
        competitor: The algorithm of one flow more, once with one flow; None leaves that out.
        download_mb: What one HTTPS download brings, MB; 0 leaves that out.
        load: How long flows last, when each next one starts, and how they send; its number of
            flows does not count.
        repeats: Runs of each.
        deadband_us: RTTs up to this above the smallest count as it, us.
        seed: Names losses and jitter.
        say: Hears of runs that are made again.

    Returns:
        The measurements, with what the simulator predicts.

    Raises:
        FileError: Something that it needs is not there, or does not work.
    """
    link = link or Link()
    usual = load or Workload(1)
    loads = [replace(usual, flows=number) for number in flows]
    if competitor is not None:
        loads.append(replace(usual, flows=1, competitor=competitor))
    if download_mb:
        loads.append(replace(usual, flows=1, download_bytes=round(download_mb * 1e6)))
    name = f"remy_m{os.getpid()}"
    with TemporaryDirectory(prefix=_PREFIX) as temporary, ExitStack() as stack:
        folder = Path(temporary)
        emulator = build_emulator(folder)
        files = ebpf_files(IntegerTable.of(table.rule_table), name, deadband_us=deadband_us)
        write_ebpf(folder / "exported", files)
        stack.enter_context(running_table(folder / "exported", Scope()))
        rows = []
        for each in loads:
            for algorithm in (name, *algorithms):
                row = measure(emulator, link, each, algorithm, repeats=repeats, seed=seed, say=say)
                rows.append(replace(row, algorithm="RemyCC") if algorithm == name else row)
            for noise_ms in _predicted_jitters_ms(each, link.jitter_ms):
                rows.append(predict(table.rule_table, link, each, jitter_ms=noise_ms, seed=seed))
    return KernelMeasurement(link, usual, deadband_us, rows)


def _predicted_jitters_ms(load: Workload, jitter_ms: float) -> Sequence[float]:
    """With which jitters the simulator predicts what comes of a load: none for a download, which is
    over at a time of its own, and no jitter beside a body that knows none."""
    if load.download_bytes or load.competitor not in (None, *SIMULATED):
        return ()
    return (0.0,) if load.competitor else (0.0, USUAL_JITTER_MS + jitter_ms)
