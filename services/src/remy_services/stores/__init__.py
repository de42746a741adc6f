"""Where jobs are kept: one contract, and its implementations on SQLite and Redis.

Around the stores: snapshots that can be trusted, jobs as files, and a mirror of those.
"""

from remy_services.stores.archive import (
    ArchiveError,
    Backup,
    export_job,
    import_job,
    put_archive,
    read_archive,
    seal_archive,
    unseal_archive,
)
from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Conflict,
    Durability,
    Fenced,
    JobExists,
    JobMissing,
    RefusedSnapshot,
    Snapshot,
    StoredJob,
    StoreError,
    StoreUnavailable,
    newest_snapshot,
    retire_snapshots,
)
from remy_services.stores.opening import open_store
from remy_services.stores.redis.store import RedisStore
from remy_services.stores.sqlite import SqliteStore

__all__ = [
    "ArchiveError",
    "Backup",
    "CheckpointStore",
    "Commit",
    "Conflict",
    "Durability",
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
    "export_job",
    "import_job",
    "newest_snapshot",
    "open_store",
    "put_archive",
    "read_archive",
    "retire_snapshots",
    "seal_archive",
    "unseal_archive",
]
