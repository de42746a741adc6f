"""A table as congestion control of Linux: source for eBPF, its manifest, what the kernel needs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format

from remy_farm.files import FileError, read_file, write_file
from remy_farm.specification.distributions import extent
from remy_farm.specification.models import outline
from remy_laboratory.kernel.fixed_point import (
    ABSOLUTE_BITS,
    MULTIPLE_BITS,
    RATIO_BITS,
    SHARE_BITS,
    SOURCES,
    TIME_BITS,
    UNIT_BITS,
    IntegerTable,
    header,
)
from remy_proto.v1 import spec_pb2

SOURCE: Final = "remy_congestion.bpf.c"
OBJECT: Final = "remy_congestion.bpf.o"
MANIFEST: Final = "manifest.json"
_LONGEST_NAME: Final = 15
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
#: Every algorithm that Linux has had under this name, and its variants that are known.
TAKEN_NAMES: Final = frozenset(
    "bbr bbr1 bbr2 bbr3 bic cdg cubic dctcp dctcp_reno highspeed htcp hybla illinois lp nv prague "
    "reno scalable vegas veno westwood yeah bpf_cubic bpf_dctcp".split()
)
#: What a kernel must have, by the names that `remy-farm kernel check` reads from its BTF.
KERNEL_FEATURES: Final = ("cong_control_with_ack", "struct_ops_links", "bpf_loop", "tcp_send_times")
_MOST_MANIFEST_BYTES: Final = 1 << 20


class KernelExportError(FileError):
    """A name, a folder or a tool that does not make a kernel's algorithm; one sentence."""


def check_name(name: str) -> None:
    """Raises KernelExportError for a name that no new algorithm may have."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise KernelExportError(
            f"{name!r} is no name of an algorithm, which is a letter and then letters, digits and "
            f"_, in lower case, {_LONGEST_NAME} at most"
        )
    if name in TAKEN_NAMES:
        raise KernelExportError(f"{name!r} is an algorithm of Linux; choose another name")


def ebpf_files(
    table: IntegerTable, name: str, *, spec: spec_pb2.DesignSpec | None = None, deadband_us: int = 0
) -> dict[str, str]:
    """The exported files by name: a pure function of the arguments. `spec` is what the table was
    designed for, None if that is not known. Raises KernelExportError for the name."""
    check_name(name)

    def template(file: str) -> str:
        return (SOURCES / file).read_text(encoding="utf-8")

    files = {
        SOURCE: template(SOURCE).replace("@NAME@", name),
        "remy_kernel.h": template("remy_kernel.h"),
        "remy_table.h": header(table, deadband_us=deadband_us),
        "replay.h": template("replay.h"),
    }
    manifest = {
        "format": 1,
        "name": name,
        "table_sha256": table.digest,
        "rules": len(table.actions),
        "inner_nodes": len(table.nodes),
        "scale_free": table.is_scale_free,
        "deadband_us": deadband_us,
        "domain_upper": table.table.domain_upper,
        "scale_bits": {
            "times_us": TIME_BITS,
            "ratios": RATIO_BITS,
            "window_multiples": MULTIPLE_BITS,
            "shares": SHARE_BITS,
            "units": UNIT_BITS,
            "absolute_actions": ABSOLUTE_BITS,
        },
        "design": None if spec is None else _design(spec),
        "kernel_features": list(KERNEL_FEATURES),
        "files_sha256": {
            file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()
        },
    }
    return {**files, MANIFEST: json.dumps(manifest, indent=2, sort_keys=True) + "\n"}


def _design(spec: spec_pb2.DesignSpec) -> dict[str, Any]:
    network = outline(spec).network
    return {
        "link_rate_mbps": list(extent(network.rate_mbps)),
        "rtt_ms": list(extent(network.rtt_ms)),
        "senders": list(extent(network.senders)),
        "measurement": json_format.MessageToDict(
            network.measurement, preserving_proto_field_name=True
        ),
    }


def write_ebpf(folder: Path, files: dict[str, str]) -> Path | None:
    """Writes exported files, and compiles them; None where there is no clang. Raises
    KernelExportError if they do not compile."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_file(folder / name, text.encode())
    if shutil.which("clang") is None:
        return None
    return compile_ebpf(folder)


def compile_ebpf(folder: Path, *flags: str) -> Path:
    """Compiles an exported folder with clang, and with flags beside the usual ones. Raises
    KernelExportError."""
    clang = shutil.which("clang")
    if clang is None:
        raise KernelExportError("there is no clang, which compiles for eBPF; install the package")
    done = subprocess.run(
        [
            *(clang, "-O2", "-g", "-Wall", "-Werror", *flags),
            *("-target", "bpf", "-c", SOURCE, "-o", OBJECT),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise KernelExportError(f"{folder / SOURCE} does not compile: {done.stderr.strip()}")
    return folder / OBJECT


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an exported folder, whose files are as it says. Raises KernelExportError."""
    try:
        manifest = json.loads(read_file(folder / MANIFEST, limit=_MOST_MANIFEST_BYTES))
        digests = manifest["files_sha256"]
        check_name(manifest["name"])
        if not {SOURCE, "remy_table.h"} <= set(digests):
            raise KeyError(SOURCE)
        files = {name: str(digest) for name, digest in digests.items() if Path(name).name == name}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KernelExportError(
            f"{folder / MANIFEST} is not written by 'remy-farm export --ebpf'"
        ) from error
    for name, digest in files.items():
        data = read_file(folder / name, limit=_MOST_MANIFEST_BYTES * 16)
        if hashlib.sha256(data).hexdigest() != digest:
            raise KernelExportError(
                f"{folder / name} was changed after it was exported; export the table again"
            )
    return dict(manifest)
