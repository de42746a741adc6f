"""The registry of strategies: all searches that a specification may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from remy_farm.designer.joint import JointStrategy
from remy_farm.designer.paper import PaperStrategy
from remy_farm.designer.pattern import PatternStrategy
from remy_farm.designer.search import Strategy

#: By name: that of the mode, of the field of `Search` with its settings, and of the field of
#: `Checkpoint` with its state.
STRATEGIES: Final[Mapping[str, type[Strategy[Any]]]] = {
    strategy.field: strategy
    for strategy in (
        PaperStrategy,
        JointStrategy,
        PatternStrategy,
    )
}
