"""Tests that every mode of a specification has a strategy, and a field in checkpoints."""

from __future__ import annotations

import pytest

from remy_farm.designer.search import ValidatingStrategy
from remy_farm.designer.strategies import STRATEGIES
from remy_farm.specification.modes import MODES, Mode
from remy_proto.v1 import checkpoint_pb2


def test_every_mode_has_a_strategy() -> None:
    assert [mode.name for mode in MODES] == ["paper", "joint", "pattern"]
    assert set(STRATEGIES) == {mode.name for mode in MODES}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_a_checkpoint_holds_the_state_of_every_mode(mode: Mode) -> None:
    state = STRATEGIES[mode.name].state.message.DESCRIPTOR
    fields = checkpoint_pb2.Checkpoint.DESCRIPTOR.oneofs_by_name["strategy"].fields
    assert {field.name: field.message_type for field in fields}[mode.name] is state


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_modes_that_design_several_tables_have_a_validating_strategy(mode: Mode) -> None:
    assert mode.designs_together == issubclass(STRATEGIES[mode.name], ValidatingStrategy)
