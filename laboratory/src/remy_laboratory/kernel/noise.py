"""The noise of RTTs on this machine, as its congestion control sees them: how much longer than the
least they are on a link that is empty, for the `measurement` of a specification."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from remy_laboratory.kernel.emulated import Link
from remy_laboratory.kernel.fixed_point import IntegerTable
from remy_laboratory.kernel.libbpf import read_counters
from remy_laboratory.kernel.linux import compile_ebpf, ebpf_files, write_ebpf
from remy_laboratory.kernel.measuring import MeasureError, Workload, measure_once
from remy_laboratory.kernel.running import Scope, running_table
from remy_simulator import RuleTable

#: The RTT of the link that noise is measured on, unless another is asked for.
NOISE_RTT_MS: Final = 20.0
#: So quick that nothing waits.
_RATE_MBPS: Final = 1000.0
#: kernel/remy_congestion.bpf.c counts RTTs by whole us above a base, up to here.
MOST_NOISE_US: Final = 1 << 14
_INTERVAL_MS: Final = 1.0
_US_PER_MS: Final = 1000
_ATTEMPTS: Final = 3
#: Shares that a histogram is summed up by.
SHARES: Final = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class Noise:
    """How many ACKs came so many whole us after the soonest, by the us; how late the emulator was
    itself, us, which is part of it; runs, and how many of them it disturbed."""

    acks_by_us: tuple[int, ...]
    late_99_us: float
    runs: int
    disturbed: int

    @property
    def acks(self) -> int:
        """How many were counted."""
        return sum(self.acks_by_us)

    def percentile_us(self, share: float) -> int:
        """What a share of the ACKs did not exceed."""
        wanted = share * self.acks
        seen = 0
        for us, acks in enumerate(self.acks_by_us):
            seen += acks
            if seen >= wanted:
                return us
        return len(self.acks_by_us) - 1

    def block(self) -> str:
        """What goes into the `network` of a specification: the log-normal distribution with the
        histogram's median and 99th percentile, and Linux's clock, which counts us."""
        median_us, high_us = (max(self.percentile_us(share), 1) for share in (0.5, 0.99))
        told = ", ".join(f"{100 * share:g} % {self.percentile_us(share)} us" for share in SHARES)
        return (
            "measurement:\n"
            f"  # {self.acks} RTTs of Linux {os.uname().release}, above the least: {told}.\n"
            "  jitter: {log_normal: {median_ms: "
            f"{median_us / _US_PER_MS:g}, percentile_99_ms: {high_us / _US_PER_MS:g}}}}}\n"
            "  timestamp_resolution_ms: 0.001\n"
        )

    def tree(self) -> dict[str, Any]:
        """As JSON has it: the histogram without what is empty."""
        return {
            "kernel": os.uname().release,
            "acks": self.acks,
            "percentiles_us": {f"{share:g}": self.percentile_us(share) for share in SHARES},
            "acks_by_us": {str(us): acks for us, acks in enumerate(self.acks_by_us) if acks},
            "emulator_late_99_us": self.late_99_us,
            "runs": self.runs,
            "disturbed": self.disturbed,
            "measurement": self.block(),
        }


def from_counts(counts: Sequence[int], late_99_us: float, runs: int, disturbed: int) -> Noise:
    """Noise from how many RTTs were so many us above a base. Raises MeasureError without any."""
    used = [us for us, count in enumerate(counts) if count]
    if not used:
        raise MeasureError("no RTT was measured; did the flow send anything?")
    return Noise(tuple(counts[used[0] : used[-1] + 1]), late_99_us, runs, disturbed)


def measure_noise(
    emulator: Path,
    folder: Path,
    *,
    rtt_ms: float,
    seconds: float,
    repeats: int,
    offloads: bool,
    delayed_acks: bool,
    seed: int,
    say: Callable[[str], None],
) -> Noise:
    """RTTs of one flow that sends a packet every ms on an empty link. Of each repeat the least
    disturbed of three attempts counts. `folder` is for the program. Raises MeasureError, LoadError
    or RunError."""
    packets = 4 * rtt_ms / _INTERVAL_MS + 4
    table = IntegerTable.of(RuleTable([0], [([], (0.0, packets, _INTERVAL_MS))]))
    name = f"remy_n{os.getpid()}"
    link = Link(rate_mbps=_RATE_MBPS, rtt_ms=rtt_ms)
    load = Workload(1, seconds, offloads=offloads, delayed_acks=delayed_acks)
    write_ebpf(folder, ebpf_files(table, name))
    compile_ebpf(folder, f"-DREMY_NOISE_BASE_US={round(rtt_ms * _US_PER_MS)}")
    counts = [0] * MOST_NOISE_US
    lates_us: list[float] = []
    disturbed = 0
    with running_table(folder, Scope()) as state:
        for repeat in range(repeats):
            best: tuple[float, list[int]] | None = None
            for _ in range(_ATTEMPTS):
                before = read_counters(state.counters_map)[-MOST_NOISE_US:]
                run = measure_once(emulator, link, load, name, seed=seed + repeat)
                after = read_counters(state.counters_map)[-MOST_NOISE_US:]
                seen = [late - early for early, late in zip(before, after, strict=True)]
                if best is None or run.late_99_us < best[0]:
                    best = (run.late_99_us, seen)
                if not run.is_disturbed:
                    break
                say(f"noise: disturbed ({run.late_99_us:.0f} us late)")
            else:
                disturbed += 1
            assert best is not None
            lates_us.append(best[0])
            counts = [so_far + more for so_far, more in zip(counts, best[1], strict=True)]
    return from_counts(counts, max(lates_us), repeats, disturbed)


def draw_noise(path: Path, noise: Noise) -> None:
    """The histogram as PNG."""
    # It takes half a second to load, which other commands do not wait for.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    shown = noise.acks_by_us[: noise.percentile_us(SHARES[-1]) + 1]
    axes.bar(range(len(shown)), shown, width=1.0)
    for share in SHARES[:-1]:
        axes.axvline(noise.percentile_us(share), color="grey", linewidth=0.5)
    axes.set(xlabel="above the least RTT, us", ylabel="ACKs")
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})
