"""Runs a design in-process, as the reference for designs of a coordinator."""

from __future__ import annotations

from pathlib import Path

from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.progress import read_events
from remy_farm.driver.run import DesignRun
from remy_proto.v1 import progress_pb2, spec_pb2

_DESIGNED: dict[bytes, tuple[bytes, list[progress_pb2.ProgressEvent]]] = {}


def embedded_design(
    spec: spec_pb2.DesignSpec, folder: Path
) -> tuple[bytes, list[progress_pb2.ProgressEvent]]:
    """Returns the final remycc.json and all events without clock fields.

    Results are cached per process, so `folder` is only written for a new specification.
    """
    key = spec.SerializeToString(deterministic=True)
    if key not in _DESIGNED:
        DesignRun(spec, folder, threads=2).run()
        out = OutDirectory(folder)
        events = [without_clocks(each) for each in read_events(out.progress)]
        _DESIGNED[key] = out.remycc_json.read_bytes(), events
    table, events = _DESIGNED[key]
    return table, list(events)


def without_clocks(event: progress_pb2.ProgressEvent) -> progress_pb2.ProgressEvent:
    """Returns the event without the fields that differ between runs."""
    copy = progress_pb2.ProgressEvent()
    copy.CopyFrom(event)
    copy.ClearField("wall_seconds")
    copy.ClearField("cpu_seconds")
    return copy
