"""Enclosures: files that a specification names, recordings of links and tables of other senders.

Once they are read a specification says all that a design needs, wherever it goes: a table is in
its text, and a recording is known by its hash. What the hashes stand for is kept by this process,
and beside a design's results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from google.protobuf import json_format

from remy_farm.v1 import rule_table_pb2, spec_pb2
from remy_services.files import FileError, read_file
from remy_services.specification.schema import Violation, child_path, show
from remy_services.specification.traces import RecordedLink, read_trace
from remy_simulator import InvalidTable
from remy_simulator.messages import to_native

#: Where the recordings of a specification that names hashes alone are, beside its file.
TRACES_FOLDER = "traces"
_LARGEST_TABLE_BYTES = 1_000_000

_recordings: dict[bytes, RecordedLink] = {}


def keep_recording(recording: RecordedLink) -> None:
    """Has `recording_of` know it from now on."""
    _recordings[recording.sha256] = recording


def recording_of(sha256: bytes) -> RecordedLink | None:
    """What a hash stands for, if this process has read it."""
    return _recordings.get(sha256)


def trace_hashes(spec: spec_pb2.DesignSpec) -> list[bytes]:
    """What the recordings that a specification's links follow are named by, each once."""
    return list(
        dict.fromkeys(
            bytes.fromhex(link.trace.sha256)
            for _, network in networks(spec)
            for link in network.links
            if link.HasField("trace")
        )
    )


def recordings_of(spec: spec_pb2.DesignSpec) -> list[RecordedLink]:
    """Those that a specification's links follow, as far as this process has read them."""
    found = (recording_of(sha256) for sha256 in trace_hashes(spec))
    return [recording for recording in found if recording is not None]


def networks(spec: spec_pb2.DesignSpec) -> Iterator[tuple[str, spec_pb2.NetworkModel]]:
    """The networks that a specification has, each with its path."""
    if spec.HasField("network"):
        yield "network", spec.network
    for number, model in enumerate(spec.models):
        yield f"models[{number}].network", model.network


def enclose(spec: spec_pb2.DesignSpec, folder: Path | None) -> Iterator[Violation]:
    """Reads the files that a specification names, from the folder that it is in, and writes into it
    what takes their place. Without a folder it may not name any."""
    for path, network in networks(spec):
        for number, link in enumerate(network.links):
            if link.HasField("trace"):
                yield from enclose_trace(link.trace, folder, f"{path}.links[{number}].trace")
        for number, group in enumerate(network.groups):
            if group.HasField("table") and group.table.HasField("path"):
                where = f"{path}.groups[{number}].table.path"
                yield from _enclose_table(group.table, folder, where)


def enclose_trace(
    trace: spec_pb2.TraceModel, folder: Path | None, path: str
) -> Iterator[Violation]:
    """The same for the recording of a link."""
    where = child_path(path, "path")
    if trace.HasField("path"):
        if folder is None:
            yield _nowhere(trace.path, where)
            return
        file = folder / trace.path
    elif trace.HasField("sha256") and folder is not None and trace.sha256.isalnum():
        where = child_path(path, "sha256")
        file = folder / TRACES_FOLDER / f"{trace.sha256}.trace"
        if not file.exists():
            return
    else:
        return
    try:
        recording = read_trace(file)
    except FileError as error:
        yield Violation(where, f"is {show(trace.path or trace.sha256)}: {error}")
        return
    found = recording.sha256.hex()
    if trace.HasField("sha256") and trace.sha256.lower() != found:
        yield Violation(
            child_path(path, "sha256"), f"is {show(trace.sha256)}, but that of {file} is {found}"
        )
        return
    keep_recording(recording)
    trace.sha256 = found
    trace.ClearField("path")
    if trace.semantics in spec_pb2.TraceSemantics.values() and trace.semantics:
        trace.mean_rate_mbps = recording.mean_rate_mbps(trace.semantics)


def _enclose_table(
    table: spec_pb2.GivenTable, folder: Path | None, path: str
) -> Iterator[Violation]:
    if folder is None:
        yield _nowhere(table.path, path)
        return
    try:
        text = read_file(folder / table.path, limit=_LARGEST_TABLE_BYTES)
        problem = problem_with_table(text.decode("utf-8", "replace"))
    except FileError as error:
        problem = str(error)
    if problem is not None:
        yield Violation(path, f"is {show(table.path)}: {problem}")
        return
    tree = json.loads(text)
    # What a .dna file held beside the table.
    tree.pop("dna_metadata", None)
    table.json = json.dumps(tree, sort_keys=True, separators=(",", ":"))
    table.ClearField("path")


def problem_with_table(text: str) -> str | None:
    """Why a text is no RemyCC; None if it is one."""
    try:
        to_native(json_format.Parse(text, rule_table_pb2.RuleTable()))
    except (json_format.ParseError, InvalidTable, RecursionError) as error:
        line = " ".join(str(error).split())[:200]
        return f"that is no RemyCC as 'remy-farm convert' writes them to .json files ({line})"
    return None


def _nowhere(name: str, path: str) -> Violation:
    return Violation(
        path,
        f"is {show(name)}, but only a specification in a file can name others; give its content",
    )
