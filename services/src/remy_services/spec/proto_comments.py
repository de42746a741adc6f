"""The comments of the proto files, which generated code does not keep."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from google.protobuf import descriptor_pb2

_SPEC: Final = "remy_farm/v1/spec.proto"

# Field numbers in FileDescriptorProto and DescriptorProto, which make up a location's path.
_FILE_MESSAGES, _FILE_ENUMS = 4, 5
_MESSAGE_FIELDS, _MESSAGE_MESSAGES, _MESSAGE_ENUMS = 2, 3, 4
_ENUM_VALUES = 2

_Path = tuple[int, ...]


def read_comments(proto_root: Path) -> dict[str, str]:
    """The comment above each message, field, enum and enum value of a specification, by full name.

    `proto_root` is the folder that imports start from. Needs grpcio-tools, and raises
    subprocess.CalledProcessError if they refuse the files.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "spec.binpb")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto_root}"]
        command += ["--include_imports", "--include_source_info", f"--descriptor_set_out={output}"]
        subprocess.run([*command, _SPEC], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes())
    comments = {}
    for file in files.file:
        by_path = {
            tuple(location.path): " ".join(location.leading_comments.split())
            for location in file.source_code_info.location
        }
        for path, name in _names_of_file(file):
            comments[name] = by_path.get(path, "")
    return comments


def _names_of_file(file: descriptor_pb2.FileDescriptorProto) -> Iterator[tuple[_Path, str]]:
    for index, message in enumerate(file.message_type):
        yield from _names_of_message(message, (_FILE_MESSAGES, index), file.package)
    for index, enum in enumerate(file.enum_type):
        yield from _names_of_enum(enum, (_FILE_ENUMS, index), file.package)


def _names_of_message(
    message: descriptor_pb2.DescriptorProto, path: _Path, scope: str
) -> Iterator[tuple[_Path, str]]:
    name = f"{scope}.{message.name}"
    yield path, name
    for index, field in enumerate(message.field):
        yield (*path, _MESSAGE_FIELDS, index), f"{name}.{field.name}"
    for index, nested in enumerate(message.nested_type):
        yield from _names_of_message(nested, (*path, _MESSAGE_MESSAGES, index), name)
    for index, enum in enumerate(message.enum_type):
        yield from _names_of_enum(enum, (*path, _MESSAGE_ENUMS, index), name)


def _names_of_enum(
    enum: descriptor_pb2.EnumDescriptorProto, path: _Path, scope: str
) -> Iterator[tuple[_Path, str]]:
    yield path, f"{scope}.{enum.name}"
    for index, value in enumerate(enum.value):
        # The names of values live in the scope of their enum.
        yield (*path, _ENUM_VALUES, index), f"{scope}.{value.name}"
