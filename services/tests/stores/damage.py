"""Corrupts stored data directly in the database."""

from __future__ import annotations

from remy_services.stores.contract import CheckpointStore
from remy_services.stores.redis.store import RedisStore
from remy_services.stores.sqlite import SqliteStore


def damage_snapshot(store: CheckpointStore, job_id: str, revision: int) -> None:
    """Overwrites the last byte of a snapshot."""
    if isinstance(store, SqliteStore):
        with store._database.writing() as connection:
            changed = connection.execute(
                "UPDATE snapshots SET data = CAST(substr(data, 1, length(data) - 1) || 'X' AS BLOB)"
                " WHERE job_id = ? AND revision = ?",
                (job_id, revision),
            )
            assert changed.rowcount == 1
    else:
        assert isinstance(store, RedisStore)
        key = store._keys.snapshots(job_id)
        value = store._server.read("HGET", key, revision)
        store._server.read("HSET", key, revision, value[:-1] + b"X")
