"""Commits to one job until it is killed: python -m services.tests.stores.committer STORE

Prints the revision after each acknowledged commit. A commit's content is a function of its
revision, so that a later check can verify that it is complete.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

from remy_services.stores import open_store
from remy_services.stores.contract import CheckpointStore, Commit, Conflict, StoreUnavailable

JOB = "job"
_ROOT = Path(__file__).parents[3]
_EVENTS = 3
_SNAPSHOT_BYTES = 20_000
_SNAPSHOTS = 2


def commit_to(revision: int) -> Commit:
    """Returns the commit that leads to this revision."""
    text = b"%d" % revision
    return Commit(
        record=text,
        events=[b"%d of %d" % (part, revision) for part in range(_EVENTS)],
        snapshot=text.ljust(_SNAPSHOT_BYTES, b"."),
        schema_version=1,
        epochs={revision: text},
    )


def create_job(store: CheckpointStore) -> None:
    """Creates the job."""
    store.create(JOB, commit_to(_EVENTS))


def commit_once(store: CheckpointStore, token: int, revision: int) -> int:
    """Makes one commit, with retries until the store has answered; returns the new revision."""
    commit = commit_to(revision + _EVENTS)
    while True:
        try:
            return store.commit(JOB, token, revision, commit)
        except StoreUnavailable:
            time.sleep(0.01)
        except Conflict as conflict:
            if conflict.revision != revision + _EVENTS:
                raise
            return conflict.revision


def prune(store: CheckpointStore, token: int) -> None:
    """Prunes old snapshots, unless the store is unavailable."""
    with suppress(StoreUnavailable):
        store.prune_snapshots(JOB, token, keep=_SNAPSHOTS)


def check(store: CheckpointStore, acknowledged: int) -> int:
    """Asserts that all acknowledged commits are complete; returns the job's revision."""
    job = store.job(JOB)
    assert acknowledged <= job.revision <= acknowledged + _EVENTS
    assert job.revision % _EVENTS == 0
    last = commit_to(job.revision)
    assert job.record == last.record

    made = [commit_to(revision) for revision in range(_EVENTS, job.revision + 1, _EVENTS)]
    expected = [event for commit in made for event in commit.events]
    events: list[tuple[int, bytes]] = []
    while page := store.events(JOB, after=len(events)):
        events += page
    assert events == list(enumerate(expected, 1))
    assert store.epochs(JOB) == {n: epoch for commit in made for n, epoch in commit.epochs.items()}

    # A kill may come between a commit and its pruning, so the number of snapshots varies, but they
    # are those of the newest commits.
    snapshots = store.snapshots(JOB)
    newest = [commit_to(job.revision - _EVENTS * age).snapshot for age in range(len(snapshots))]
    assert snapshots
    assert [each.data for each in snapshots] == newest
    return job.revision


def start(url: str) -> subprocess.Popen[str]:
    """Starts this module in a child process."""
    return subprocess.Popen(
        [sys.executable, "-m", "services.tests.stores.committer", url],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
    )


def main() -> None:
    with closing(open_store(sys.argv[1])) as store:
        token = store.acquire(JOB, "committer")
        revision = store.job(JOB).revision
        while True:
            revision = commit_once(store, token, revision)
            print(revision, flush=True)
            prune(store, token)


if __name__ == "__main__":
    main()
