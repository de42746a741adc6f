"""What the published tables score, and where their files are."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from remy_services.files import FileError
from remy_services.yardstick.score import YardstickScore

REFERENCE_VARIABLE: Final = "REMY_REFERENCE_DIR"


@dataclass(frozen=True)
class PublishedScore:
    """A published table's score on the yardstick."""

    name: str
    rules: int
    mean: float
    pooled: float
    #: By score.GROUPS.
    groups: tuple[float, ...]

    @classmethod
    def measured(cls, name: str, rules: int, score: YardstickScore) -> PublishedScore:
        """Of a table that was just measured."""
        mean, pooled, *groups = (
            each.mean if each else math.nan for each in (score.mean, score.pooled, *score.groups)
        )
        return cls(name, rules, mean, pooled, tuple(groups))


#: For delta = 1, quoted from a measurement on other specimens (standard errors .005 to .027).
QUOTED: Final = (
    PublishedScore("2013-delta0.1", 162, -0.436, -0.476, (-0.43, -0.35, -0.38, -0.52)),
    PublishedScore("2013-delta1", 190, -0.485, -0.436, (-0.84, -0.59, -0.43, -0.42)),
    PublishedScore("2013-delta10", 197, -0.807, -0.518, (-2.25, -1.46, -0.72, -0.35)),
)
QUOTED_DELTA: Final = 1.0


def best_groups(published: tuple[PublishedScore, ...]) -> tuple[float, ...]:
    """The best published score of each group; empty of none."""
    return tuple(max(column) for column in zip(*(each.groups for each in published), strict=True))


def published_files() -> list[Path]:
    """The .dna files of the published tables. Raises FileError if there are none."""
    files = sorted(_files())
    if not files:
        raise FileError(
            f"{REFERENCE_VARIABLE} is {os.environ.get(REFERENCE_VARIABLE)!r}, but must name the "
            "folder whose subfolder remyccs holds the published .dna files"
        )
    return files


def _files() -> Iterator[Path]:
    folder = os.environ.get(REFERENCE_VARIABLE)
    if folder:
        yield from (Path(folder) / "remyccs").glob("*.dna")
