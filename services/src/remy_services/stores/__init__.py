"""Where jobs are kept: one contract, and its implementations on SQLite and Redis.

Around the stores: snapshots that can be trusted, jobs as files, a mirror of those, and a cache of
evaluations.
"""

from remy_services.stores.archive import (
    ArchiveError,
    import_job,
    put_archive,
    seal_archive,
    unseal_archive,
)
from remy_services.stores.cache import open_cache
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
from remy_services.stores.evaluation_key import evaluation_key, request_keys, table_digest
from remy_services.stores.exporting import export_job, read_archive
from remy_services.stores.mirror import Mirror
from remy_services.stores.opening import open_store
from remy_services.stores.redis.store import RedisStore
from remy_services.stores.snapshots import RefusedSnapshot, newest_snapshot, retire_snapshots
from remy_services.stores.sqlite.store import SqliteStore

__all__ = [
    "ArchiveError",
    "CheckpointStore",
    "Commit",
    "Conflict",
    "Durability",
    "EvaluationCache",
    "Fenced",
    "JobExists",
    "JobMissing",
    "Mirror",
    "RedisStore",
    "RefusedSnapshot",
    "Snapshot",
    "SqliteStore",
    "StoreError",
    "StoreUnavailable",
    "StoredJob",
    "evaluation_key",
    "export_job",
    "import_job",
    "newest_snapshot",
    "open_cache",
    "open_store",
    "put_archive",
    "read_archive",
    "request_keys",
    "retire_snapshots",
    "seal_archive",
    "table_digest",
    "unseal_archive",
]
