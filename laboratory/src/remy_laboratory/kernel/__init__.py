"""RemyCCs outside the simulator: as integer arithmetic in C, and as Linux congestion control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_laboratory.kernel.bench import KernelCheck as KernelCheck
    from remy_laboratory.kernel.bench import KernelMeasurement as KernelMeasurement
    from remy_laboratory.kernel.bench import KernelVerification as KernelVerification
    from remy_laboratory.kernel.checks import check_kernel as check_kernel
    from remy_laboratory.kernel.checks import check_scores as check_scores
    from remy_laboratory.kernel.checks import check_table as check_table
    from remy_laboratory.kernel.differential import Differences as Differences
    from remy_laboratory.kernel.differential import compare as compare
    from remy_laboratory.kernel.differential import compare_compiled as compare_compiled
    from remy_laboratory.kernel.emulated import Link as Link
    from remy_laboratory.kernel.exporting import Export as Export
    from remy_laboratory.kernel.fixed_point import IntegerTable as IntegerTable
    from remy_laboratory.kernel.fixed_point import c_header as c_header
    from remy_laboratory.kernel.libbpf import LoadedObject as LoadedObject
    from remy_laboratory.kernel.linux import ebpf_files as ebpf_files
    from remy_laboratory.kernel.linux import write_ebpf as write_ebpf
    from remy_laboratory.kernel.measuring import SIMULATED as SIMULATED
    from remy_laboratory.kernel.measuring import TYPICAL_JITTER_MS as TYPICAL_JITTER_MS
    from remy_laboratory.kernel.measuring import Row as Row
    from remy_laboratory.kernel.measuring import Workload as Workload
    from remy_laboratory.kernel.measuring import build_emulator as build_emulator
    from remy_laboratory.kernel.measuring import measure as measure
    from remy_laboratory.kernel.measuring import predict as predict
    from remy_laboratory.kernel.measuring import save_plot as save_plot
    from remy_laboratory.kernel.noise import NOISE_RTT_MS as NOISE_RTT_MS
    from remy_laboratory.kernel.noise import measure_noise as measure_noise
    from remy_laboratory.kernel.noise import save_noise_plot as save_noise_plot
    from remy_laboratory.kernel.running import RunRecord as RunRecord
    from remy_laboratory.kernel.running import Scope as Scope
    from remy_laboratory.kernel.running import clean_up as clean_up
    from remy_laboratory.kernel.running import hold_signals as hold_signals
    from remy_laboratory.kernel.running import run_counters as run_counters
    from remy_laboratory.kernel.running import run_records as run_records
    from remy_laboratory.kernel.running import running_table as running_table
    from remy_laboratory.kernel.running import stop_run as stop_run
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
