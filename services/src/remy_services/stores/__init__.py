"""Where jobs are kept: one contract, and its implementations on SQLite and Redis."""

from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Conflict,
    Durability,
    EvaluationCache,
    Fenced,
    JobExists,
    JobMissing,
    Snapshot,
    StoredJob,
    StoreError,
    StoreUnavailable,
)
from remy_services.stores.opening import open_store
from remy_services.stores.redis.store import RedisStore
from remy_services.stores.snapshots import RefusedSnapshot, newest_snapshot, retire_snapshots
from remy_services.stores.sqlite.store import SqliteStore

__all__ = [
    "CheckpointStore",
    "Commit",
    "Conflict",
    "Durability",
    "EvaluationCache",
    "Fenced",
    "JobExists",
    "JobMissing",
    "RedisStore",
    "RefusedSnapshot",
    "Snapshot",
    "SqliteStore",
    "StoreError",
    "StoreUnavailable",
    "StoredJob",
    "newest_snapshot",
    "open_store",
    "retire_snapshots",
]
