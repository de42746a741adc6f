"""Measures the noise of RTTs on this machine, as its congestion control sees them.

The noise is the RTT above the minimum on an empty link. It gives the `measurement` keys of a
specification.
"""

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

#: Default RTT of the link on which noise is measured.
NOISE_RTT_MS: Final = 20.0
#: Fast enough that no packet waits in the queue.
_RATE_MBPS: Final = 1000.0
#: kernel/remy_congestion.bpf.c counts RTTs in bins of 1 us above a base; this is the number of
#: bins.
MAX_NOISE_US: Final = 1 << 14
_INTERVAL_MS: Final = 1.0
_US_PER_MS: Final = 1000
_ATTEMPTS: Final = 3
#: Fractions of the quantiles that summarize a histogram.
QUANTILES: Final = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class Noise:
    """A histogram of RTT noise: `acks_by_us[n]` ACKs came n us later than the earliest.

    `late_99_us` is the 99th percentile of the emulator's own delay, us, which the noise includes.
    `disturbed` of the `runs` had too much of it.
    """

    acks_by_us: tuple[int, ...]
    late_99_us: float
    runs: int
    disturbed: int

    @property
    def acks(self) -> int:
        """The number of ACKs."""
        return sum(self.acks_by_us)

    def percentile_us(self, share: float) -> int:
        """Returns the smallest noise, us, that at least this share of the ACKs does not exceed."""
        target = share * self.acks
        cumulative = 0
        for us, acks in enumerate(self.acks_by_us):
            cumulative += acks
            if cumulative >= target:
                return us
        return len(self.acks_by_us) - 1

    def measurement_yaml(self) -> str:
        """Returns the `measurement` keys for a specification's `network`.

        They hold a log-normal distribution with the histogram's median and 99th percentile, and the
        resolution of Linux's clock, 1 us.
        """
        median_us, high_us = (max(self.percentile_us(share), 1) for share in (0.5, 0.99))
        listed = ", ".join(
            f"{100 * share:g} % {self.percentile_us(share)} us" for share in QUANTILES
        )
        return (
            "measurement:\n"
            f"  # {self.acks} RTTs of Linux {os.uname().release}, above the minimum: {listed}.\n"
            "  jitter: {log_normal: {median_ms: "
            f"{median_us / _US_PER_MS:g}, percentile_99_ms: {high_us / _US_PER_MS:g}}}}}\n"
            "  timestamp_resolution_ms: 0.001\n"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns a JSON object; the histogram omits empty bins."""
        return {
            "kernel": os.uname().release,
            "acks": self.acks,
            "percentiles_us": {f"{share:g}": self.percentile_us(share) for share in QUANTILES},
            "acks_by_us": {str(us): acks for us, acks in enumerate(self.acks_by_us) if acks},
            "emulator_late_99_us": self.late_99_us,
            "runs": self.runs,
            "disturbed": self.disturbed,
            "measurement": self.measurement_yaml(),
        }


def noise_from_counts(counts: Sequence[int], late_99_us: float, runs: int, disturbed: int) -> Noise:
    """Builds Noise from counts of RTTs by us above a base. Raises MeasureError if all are 0."""
    used = [us for us, count in enumerate(counts) if count]
    if not used:
        raise MeasureError("no RTT was measured; the flow may not have sent anything")
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
    on_message: Callable[[str], None],
) -> Noise:
    """Measures the RTTs of one flow that sends a packet every ms on an empty link.

    Each repeat uses the least disturbed of up to three attempts. The compiled program is written to
    `folder`. Raises MeasureError, LoadError or RunError.
    """
    packets = 4 * rtt_ms / _INTERVAL_MS + 4
    table = IntegerTable.from_rule_table(RuleTable([0], [([], (0.0, packets, _INTERVAL_MS))]))
    name = f"remy_n{os.getpid()}"
    link = Link(rate_mbps=_RATE_MBPS, rtt_ms=rtt_ms)
    load = Workload(1, seconds, offloads=offloads, delayed_acks=delayed_acks)
    write_ebpf(folder, ebpf_files(table, name))
    compile_ebpf(folder, f"-DREMY_NOISE_BASE_US={round(rtt_ms * _US_PER_MS)}")
    counts = [0] * MAX_NOISE_US
    lates_us: list[float] = []
    disturbed = 0
    with running_table(folder, Scope()) as state:
        for repeat in range(repeats):
            best: tuple[float, list[int]] | None = None
            for _ in range(_ATTEMPTS):
                before = read_counters(state.counters_map)[-MAX_NOISE_US:]
                run = measure_once(emulator, link, load, name, seed=seed + repeat)
                after = read_counters(state.counters_map)[-MAX_NOISE_US:]
                run_counts = [new - old for old, new in zip(before, after, strict=True)]
                if best is None or run.late_99_us < best[0]:
                    best = (run.late_99_us, run_counts)
                if not run.is_disturbed:
                    break
                on_message(f"noise: disturbed ({run.late_99_us:.0f} us late)")
            else:
                disturbed += 1
            assert best is not None
            lates_us.append(best[0])
            counts = [total + count for total, count in zip(counts, best[1], strict=True)]
    return noise_from_counts(counts, max(lates_us), repeats, disturbed)


def save_noise_plot(path: Path, noise: Noise) -> None:
    """Writes the histogram as PNG."""
    # Imported here because matplotlib takes half a second to import.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    bins = noise.acks_by_us[: noise.percentile_us(QUANTILES[-1]) + 1]
    axes.bar(range(len(bins)), bins, width=1.0)
    for share in QUANTILES[:-1]:
        axes.axvline(noise.percentile_us(share), color="grey", linewidth=0.5)
    axes.set(xlabel="above the minimum RTT, us", ylabel="ACKs")
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})
