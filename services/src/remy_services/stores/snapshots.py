"""Snapshots that can be trusted: damage is found by their hashes, and the one before is used."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from remy_services.stores.contract import CheckpointStore, Snapshot


@dataclass(frozen=True)
class RefusedSnapshot:
    """A snapshot that is not what was committed."""

    revision: int
    #: One sentence for people.
    why: str


def newest_snapshot(
    store: CheckpointStore, job_id: str
) -> tuple[Snapshot | None, list[RefusedSnapshot]]:
    """The job's newest snapshot that is intact, and the newer ones that are not, newest first.

    None if no intact one is left. Raises StoreError.
    """
    refused: list[RefusedSnapshot] = []
    for snapshot in store.snapshots(job_id):
        if _is_intact(snapshot):
            return snapshot, refused
        refused.append(_refusal(snapshot))
    return None, refused


def retire_snapshots(
    store: CheckpointStore, job_id: str, token: int, *, keep: int = 2
) -> list[RefusedSnapshot]:
    """Removes the oldest snapshots, so that `keep` >= 1 intact ones are left.

    Nothing is removed until the newest one, which was durable when its commit was acknowledged, has
    been read back and is what was committed. Returns the damaged ones among those that it read. To
    be called between two commits. Raises Fenced and other StoreErrors.
    """
    refused = []
    intact = 0
    for position, snapshot in enumerate(store.snapshots(job_id)):
        if _is_intact(snapshot):
            intact += 1
        else:
            refused.append(_refusal(snapshot))
            if position == 0:
                break
        if intact == keep:
            store.prune_snapshots(job_id, token, keep=position + 1)
            break
    return refused


def _is_intact(snapshot: Snapshot) -> bool:
    return hashlib.sha256(snapshot.data).digest() == snapshot.sha256


def _refusal(snapshot: Snapshot) -> RefusedSnapshot:
    return RefusedSnapshot(
        snapshot.revision,
        f"the snapshot of revision {snapshot.revision} ({len(snapshot.data)} bytes) is damaged: "
        "its content and its hash differ",
    )
