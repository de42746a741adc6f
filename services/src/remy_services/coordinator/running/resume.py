"""A job's designer: new, or from the newest of its snapshots that can be used."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.v1 import job_pb2
from remy_services.designer import CheckpointError, Designer, OtherVersionError
from remy_services.stores import Snapshot
from remy_simulator import RuleTable
from remy_simulator.messages import to_native

#: Version of what snapshots hold: the designer's sealed checkpoint, whose own version is inside.
SCHEMA_VERSION = 1


class SnapshotsLost(Exception):
    """None of a job's snapshots can be used. One sentence for people."""


@dataclass(frozen=True)
class Refused:
    """A snapshot that cannot be used, and why, in one sentence."""

    revision: int
    why: str


@dataclass(frozen=True)
class Beginning:
    """Where a run begins."""

    designer: Designer
    #: Snapshots that are newer than the one it was made of, newest first.
    refused: Sequence[Refused] = ()
    #: Revision of that one; None for a new designer.
    revision: int | None = None


def beginning_of(record: job_pb2.JobRecord, snapshots: Sequence[Snapshot]) -> Beginning:
    """The designer of the newest good snapshot; a new one for a job that never had any.

    `snapshots` are all that there are, newest first. Raises SnapshotsLost, OtherVersionError for
    a snapshot that another version made, or DesignerError.
    """
    first = first_table(record)
    if not snapshots and not record.job.HasField("start_time"):
        return Beginning(Designer(record.job.spec, first_table=first))
    refused: list[Refused] = []
    for snapshot in snapshots:
        try:
            designer = _designer_of(record, snapshot, first)
        except OtherVersionError:
            raise
        except CheckpointError as error:
            refused.append(Refused(snapshot.revision, str(error)))
        else:
            return Beginning(designer, refused, snapshot.revision)
    reasons = "; ".join(f"that of revision {each.revision}: {each.why}" for each in refused)
    raise SnapshotsLost(f"no snapshot can be used ({reasons or 'the store holds none'})")


def first_table(record: job_pb2.JobRecord) -> RuleTable | None:
    """The table that the job's design began with; None if it was the search's own."""
    return to_native(record.first_table) if record.HasField("first_table") else None


def _designer_of(
    record: job_pb2.JobRecord, snapshot: Snapshot, first: RuleTable | None
) -> Designer:
    if hashlib.sha256(snapshot.data).digest() != snapshot.sha256:
        raise CheckpointError(
            f"the snapshot ({len(snapshot.data)} bytes) is damaged: its content and its hash differ"
        )
    if snapshot.schema_version != SCHEMA_VERSION:
        raise OtherVersionError(
            f"the snapshot has schema version {snapshot.schema_version}; this program reads "
            f"version {SCHEMA_VERSION} only"
        )
    return Designer.resume(record.job.spec, snapshot.data, first_table=first)
