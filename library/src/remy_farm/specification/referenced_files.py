"""Reads the files that a specification refers to: link traces and fixed rule tables.

Afterwards the specification is independent of the file system: the content of a table replaces its
path, and the SHA-256 of a trace replaces its path. This process keeps the traces by their SHA-256,
and a design keeps a copy beside its results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from google.protobuf import json_format

from remy_farm.files import FileError, read_file
from remy_farm.specification.schema import Violation, child_path, show
from remy_farm.specification.traces import LARGEST_TRACE_BYTES, LinkTrace, parse_trace
from remy_proto.v1 import rule_table_pb2, spec_pb2
from remy_simulator import InvalidTable
from remy_simulator.messages import to_native

#: Folder beside a specification's file with the traces that it names by SHA-256 only.
TRACES_FOLDER = "traces"
_LARGEST_TABLE_BYTES = 1_000_000
#: The files that a specification may refer to: those in a folder, or contents by name. None: none.
Files: TypeAlias = Path | Mapping[str, bytes] | None

_traces: dict[bytes, LinkTrace] = {}


def keep_trace(trace: LinkTrace) -> None:
    """Keeps a trace in this process, where `trace_of` finds it."""
    _traces[trace.sha256] = trace


def trace_of(sha256: bytes) -> LinkTrace | None:
    """The trace with this SHA-256; None if this process has not read it."""
    return _traces.get(sha256)


def trace_hashes(spec: spec_pb2.DesignSpec) -> list[bytes]:
    """The distinct SHA-256 hashes of the traces that drive a specification's links."""
    return list(
        dict.fromkeys(
            bytes.fromhex(link.trace.sha256)
            for _, network in networks(spec)
            for link in network.links
            if link.HasField("trace")
        )
    )


def link_traces(spec: spec_pb2.DesignSpec) -> list[LinkTrace]:
    """The traces that drive a specification's links, if this process has read them."""
    traces = (trace_of(sha256) for sha256 in trace_hashes(spec))
    return [trace for trace in traces if trace is not None]


def networks(spec: spec_pb2.DesignSpec) -> Iterator[tuple[str, spec_pb2.NetworkModel]]:
    """The networks of a specification, each with its path in the specification."""
    if spec.HasField("network"):
        yield "network", spec.network
    for number, model in enumerate(spec.models):
        yield f"models[{number}].network", model.network


def named_files(spec: spec_pb2.DesignSpec) -> list[str]:
    """The distinct paths of the files that a specification refers to; see `resolve_files`."""
    paths: list[str] = []
    for _, network in networks(spec):
        paths += [link.trace.path for link in network.links if link.trace.HasField("path")]
        paths += [
            group.table.path for group in network.sender_groups if group.table.HasField("path")
        ]
    return list(dict.fromkeys(paths))


def resolve_files(
    spec: spec_pb2.DesignSpec, files: Files, keep: Callable[[LinkTrace], None] = keep_trace
) -> Iterator[Violation]:
    """Reads the files that a specification refers to, and replaces the references.

    Traces are passed to `keep`. If `files` is None, each reference to a file is a violation.
    """
    for path, network in networks(spec):
        for number, link in enumerate(network.links):
            if link.HasField("trace"):
                where = f"{path}.links[{number}].trace"
                yield from resolve_trace(link.trace, files, where, keep)
        for number, group in enumerate(network.sender_groups):
            if group.HasField("table") and group.table.HasField("path"):
                where = f"{path}.senders[{number}].table.path"
                yield from _resolve_table(group.table, files, where)


def _read(files: Path | Mapping[str, bytes], name: str, limit: int) -> bytes:
    return read_file(files / name, limit=limit) if isinstance(files, Path) else files[name]


def resolve_trace(
    trace: spec_pb2.TraceModel,
    files: Files,
    path: str,
    keep: Callable[[LinkTrace], None] = keep_trace,
) -> Iterator[Violation]:
    """Reads the trace of a link as `resolve_files` does; `path` is the trace's path in errors."""
    where, name = child_path(path, "path"), trace.path
    if trace.HasField("path"):
        if files is None:
            yield _no_files(name, where)
            return
    elif trace.HasField("sha256") and isinstance(files, Path) and trace.sha256.isalnum():
        where = child_path(path, "sha256")
        name = f"{TRACES_FOLDER}/{trace.sha256}.trace"
        if not (files / name).exists():
            return
    else:
        return
    file = str(files / name) if isinstance(files, Path) else name
    try:
        link_trace = parse_trace(_read(files, name, LARGEST_TRACE_BYTES), file)
    except FileError as error:
        yield Violation(where, f"is {show(trace.path or trace.sha256)}: {error}")
        return
    actual = link_trace.sha256.hex()
    if trace.HasField("sha256") and trace.sha256.lower() != actual:
        yield Violation(
            child_path(path, "sha256"), f"is {show(trace.sha256)}, but that of {file} is {actual}"
        )
        return
    keep(link_trace)
    trace.sha256 = actual
    trace.ClearField("path")
    if trace.semantics in spec_pb2.TraceSemantics.values() and trace.semantics:
        trace.mean_rate_mbps = link_trace.mean_rate_mbps(trace.semantics)


def _resolve_table(table: spec_pb2.FixedTable, files: Files, path: str) -> Iterator[Violation]:
    if files is None:
        yield _no_files(table.path, path)
        return
    try:
        text = _read(files, table.path, _LARGEST_TABLE_BYTES)
        problem = problem_with_table(text.decode("utf-8", "replace"))
    except FileError as error:
        problem = str(error)
    if problem is not None:
        yield Violation(path, f"is {show(table.path)}: {problem}")
        return
    tree = json.loads(text)
    # The metadata of a .dna file is not part of the table.
    tree.pop("dna_metadata", None)
    table.json = json.dumps(tree, sort_keys=True, separators=(",", ":"))
    table.ClearField("path")


def problem_with_table(text: str) -> str | None:
    """Describes what makes a JSON text no RemyCC; returns None if it is one."""
    try:
        to_native(json_format.Parse(text, rule_table_pb2.RuleTable()))
    except (json_format.ParseError, InvalidTable, RecursionError) as error:
        line = " ".join(str(error).split())[:200]
        return f"that is no RemyCC as 'remy-farm convert' writes them to .json files ({line})"
    return None


def _no_files(name: str, path: str) -> Violation:
    return Violation(
        path,
        f"is {show(name)}, but only a specification in a file can name others; give its content",
    )
