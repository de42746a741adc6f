"""The tables of a store of jobs."""

from __future__ import annotations

from remy_services.stores.sqlite.database import Layout

JOB_TABLES = Layout(
    title="a store of jobs",
    application_id=int.from_bytes(b"RMYJ", "big"),
    schema_version=1,
    tables="""
        CREATE TABLE jobs (
            job_id TEXT PRIMARY KEY,
            record BLOB NOT NULL,
            revision INTEGER NOT NULL,
            token INTEGER NOT NULL,
            holder TEXT NOT NULL,
            request_key TEXT UNIQUE
        );
        CREATE TABLE events (
            job_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            event BLOB NOT NULL,
            PRIMARY KEY (job_id, revision)
        );
        CREATE TABLE epochs (
            job_id TEXT NOT NULL,
            number INTEGER NOT NULL,
            epoch BLOB NOT NULL,
            PRIMARY KEY (job_id, number)
        );
        CREATE TABLE snapshots (
            job_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            schema_version INTEGER NOT NULL,
            data BLOB NOT NULL,
            sha256 BLOB NOT NULL,
            PRIMARY KEY (job_id, revision)
        );
        -- Tokens are never used twice, not even for a job that is deleted and comes back.
        CREATE TABLE last_token (token INTEGER NOT NULL);
        INSERT INTO last_token VALUES (0);
        CREATE TABLE checks (made INTEGER NOT NULL);
        INSERT INTO checks VALUES (0);
    """,
    synchronous="FULL",
)
