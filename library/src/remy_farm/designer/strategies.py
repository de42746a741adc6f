"""Registers the strategies that a specification may select with `search.mode`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from remy_farm.designer.joint import JointStrategy
from remy_farm.designer.paper import PaperStrategy
from remy_farm.designer.pattern import PatternStrategy
from remy_farm.designer.search import Strategy

#: Strategies by name. The name is the mode's, the field's of `Search` that has the settings, and
#: the field's of `Checkpoint` that has the state.
STRATEGIES: Final[Mapping[str, type[Strategy[Any]]]] = {
    strategy.field: strategy
    for strategy in (
        PaperStrategy,
        JointStrategy,
        PatternStrategy,
    )
}
