"""campaign.json: the members that are finished, and how they compare."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from remy_services.campaign.comparison import Comparison
from remy_services.files import FileError, read_file, write_file
from remy_services.report.trial import Estimate
from remy_services.spec.text import Tree

_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class MemberRecord:
    """A member whose design is finished."""

    #: Also of its folder.
    name: str
    settings: dict[str, Tree]
    #: Of its specification with all budgets: a record of another one does not count.
    spec_digest: str
    #: As in "schedule_complete".
    reason: str
    steps: int
    epochs: int
    rules: int
    cpu_seconds: float
    wall_seconds: float
    comparison: Comparison


class CampaignRecord:
    """The records by name, in the order of the campaign."""

    def __init__(self, records: dict[str, MemberRecord] | None = None) -> None:
        self._records = dict(records or {})

    @classmethod
    def read(cls, path: Path) -> CampaignRecord:
        """What a file holds; nothing if there is none. Raises FileError."""
        if not path.exists():
            return cls()
        try:
            members = json.loads(read_file(path, limit=_MOST_BYTES))["members"]
            records = [_record(tree) for tree in members]
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"{path} is not the record of a campaign; remove it to compare all members anew"
            ) from error
        return cls({record.name: record for record in records})

    def write(self, path: Path) -> None:
        """Raises FileError."""
        write_file(path, json.dumps(self.tree(), indent=2, allow_nan=False) + "\n")

    def tree(self) -> dict[str, Any]:
        """As JSON."""
        return {"members": [asdict(record) for record in self._records.values()]}

    def finished(self, name: str, spec_digest: str) -> MemberRecord | None:
        """The record of a member with that very specification."""
        record = self._records.get(name)
        return record if record is not None and record.spec_digest == spec_digest else None

    def add(self, record: MemberRecord) -> None:
        """Takes the place of an earlier record of that name."""
        self._records[record.name] = record

    def of(self, names: list[str]) -> list[MemberRecord]:
        """The records of these members, as far as they are finished."""
        return [self._records[name] for name in names if name in self._records]


def _record(tree: dict[str, Any]) -> MemberRecord:
    comparison = tree["comparison"]
    return MemberRecord(
        **{
            **tree,
            "comparison": Comparison(
                **{
                    **comparison,
                    "score": _estimate(comparison["score"]),
                    "normalized_score": _estimate(comparison["normalized_score"]),
                }
            ),
        }
    )


def _estimate(tree: dict[str, Any] | None) -> Estimate | None:
    return None if tree is None else Estimate(**tree)
