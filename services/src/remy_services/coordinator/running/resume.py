"""A job's designer: new, or from the newest of its snapshots that can be used."""

from __future__ import annotations

from collections.abc import Sequence

from remy_farm.v1 import job_pb2
from remy_services.designer import CheckpointError, Designer, OtherVersionError
from remy_services.stores import RefusedSnapshot, Snapshot
from remy_simulator import RuleTable
from remy_simulator.messages import to_native

#: Version of what snapshots hold: the designer's sealed checkpoint, whose own version is inside.
SCHEMA_VERSION = 1


class SnapshotsLost(Exception):
    """None of a job's snapshots can be used. One sentence for people."""


def designer_of(
    record: job_pb2.JobRecord, snapshot: Snapshot | None, refused: Sequence[RefusedSnapshot]
) -> Designer:
    """The designer that the newest intact snapshot holds; a new one for a job that never had any.

    `refused` are the snapshots that are newer and not intact. Raises SnapshotsLost,
    OtherVersionError for a snapshot that another version made, or DesignerError.
    """
    first = first_table(record)
    if snapshot is None:
        if not refused and not record.job.HasField("start_time"):
            return Designer(record.job.spec, first_table=first)
        reasons = "; ".join(each.why for each in refused) or "the store holds none"
        raise SnapshotsLost(f"the job cannot go on without a snapshot: {reasons}")
    if snapshot.schema_version != SCHEMA_VERSION:
        raise OtherVersionError(
            f"the snapshot has schema version {snapshot.schema_version}; this program reads "
            f"version {SCHEMA_VERSION} only"
        )
    try:
        return Designer.resume(record.job.spec, snapshot.data, first_table=first)
    except OtherVersionError:
        raise
    except CheckpointError as error:
        raise SnapshotsLost(str(error)) from error


def first_table(record: job_pb2.JobRecord) -> RuleTable | None:
    """The table that the job's design began with; None if it was the search's own."""
    return to_native(record.first_table) if record.HasField("first_table") else None
