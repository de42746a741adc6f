"""Generates the reference page of specifications: `python scripts/spec_reference.py proto`.

Constraints come from the descriptors that check specifications, and descriptions from the comments
in the proto files, so that the page cannot contradict the reader."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from remy_farm.specification.schema import (
    Bounds,
    descriptor_of,
    enum_of,
    is_submessage,
    short_name,
    submessage_of,
)
from remy_proto.completion import NEWEST_EDITION, constraint_of, default_text
from remy_proto.v1 import constraints_pb2, spec_pb2

_SPEC: Final = "remy_farm/v1/spec.proto"


def read_comments(proto_root: Path) -> dict[str, str]:
    """Returns the comment above each message, field, enum and enum value, by its full name.

    `proto_root` is the directory that imports are relative to. It needs grpcio-tools, and raises
    subprocess.CalledProcessError if these reject the files.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "spec.binpb")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto_root}"]
        command += ["--include_imports", "--include_source_info", f"--descriptor_set_out={output}"]
        subprocess.run([*command, _SPEC], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes())
    return {
        name: " ".join(location.leading_comments.split())
        for file in files.file
        for location in file.source_code_info.location
        if (name := _name_of(file, location.path)) is not None
    }


def _name_of(file: descriptor_pb2.FileDescriptorProto, path: Sequence[int]) -> str | None:
    """Returns the full name of the declaration at a location; None if it declares no name.

    `path` alternates field numbers of descriptor messages and indexes into these fields.
    """
    place: Message = file
    scope = name = file.package
    for number, index in zip(path[::2], path[1::2], strict=False):
        field = descriptor_of(place).fields_by_number[number]
        if field.message_type is None or not field.is_repeated:
            return None
        # In Protocol Buffers an enum's values are in the enum's scope, not below it.
        if not isinstance(place, descriptor_pb2.EnumDescriptorProto):
            scope = name
        place = getattr(place, field.name)[index]
        name = f"{scope}.{getattr(place, 'name', '')}"
    return None if not path or len(path) % 2 else name


#: A page in a comment of a proto file: docs/how-to/play.md, or docs/how-to/play.md, "Heading".
_MENTION: Final = re.compile(
    r'docs/(?P<folder>[\w-]+)/(?P<name>[\w-]+)\.md(?:, "(?P<heading>[^"]+)")?'
)

_INTRODUCTION: Final = """\
# The specification of a design

*Generated from the proto files by `python scripts/spec_reference.py proto`.*

A design is specified in a YAML file, or in a JSON file whose name ends in `.json`, of at most
1 MiB. `remy-farm validate SPEC.yaml` checks one, and `examples/` holds specifications to start
from. An editor that reads YAML completes and checks a file whose first line names the JSON schema
that `remy-farm schema` prints, as in `# yaml-language-server: $schema=specification.json`. Sections
in parentheses are those of the paper *TCP ex Machina*.

* Names carry their units, and every number is finite.
* A missing key takes the default below, which is that of the newest `edition`, and a section
  without required keys may be left out. A required key that is missing is an error, as are unknown
  and repeated keys, YAML aliases and YAML tags.
* Plain words are read by the rules of YAML 1.2: `1e9` is a number, and `on` is text.
* Wherever a distribution is asked for, a bare number means that value, and a bare list means one
  of its numbers. The range given for a quantity applies to every value that can be drawn.
* `[low, high]` may stand for `{low: ..., high: ...}`.
* A list of mappings at `senders` is short for `sender_groups`: senders of several kinds.
* `buffer: infinite` and `buffer: 1000` are short for `buffer: {infinite: {}}` and
  `buffer: {packets: 1000}`.

A complete message (a DesignSpec as it is kept with a job, or beside a result) has every default
filled in, those of the `edition` that it names (`proto/README.md`).

    name: two-senders
    network:
      rate_mbps: {uniform: [10, 20]}
      rtt_ms: 150
      senders: {integer_uniform: [1, 2]}
      traffic:
        exponential_time: {mean_ms: 5000}
        mean_off_ms: 5000
"""

_HEADER: Final = "| Key | Value | Unit | Allowed | Default | Meaning |\n|---|---|---|---|---|---|"


def reference_page(proto_root: Path) -> str:
    """Returns the page as Markdown."""
    comments = read_comments(proto_root)
    sections = [_INTRODUCTION]
    for message in _messages():
        sections.append(_message_section(message, comments))
    for enum in _enums():
        sections.append(_enum_section(enum, comments))
    return _MENTION.sub(_page_link, "\n".join(sections))


def _page_link(mention: re.Match[str]) -> str:
    """Makes a link of a comment's mention of a page, and of a heading there."""
    folder, name, heading = mention["folder"], mention["name"], mention["heading"]
    page = f"{name}.md" if folder == "reference" else f"../{folder}/{name}.md"
    if heading is None:
        return f"[{name}]({page})"
    anchor = re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
    return f"[{heading}]({page}#{anchor})"


def _messages() -> list[Descriptor]:
    """Returns every message of a specification that has fields, in the order of first use."""
    messages: list[Descriptor] = []

    def visit(message: Descriptor) -> None:
        if message in messages or not message.fields:
            return
        messages.append(message)
        for field in message.fields:
            if is_submessage(field):
                visit(submessage_of(field))

    visit(descriptor_of(spec_pb2.DesignSpec))
    return messages


def _enums() -> list[EnumDescriptor]:
    enums: list[EnumDescriptor] = []
    for message in _messages():
        for field in message.fields:
            if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM and enum_of(field) not in enums:
                enums.append(enum_of(field))
    return enums


def _message_section(message: Descriptor, comments: dict[str, str]) -> str:
    rows = [_field_row(field, comments) for field in message.fields]
    return "\n".join(
        [f"## {message.name}", "", comments[message.full_name], "", *_choice(message), _HEADER]
        + [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows]
        + [""]
    )


def _choice(message: Descriptor) -> Iterator[str]:
    options: Any = message.GetOptions()
    for preset in options.Extensions[constraints_pb2.preset]:
        yield f"The preset `{preset.name}` stands for `{preset.value}`.\n"
    for oneof in message.oneofs:
        if len(oneof.fields) > 1:
            names = ", ".join(f"`{field.name}`" for field in oneof.fields)
            yield f"Exactly one of {names} is needed.\n"


def _field_row(field: FieldDescriptor, comments: dict[str, str]) -> Sequence[str]:
    constraint = constraint_of(field)
    unit = constraint.unit if constraint.unit not in ("", "1") else ""
    filled = default_text(field, NEWEST_EDITION).removeprefix("{}")
    default = "required" if constraint.required else _code(filled)
    if constraint.required_unless:
        others = ", ".join(_code(each) for each in constraint.required_unless.split())
        default = f"required unless there are {others}"
    meaning = comments[field.full_name]
    if not meaning and is_submessage(field):
        meaning = comments[submessage_of(field).full_name]
    return (_code(field.name), _value(field), unit, _allowed(field), default, meaning)


def _value(field: FieldDescriptor) -> str:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_MESSAGE:
            kind = _link(submessage_of(field)) if submessage_of(field).fields else "`{}`"
        case FieldDescriptor.CPPTYPE_ENUM:
            kind = _link(enum_of(field))
        case FieldDescriptor.CPPTYPE_STRING:
            kind = "text"
        case FieldDescriptor.CPPTYPE_BOOL:
            kind = "`true` or `false`"
        case _:
            kind = "whole number" if Bounds().within(field).integral else "number"
    if not field.is_repeated:
        return kind
    return f"list of {kind}s" if kind.endswith("number") else f"list of {kind}"


def _allowed(field: FieldDescriptor) -> str:
    constraint = constraint_of(field)
    limits = []
    if field.is_repeated:
        entries = f"{constraint.min_items} to {constraint.max_items} entries"
        limits.append(f"{entries}, all different" if constraint.unique else entries)
    if constraint.max_length:
        limits.append(f"at most {constraint.max_length} characters")
    bounds = Bounds().within(field)
    if is_submessage(field) and bounds.integral:
        limits.append("whole numbers")
    limits.append(bounds.describe_range())
    return ", ".join(limit for limit in limits if limit)


def _enum_section(enum: EnumDescriptor, comments: dict[str, str]) -> str:
    scope = enum.full_name.removesuffix(enum.name)
    values = [value for value in enum.values if value.number != 0]
    return "\n".join(
        [f"## {enum.name}", "", comments[enum.full_name], "", "| Value | Meaning |", "|---|---|"]
        + [f"| `{short_name(value)}` | {comments[scope + value.name]} |" for value in values]
        + [""]
    )


def _link(descriptor: Descriptor | EnumDescriptor) -> str:
    return f"[{descriptor.name}](#{descriptor.name.lower()})"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    sys.stdout.write(reference_page(Path(sys.argv[1] if len(sys.argv) > 1 else "proto")))
