"""Writes an image's bill of materials (CycloneDX JSON): `bill_of_materials.py ARCHIVE OUT`.

ARCHIVE is an image as `docker save` writes it. The bill lists the distribution, the packages in
dpkg's database, and the Python packages by their metadata. Code that was compiled into a wheel is
part of that wheel and not listed separately. Equal archives give equal bills: their timestamp is
SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tarfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

_OS_RELEASE = "usr/lib/os-release"
_DPKG_STATUS = "var/lib/dpkg/status"
_PYTHON_METADATA = re.compile(r".*\.dist-info/METADATA")
#: Whiteout markers in a layer: one removes a file of lower layers, the other a directory's content.
_WHITEOUT, _OPAQUE_WHITEOUT = ".wh.", ".wh..wh..opq"
#: Some packages put a licence's whole text where its name belongs; longer texts are left out.
_MAX_LICENSE_LENGTH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.write_text(bill_of(arguments.archive), encoding="utf-8")


def bill_of(archive: Path) -> str:
    """Returns the bill of the archive's only image, as JSON."""
    with tarfile.open(archive) as image:
        (manifest,) = json.loads(_read(image, "manifest.json"))
        files = _files(image, manifest["Layers"])
    name, _, tag = manifest["RepoTags"][0].rpartition(":")
    digest = PurePosixPath(manifest["Config"]).name.removesuffix(".json")
    subject = Component(
        type=ComponentType.CONTAINER,
        name=name,
        version=tag,
        bom_ref="image",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )
    bill = Bom(
        components=_components(files),
        serial_number=uuid.uuid5(uuid.NAMESPACE_OID, digest),
        metadata=BomMetaData(
            component=subject,
            timestamp=datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC),
        ),
    )
    bill.register_dependency(subject, bill.components)
    return JsonV1Dot6(bill).output_as_string(indent=2) + "\n"


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, f"{name} is not a regular file"
    return file.read()


def _files(image: tarfile.TarFile, layers: list[str]) -> dict[str, bytes]:
    """Returns the image's files with package metadata, by path, after all layers."""
    files: dict[str, bytes] = {}
    for layer in layers:
        below = dict(files)
        with tarfile.open(fileobj=image.extractfile(layer)) as contents:
            for member in contents:
                path = PurePosixPath(member.name)
                if path.name == _OPAQUE_WHITEOUT:
                    _remove(files, below, f"{path.parent}/")
                elif path.name.startswith(_WHITEOUT):
                    removed = str(path.with_name(path.name.removeprefix(_WHITEOUT)))
                    _remove(files, below, removed)
                elif member.isfile() and _is_package_metadata(str(path)):
                    files[str(path)] = _read(contents, member.name)
    return files


def _remove(files: dict[str, bytes], below: dict[str, bytes], removed: str) -> None:
    """Removes a file or a directory that lower layers have; files of the same layer stay."""
    for path, content in below.items():
        is_removed = path == removed or path.startswith(f"{removed.rstrip('/')}/")
        if is_removed and files.get(path) is content:
            del files[path]


def _is_package_metadata(path: str) -> bool:
    return path in (_OS_RELEASE, _DPKG_STATUS) or _PYTHON_METADATA.fullmatch(path) is not None


def _components(files: dict[str, bytes]) -> Iterator[Component]:
    release = dict(
        re.findall(r'^(\w+)="?([^"\n]*)"?$', files[_OS_RELEASE].decode(), flags=re.MULTILINE)
    )
    distribution = f"{release['ID']}-{release['VERSION_ID']}"
    yield Component(
        type=ComponentType.OPERATING_SYSTEM,
        name=release["ID"],
        version=release["VERSION_ID"],
        bom_ref=distribution,
    )
    for paragraph in files[_DPKG_STATUS].decode().split("\n\n"):
        package = HeaderParser().parsestr(paragraph)
        if package["Status"] == "install ok installed":
            yield _component_of_dpkg(package, release["ID"], distribution)
    for path, content in files.items():
        if _PYTHON_METADATA.fullmatch(path):
            yield _component_of_python(HeaderParser().parsestr(content.decode()))


def _component_of_dpkg(package: Message, distributor: str, distribution: str) -> Component:
    qualifiers = {"arch": package["Architecture"], "distro": distribution}
    # Advisories name the source package, for example "gcc-12 (12.2.0-14)"; the version is given
    # only if it differs from the binary package's.
    if source := package["Source"]:
        name, _, version = source.partition(" ")
        qualifiers["upstream"] = f"{name}@{version.strip('()')}" if version else name
    return _library("deb", distributor, package["Package"], package["Version"], qualifiers)


def _component_of_python(package: Message) -> Component:
    name = re.sub(r"[-_.]+", "-", package["Name"]).lower()
    component = _library("pypi", None, name, package["Version"])
    license_text = package["License-Expression"] or package["License"] or ""
    if 0 < len(license_text) <= _MAX_LICENSE_LENGTH and "\n" not in license_text:
        component.licenses.add(LicenseFactory().make_from_string(license_text))
    return component


def _library(kind: str, space: str | None, name: str, version: str, rest: Any = None) -> Component:
    url = PackageURL(kind, space, name, version, rest)
    return Component(
        type=ComponentType.LIBRARY, name=name, version=version, purl=url, bom_ref=url.to_string()
    )


if __name__ == "__main__":
    main()
