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

__all__ = [
    "CheckpointStore",
    "Commit",
    "Conflict",
    "Durability",
    "EvaluationCache",
    "Fenced",
    "JobExists",
    "JobMissing",
    "Snapshot",
    "StoreError",
    "StoreUnavailable",
    "StoredJob",
]
