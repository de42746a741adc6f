"""Generates the Python code of proto/remy_farm into proto/src, or checks that it is up to date.

The code is committed, so that the proto package installs without protoc. Only files with a service
get gRPC stubs. The proto package is `remy_farm.v1`, which is part of every gRPC method's name; in
Python it is `remy_proto.v1`, because `remy_farm` is the library.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "proto"
GENERATED = ROOT / "proto" / "src"
WELL_KNOWN_TYPES = Path(grpc_tools.__file__).parent / "_proto"
PACKAGE = "remy_proto"
# Matches the package in an import of a generated module, and in a message class's module name.
MODULE = re.compile(rb"(^(?:from|import) |DESCRIPTOR, ')remy_farm(?=\.)", re.MULTILINE)
PATTERNS = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py")


def compile_to(folder: Path) -> None:
    """Compiles every .proto file into `folder`. Raises SystemExit if protoc reports an error."""
    sources = sorted((SOURCES / "remy_farm").rglob("*.proto"))
    if not sources:
        raise SystemExit(f"There are no .proto files under {SOURCES / 'remy_farm'}.")
    with_services = [
        source for source in sources if re.search(r"^service\s", source.read_text(), re.MULTILINE)
    ]
    run_protoc(sources, f"--python_out={folder}", f"--pyi_out={folder}")
    if with_services:
        run_protoc(with_services, f"--grpc_python_out={folder}")


def run_protoc(sources: list[Path], *outputs: str) -> None:
    includes = [f"--proto_path={SOURCES}", f"--proto_path={WELL_KNOWN_TYPES}"]
    status = protoc.main(["protoc", *includes, *outputs, *map(str, sources)])
    if status != 0:
        raise SystemExit("protoc could not compile the .proto files; its messages are above.")


def generated_files(folder: Path) -> dict[Path, bytes]:
    """Returns the content of the generated files under `folder`, by their path in it."""
    return {
        path.relative_to(folder): path.read_bytes()
        for pattern in PATTERNS
        for path in folder.rglob(pattern)
    }


def rename_package(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """Moves the modules that protoc generated for `remy_farm` to PACKAGE."""
    return {
        Path(PACKAGE, *path.parts[1:]): MODULE.sub(rb"\g<1>" + PACKAGE.encode(), code)
        for path, code in files.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if stale")
    only_check = parser.parse_args().check

    with TemporaryDirectory() as folder:
        compile_to(Path(folder))
        wanted = rename_package(generated_files(Path(folder)))
    present = generated_files(GENERATED)
    stale = sorted(
        path for path in wanted.keys() | present.keys() if wanted.get(path) != present.get(path)
    )
    if only_check:
        for path in stale:
            print(f"{(GENERATED / path).relative_to(ROOT)} is stale: run `make proto`.")
        return 1 if stale else 0
    for path in stale:
        target = GENERATED / path
        if path in wanted:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wanted[path])
        else:
            target.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
