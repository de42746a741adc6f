"""Tables that the kernel tests export, and skip conditions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from remy_farm.files import FileError
from remy_farm.remycc import read_remycc
from remy_laboratory.kernel.checks import check_kernel
from remy_laboratory.kernel.fixed_point import IntegerTable
from remy_laboratory.kernel.libbpf import libbpf_version
from remy_simulator import RuleTable

ROOT = Path(__file__).resolve().parents[3]

GOLDEN = Path(__file__).parent / "golden"
SCALE_FREE = ROOT / "data" / "remyccs" / "general-purpose-noise" / "rules.json"
ABSOLUTE = ROOT / "tests" / "data" / "remyccs-absolute" / "general-purpose-noise" / "remycc.json"
EXACT_CLOCKS = ROOT / "tests" / "data" / "remyccs-absolute" / "general-purpose-delta1"

needs_c = pytest.mark.skipif(
    not os.environ.get("CC") and not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason="no C compiler is installed",
)


def absolute_rules() -> RuleTable:
    """Returns a table in ms, with a negative increment and a threshold at the lower bound."""
    nodes = [
        ([(0, 1.5), (2, 1.0625)], (1.0, 1.0, 3.0)),
        ([], (0.9, 2.0, 1.0)),
        ([], (0.75, -3.0, 0.25)),
        ([], (1.0, 1.0, 0.0)),
        ([(1, 0.0)], (1.0, 1.0, 3.0)),
        ([], (0.0, 5.0, 2.0)),
        ([], (1.25, 0.5, 12.3)),
    ]
    return RuleTable([0, 1, 2], nodes)


def integers(path: Path) -> IntegerTable:
    return IntegerTable.from_rule_table(read_remycc(path).table)


def _can_load_ebpf() -> bool:
    status = Path("/proc/self/status")
    if not status.exists() or not Path("/sys/kernel/btf/vmlinux").exists():
        return False
    effective = next(
        (line for line in status.read_text().splitlines() if line.startswith("CapEff")), "0 0"
    )
    # CAP_NET_ADMIN, CAP_SYS_ADMIN (for namespaces), CAP_BPF.
    required = 1 << 12 | 1 << 21 | 1 << 39
    if int(effective.split()[1], 16) & required != required or not shutil.which("clang"):
        return False
    try:
        return check_kernel().verdict == "fine" and bool(libbpf_version())
    except FileError:
        return False


needs_kernel = pytest.mark.skipif(
    not _can_load_ebpf(),
    reason="needs CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN, clang, libbpf, and BTF of Linux 6.10",
)
