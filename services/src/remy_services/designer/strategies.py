"""Which strategy a specification or a checkpoint asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from remy_farm.v1 import checkpoint_pb2, spec_pb2
from remy_services.designer.errors import CheckpointError, DesignerError
from remy_services.designer.joint import JointSearch
from remy_services.designer.paper import PaperSearch
from remy_services.designer.pattern import PatternSearch
from remy_services.designer.scoring import SpecimenScore
from remy_services.designer.strategy import Strategy
from remy_simulator import RuleTable


@dataclass(frozen=True)
class _Mode:
    """A way to search."""

    #: The checkpoint's field for its state.
    field: str
    start: Callable[[spec_pb2.DesignSpec, SpecimenScore, RuleTable | None], Strategy]
    restore: Callable[
        [spec_pb2.DesignSpec, SpecimenScore, checkpoint_pb2.Checkpoint, RuleTable | None], Strategy
    ]


_MODES = {
    spec_pb2.SEARCH_MODE_PAPER: _Mode("paper", PaperSearch, PaperSearch.restore),
    spec_pb2.SEARCH_MODE_JOINT: _Mode("joint", JointSearch, JointSearch.restore),
    spec_pb2.SEARCH_MODE_PATTERN: _Mode("pattern", PatternSearch, PatternSearch.restore),
}


def new_strategy(
    spec: spec_pb2.DesignSpec, specimen_score: SpecimenScore, given: RuleTable | None = None
) -> Strategy:
    """The strategy of `search.mode` at its beginning, with the given table if there is one.

    Raises DesignerError.
    """
    return _mode(spec).start(spec, specimen_score, given)


def restored_strategy(
    spec: spec_pb2.DesignSpec,
    specimen_score: SpecimenScore,
    checkpoint: checkpoint_pb2.Checkpoint,
    given: RuleTable | None = None,
) -> Strategy:
    """The strategy where the checkpoint left it; `given` as it began. Raises CheckpointError."""
    mode, saved = _mode(spec), checkpoint.WhichOneof("strategy")
    if saved != mode.field:
        raise CheckpointError(
            f"the checkpoint holds the state of the search {saved!r}; the specification asks for "
            f"{mode.field!r}"
        )
    return mode.restore(spec, specimen_score, checkpoint, given)


def _mode(spec: spec_pb2.DesignSpec) -> _Mode:
    if spec.search.mode not in _MODES:
        raise DesignerError(
            f"search.mode is number {spec.search.mode}; this designer has no such search"
        )
    return _MODES[spec.search.mode]
