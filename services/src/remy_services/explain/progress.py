"""How far a study has got."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """A part of a study, and how many of its tables have been tried."""

    part: str
    tried: int
    tables: int


OnProgress = Callable[[Progress], None]
"""Called before each of these tables; what it raises comes out of the study."""


def unheard(_: Progress) -> None:
    """For whom nobody waits."""
