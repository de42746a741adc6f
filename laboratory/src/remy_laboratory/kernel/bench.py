"""Library calls that check, verify and measure tables as Linux congestion control."""

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
from remy_farm.analysis.wording import count, plural
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Plot, Rows, Tabular, rows_like, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.files import make_folder, write_file
from remy_farm.specification.checking import check_single_table
from remy_laboratory.kernel.checks import CheckResult, check_kernel, check_scores, check_table
from remy_laboratory.kernel.differential import Differences, compare, compare_compiled
from remy_laboratory.kernel.emulated import Link
from remy_laboratory.kernel.fixed_point import IntegerTable, c_header
from remy_laboratory.kernel.libbpf import LoadedObject
from remy_laboratory.kernel.linux import KernelExportError, ebpf_files, write_ebpf
from remy_laboratory.kernel.measuring import (
    SIMULATED,
    TYPICAL_JITTER_MS,
    Row,
    Workload,
    build_emulator,
    draw_figure,
    measure,
    predict,
    save_plot,
)
from remy_laboratory.kernel.running import Scope, running_table

_REFUSED: Final = "refused"
_PREFIX: Final = "remy-farm-"


class KernelCheck(Tabular):
    """The results of checking a table before this machine's Linux loads it."""

    def __init__(self, findings: Sequence[CheckResult]) -> None:
        """Wraps findings; `check_on_kernel` returns them."""
        self.findings = [*findings]

    @property
    def is_refused(self) -> bool:
        """Whether any check refuses the table."""
        return any(each.verdict == _REFUSED for each in self.findings)

    def rows(self) -> Rows:
        """Returns a row per check; `verdict` is fine, doubtful or refused."""
        kinds = {"check": str, "verdict": str, "sentence": str}
        findings = [{name: getattr(finding, name) for name in kinds} for finding in self.findings]
        return rows_of(kinds, findings)

    def to_dict(self) -> dict[str, Any]:
        """Returns the results as `remy-farm kernel check --json` prints them."""
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
    """Checks whether a table is safe to run in this machine's Linux.

    Args:
        table: The table to check.
        spec: The specification that it was designed for; with it, scores with jitter are measured.
        deadband_us: RTTs up to this above the minimum are treated as the minimum, us.
        networks: Number of networks for these scores.
        seed: Seed of the networks, as in `evaluate`.
        threads: Number of simulation threads; by default the CPUs allowed.

    Returns:
        A sentence per check, and whether the table is refused.

    Raises:
        FileError: This kernel's type information cannot be read.
        SpecError: The specification designs several tables.
    """
    message = None if spec is None else spec.message
    if spec is not None:
        check_single_table(spec.message, source=spec.source)
    rule_table = table.rule_table
    findings = [check_kernel(), *check_table(rule_table, message, deadband_us=deadband_us)]
    if message is not None:
        with local_evaluator(threads) as evaluator:
            findings.append(
                check_scores(
                    rule_table, message, seed=seed, specimens=networks, evaluate=evaluator.evaluate
                )
            )
    return KernelCheck(findings)


class KernelVerification(Tabular):
    """The differences between a table's exported arithmetic and the simulator's.

    `differences` has the key "c" for a plain C build, and "kernel" for compiled eBPF in this
    machine's Linux.
    """

    def __init__(self, differences: Mapping[str, Differences]) -> None:
        """Wraps differences; `verify_on_kernel` returns them."""
        self.differences = dict(differences)

    @property
    def is_same(self) -> bool:
        """Whether all differences are within the bounds of docs/how-to/kernel.md."""
        return all(each.is_same for each in self.differences.values())

    def rows(self) -> Rows:
        """Returns a row for each place ("c", "kernel") with the numbers compared and different."""
        records: list[dict[str, Any]] = [
            {"place": place, "same": each.is_same, **asdict(each)}
            for place, each in self.differences.items()
        ]
        return rows_like(
            [
                {name: value for name, value in record.items() if not isinstance(value, tuple)}
                for record in records
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the differences as `remy-farm kernel verify --json` prints them."""
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
            f"{plural(each.rules_different, 'different rule')}"
            for place, each in self.differences.items()
        )
        return f"KernelVerification({'the same' if self.is_same else 'different'}; {compared})"


def verify_on_kernel(
    table: Table, *, vectors: int = 100_000, in_kernel: bool = False, seed: int = 1
) -> KernelVerification:
    """Compares the exported arithmetic of a table with the simulator's.

    Args:
        table: The table to verify.
        vectors: Number of ACKs and look-ups to compare.
        in_kernel: Also run the arithmetic in this machine's Linux; needs root and clang.
        seed: Seed of the ACKs.

    Returns:
        The differences, by place ("c", "kernel").

    Raises:
        FileError: No C compiler or no clang is installed, or eBPF may not be loaded.
    """
    integers = IntegerTable.from_rule_table(table.rule_table)
    differences = {"c": compare_compiled(integers, c_header(integers), vectors=vectors, seed=seed)}
    if in_kernel:
        with TemporaryDirectory(prefix=_PREFIX) as folder:
            object_path = write_ebpf(Path(folder), ebpf_files(integers, "remy_verify"))
            if object_path is None:
                raise KernelExportError("clang is not installed; it is needed to compile eBPF")
            with LoadedObject(object_path, None) as loaded:
                differences["kernel"] = compare(integers, loaded.replay, vectors=vectors, seed=seed)
    return KernelVerification(differences)


class KernelMeasurement(Tabular):
    """Measurements of Linux algorithms on an emulated link, with the simulator's predictions."""

    def __init__(self, link: Link, load: Workload, deadband_us: int, rows: Sequence[Row]) -> None:
        """Wraps measurements; `measure_on_kernel` returns them.

        `load` has the properties that all workloads share.
        """
        self.link = link
        self.load = load
        self.deadband_us = deadband_us
        self.measured = [*rows]
        #: The release of the kernel.
        self.kernel = os.uname().release

    def rows(self) -> Rows:
        """Returns a row per algorithm, or prediction, and workload, with medians over the runs."""
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
        """Returns all runs as `remy-farm kernel measure --json` prints them."""
        return {
            "link": dict(self.link.keys),
            "seconds": self.load.seconds,
            "apart_seconds": self.load.apart_seconds,
            "offloads": self.load.offloads,
            "delayed_acks": self.load.delayed_acks,
            "deadband_us": self.deadband_us,
            "kernel": self.kernel,
            "rows": [row.to_dict() for row in self.measured],
        }

    def plot(self) -> Plot:
        """Plots throughput over RTT, with a line per algorithm."""
        return Plot(draw_figure(self.link, self.measured))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes measured.json and measured.png into a directory. Raises FileError."""
        path = Path(directory)
        make_folder(path)
        write_file(path / "measured.json", json.dumps(self.to_dict(), indent=2) + "\n")
        save_plot(path / "measured.png", self.link, self.measured)

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
        columns = ("algorithm", "load", "flows", "Mbit/s", "own", "RTT ms", "Jain")
        return "\n".join([f"Linux {self.kernel}, medians", *wording.aligned(columns, cells)])


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
    on_message: Callable[[str], None] = lambda _: None,
) -> KernelMeasurement:
    """Measures a table with real sockets of this machine's Linux over an emulated link.

    A run in which the emulator fell behind is repeated. Needs root, a C compiler and clang; only
    its own network namespaces are changed.

    Args:
        table: The table to measure.
        link: The link; by default 15 Mbit/s, 150 ms and a buffer of 1,000 packets.
        algorithms: Names of kernel algorithms that are also measured.
        flows: Numbers of always-on flows.
        competitor: Algorithm of an additional competing flow in one run with one flow; None for no
            such run.
        download_mb: Size of an HTTPS download, MB; 0 for no download.
        load: Duration of flows, time between their starts, and how they send; its number of flows
            is ignored.
        repeats: Runs of each measurement.
        deadband_us: RTTs up to this above the minimum are treated as the minimum, us.
        seed: Seed of losses and jitter.
        on_message: Called with a sentence for each run that is repeated.

    Returns:
        The measurements, with the simulator's predictions.

    Raises:
        FileError: A required program, file or permission is missing.
    """
    link = link or Link()
    base_load = load or Workload(1)
    loads = [replace(base_load, flows=number) for number in flows]
    if competitor is not None:
        loads.append(replace(base_load, flows=1, competitor=competitor))
    if download_mb:
        loads.append(replace(base_load, flows=1, download_bytes=round(download_mb * 1e6)))
    name = f"remy_m{os.getpid()}"
    with TemporaryDirectory(prefix=_PREFIX) as temporary, ExitStack() as stack:
        folder = Path(temporary)
        emulator = build_emulator(folder)
        files = ebpf_files(
            IntegerTable.from_rule_table(table.rule_table), name, deadband_us=deadband_us
        )
        write_ebpf(folder / "exported", files)
        stack.enter_context(running_table(folder / "exported", Scope()))
        rows = []
        for workload in loads:
            for algorithm in (name, *algorithms):
                row = measure(
                    emulator,
                    link,
                    workload,
                    algorithm,
                    repeats=repeats,
                    seed=seed,
                    on_message=on_message,
                )
                rows.append(replace(row, algorithm="RemyCC") if algorithm == name else row)
            for jitter_ms in _jitters_to_simulate_ms(workload, link.jitter_ms):
                rows.append(
                    predict(table.rule_table, link, workload, jitter_ms=jitter_ms, seed=seed)
                )
    return KernelMeasurement(link, base_load, deadband_us, rows)


def _jitters_to_simulate_ms(load: Workload, jitter_ms: float) -> Sequence[float]:
    """Returns the jitters with which the simulator predicts a workload.

    Downloads are not predicted, as their duration is not fixed in advance. A competitor on TCP is
    predicted without jitter only, as TCP in the simulator has none.
    """
    if load.download_bytes or load.competitor not in (None, *SIMULATED):
        return ()
    return (0.0,) if load.competitor else (0.0, TYPICAL_JITTER_MS + jitter_ms)
