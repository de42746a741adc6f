"""An SBOM (CycloneDX) lists exactly the packages installed in an image's last layer."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from benchmarks.programs import ROOT

SITE = "opt/app/lib/python3.11/site-packages"
RELEASE = 'PRETTY_NAME="Debian GNU/Linux 12"\nVERSION_ID="12"\nID=debian\n'
INSTALLED = "Package: {}\nStatus: install ok installed\nArchitecture: amd64\n{}Version: {}\n"
REMOVED = "Package: old\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n"
PYTHON_METADATA = "Metadata-Version: 2.4\nName: {}\nVersion: {}\n{}\nDescription: of it\n"


def tar(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An image of three layers, the last of which upgrades and removes packages."""
    packages = [INSTALLED.format("libc6", "Source: glibc\n", "2.36-9"), REMOVED]
    first = {
        "usr/lib/os-release": RELEASE,
        "var/lib/dpkg/status": "\n".join(packages),
        # Its name and content look like metadata, but it is no package.
        "opt/app/Name: none.txt": "Name: none\n",
    }
    second = {
        f"{SITE}/Some_Library-1.0.dist-info/METADATA": PYTHON_METADATA.format(
            "Some_Library", "1.0", ""
        ),
        f"{SITE}/gone-1.dist-info/METADATA": PYTHON_METADATA.format("gone", "1", ""),
        "root/cache/a-1.dist-info/METADATA": PYTHON_METADATA.format("cached", "1", ""),
    }
    packages += [INSTALLED.format("libgcc-s1", "Source: gcc-12 (12.2.0-14)\n", "12.2.0-14+b1")]
    third = {
        "var/lib/dpkg/status": "\n".join(packages),
        f"{SITE}/.wh.Some_Library-1.0.dist-info": "",
        f"{SITE}/Some_Library-2.0.dist-info/METADATA": PYTHON_METADATA.format(
            "Some_Library", "2.0", "License-Expression: MIT OR Apache-2.0\n"
        ),
        f"{SITE}/wordy-3.dist-info/METADATA": PYTHON_METADATA.format(
            "wordy", "3", "License: Copyright © 2026\n        All of its text.\n"
        ),
        f"{SITE}/gone-1.dist-info/.wh.METADATA": "",
        "root/cache/.wh..wh..opq": "",
    }
    config = b"{}"
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    layers = {f"{n}.tar": tar(files) for n, files in enumerate((first, second, third))}
    manifest = [{"Config": name, "RepoTags": ["localhost/app:1.2"], "Layers": list(layers)}]
    path = tmp_path / "image.tar"
    path.write_bytes(tar({"manifest.json": json.dumps(manifest), name: config, **layers}))
    return path


def write_bill(archive: Path, epoch: int = 86400) -> str:
    """Runs the script and returns the bill that it writes."""
    out = archive.with_suffix(".cdx.json")
    program = ROOT / "scripts" / "bill_of_materials.py"
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
    subprocess.run([sys.executable, program, archive, out], check=True, env=environment)
    return out.read_text(encoding="utf-8")


def test_bill_lists_the_packages_that_the_last_layer_leaves(archive: Path) -> None:
    bill: dict[str, Any] = json.loads(write_bill(archive))
    (image,) = (each for each in bill["dependencies"] if "dependsOn" in each)
    components = {each["bom-ref"]: each for each in bill["components"]}
    assert sorted(components) == sorted(image["dependsOn"])
    qualifiers, version = "arch=amd64&distro=debian-12", "12.2.0-14%2Bb1"
    assert sorted(components) == [
        "debian-12",
        f"pkg:deb/debian/libc6@2.36-9?{qualifiers}&upstream=glibc",
        f"pkg:deb/debian/libgcc-s1@{version}?{qualifiers}&upstream=gcc-12%4012.2.0-14",
        "pkg:pypi/some-library@2.0",
        "pkg:pypi/wordy@3",
    ]
    assert "licenses" not in components["pkg:pypi/wordy@3"]
    assert components["pkg:pypi/some-library@2.0"]["licenses"] == [
        {"expression": "MIT OR Apache-2.0"}
    ]


def test_bill_names_the_image_and_its_digest(archive: Path) -> None:
    metadata: dict[str, Any] = json.loads(write_bill(archive))["metadata"]
    digest = hashlib.sha256(b"{}").hexdigest()
    assert metadata["timestamp"] == "1970-01-02T00:00:00+00:00"
    assert (metadata["component"]["name"], metadata["component"]["version"]) == (
        "localhost/app",
        "1.2",
    )
    assert metadata["component"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_bill_is_valid_and_reproducible(archive: Path) -> None:
    bill = write_bill(archive)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    assert write_bill(archive) == bill
    assert write_bill(archive, epoch=0) != bill
