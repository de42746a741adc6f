"""Exports a table as Linux congestion control: eBPF source, manifest and compiled object."""

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
    c_header,
)
from remy_proto.v1 import spec_pb2

SOURCE: Final = "remy_congestion.bpf.c"
OBJECT: Final = "remy_congestion.bpf.o"
MANIFEST: Final = "manifest.json"
_MAX_NAME_LENGTH: Final = 15
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
#: Names of the congestion control algorithms of Linux and of known variants.
TAKEN_NAMES: Final = frozenset(
    "bbr bbr1 bbr2 bbr3 bic cdg cubic dctcp dctcp_reno highspeed htcp hybla illinois lp nv prague "
    "reno scalable vegas veno westwood yeah bpf_cubic bpf_dctcp".split()
)
#: Required features of the kernel, by the names that `remy-farm kernel check` reports.
KERNEL_FEATURES: Final = ("cong_control_with_ack", "struct_ops_links", "bpf_loop", "tcp_send_times")
_MAX_MANIFEST_BYTES: Final = 1 << 20


class KernelExportError(FileError):
    """A name, directory or compiler is unsuitable for the export; the text is one sentence."""


def check_name(name: str) -> None:
    """Raises KernelExportError if the name is invalid or belongs to an algorithm of Linux."""
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        raise KernelExportError(
            f"{name!r} is not a valid algorithm name: it must start with a lower-case letter, "
            f"followed by lower-case letters, digits and _, {_MAX_NAME_LENGTH} characters at most"
        )
    if name in TAKEN_NAMES:
        raise KernelExportError(f"{name!r} is an algorithm of Linux; choose another name")


def ebpf_files(
    table: IntegerTable, name: str, *, spec: spec_pb2.DesignSpec | None = None, deadband_us: int = 0
) -> dict[str, str]:
    """Returns the texts of the exported files by name.

    `spec` is the specification that the table was designed for; None if it is unknown. Raises
    KernelExportError for an invalid name.
    """
    check_name(name)

    def template(file: str) -> str:
        return (SOURCES / file).read_text(encoding="utf-8")

    files = {
        SOURCE: template(SOURCE).replace("@NAME@", name),
        "remy_kernel.h": template("remy_kernel.h"),
        "remy_table.h": c_header(table, deadband_us=deadband_us),
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
        "design": None if spec is None else _design_summary(spec),
        "kernel_features": list(KERNEL_FEATURES),
        "files_sha256": {
            file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()
        },
    }
    return {**files, MANIFEST: json.dumps(manifest, indent=2, sort_keys=True) + "\n"}


def _design_summary(spec: spec_pb2.DesignSpec) -> dict[str, Any]:
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
    """Writes exported files and compiles them.

    Returns the compiled object; None if clang is not installed. Raises KernelExportError if the
    files do not compile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_file(folder / name, text.encode())
    if shutil.which("clang") is None:
        return None
    return compile_ebpf(folder)


def compile_ebpf(folder: Path, *flags: str) -> Path:
    """Compiles an exported directory with clang and additional flags. Raises KernelExportError."""
    clang = shutil.which("clang")
    if clang is None:
        raise KernelExportError("clang is not installed; it is needed to compile eBPF")
    result = subprocess.run(
        [
            *(clang, "-O2", "-g", "-Wall", "-Werror", *flags),
            *("-target", "bpf", "-c", SOURCE, "-o", OBJECT),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise KernelExportError(f"{folder / SOURCE} does not compile: {result.stderr.strip()}")
    return folder / OBJECT


def read_manifest(folder: Path) -> dict[str, Any]:
    """Reads an exported directory's manifest and verifies its files. Raises KernelExportError."""
    try:
        manifest = json.loads(read_file(folder / MANIFEST, limit=_MAX_MANIFEST_BYTES))
        digests = manifest["files_sha256"]
        check_name(manifest["name"])
        if not {SOURCE, "remy_table.h"} <= set(digests):
            raise KeyError(SOURCE)
        files = {name: str(digest) for name, digest in digests.items() if Path(name).name == name}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KernelExportError(
            f"{folder / MANIFEST} was not written by 'remy-farm export --ebpf'"
        ) from error
    for name, digest in files.items():
        data = read_file(folder / name, limit=_MAX_MANIFEST_BYTES * 16)
        if hashlib.sha256(data).hexdigest() != digest:
            raise KernelExportError(
                f"{folder / name} was changed after the export; export the table again"
            )
    return dict(manifest)
