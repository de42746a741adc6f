"""Checks of arguments that all stores make alike. What they raise is a defect of the caller."""

from __future__ import annotations

from remy_services.stores.contract import Commit


def check_commit(commit: Commit) -> None:
    """Raises ValueError for a commit that says nothing, or keeps a snapshot of no revision."""
    if not commit.events:
        raise ValueError("a commit has no event; at least 1 is needed")
    if commit.snapshot is None and commit.snapshot_revision is not None:
        raise ValueError("a commit has the revision of a snapshot, and no snapshot")


def check_page(after: int, limit: int) -> None:
    """Raises ValueError unless a part of a history can be meant."""
    if after < 0 or limit < 1:
        raise ValueError(
            f"after is {after} and limit is {limit}; at least 0 and at least 1 are needed"
        )


def check_keep(keep: int) -> None:
    """Raises ValueError if no snapshot would be left."""
    if keep < 1:
        raise ValueError(f"keep is {keep}; at least 1 is needed")
