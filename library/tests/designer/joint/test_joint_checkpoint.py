"""Tests that checkpoints that the joint search never writes are refused."""

from collections.abc import Callable

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.recorded_design import make_steps
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import CheckpointError, Designer
from remy_farm.designer import checkpoint as sealing
from remy_proto.v1 import checkpoint_pb2, progress_pb2, rule_table_pb2

_SPEC = small_joint_spec(starts=2, start_steps=3, first_split=2, splits="disagreement")


def _checkpoint() -> bytes:
    """Returns a checkpoint in the second of two short climbs, with rules on trial.

    Every field of the state is set.
    """
    designer = Designer(_SPEC)
    make_steps(designer, AnalyticEvaluator().evaluate, 10)
    return designer.checkpoint()


_DATA = _checkpoint()


def _edited(edit: Callable[[checkpoint_pb2.JointSearchState], object]) -> bytes:
    """Returns the checkpoint with a changed state and a valid hash."""
    checkpoint = sealing.unseal(_DATA)
    edit(checkpoint.joint)
    return sealing.seal(checkpoint)


def test_the_checkpoint_has_every_field_of_the_state() -> None:
    state = sealing.unseal(_DATA).joint
    assert state.start == 1
    assert state.climb.steps == 2
    empty = {field.name for field in state.DESCRIPTOR.fields} - {
        field.name for field, _ in state.ListFields()
    }
    assert not empty


def test_a_checkpoint_with_any_damaged_byte_is_refused() -> None:
    for index in range(len(_DATA)):
        damaged = bytearray(_DATA)
        damaged[index] ^= 1 << index % 8
        with pytest.raises(CheckpointError):
            Designer.resume(_SPEC, bytes(damaged))


def test_a_truncated_checkpoint_is_refused() -> None:
    for length in range(len(_DATA)):
        with pytest.raises(CheckpointError, match=f"{length} bytes"):
            Designer.resume(_SPEC, _DATA[:length])


def test_the_state_of_another_search_is_refused() -> None:
    checkpoint = sealing.unseal(_DATA)
    paper = sealing.unseal(Designer(small_spec()).checkpoint())
    checkpoint.paper.CopyFrom(paper.paper)
    with pytest.raises(CheckpointError, match=r"search 'paper'; .* selects search 'joint'"):
        Designer.resume(_SPEC, sealing.seal(checkpoint))


@pytest.mark.parametrize(
    "field", ["purpose", "climb", "best", "best_start", "best_start_score", "trials"]
)
def test_a_state_with_a_missing_field_is_refused(field: str) -> None:
    with pytest.raises(CheckpointError):
        Designer.resume(_SPEC, _edited(lambda state: state.ClearField(field)))


@pytest.mark.parametrize(
    "purpose", [progress_pb2.STEP_PURPOSE_IMPROVE, progress_pb2.STEP_PURPOSE_CLOSE, 99]
)
def test_a_step_that_the_search_never_makes_is_refused(purpose: int) -> None:
    with pytest.raises(CheckpointError, match="never makes"):
        Designer.resume(_SPEC, _edited(lambda state: setattr(state, "purpose", purpose)))


def test_trials_are_refused_if_the_next_step_is_no_trial() -> None:
    with pytest.raises(CheckpointError, match="splits on trial; there must be"):
        Designer.resume(
            _SPEC,
            _edited(lambda state: setattr(state, "purpose", progress_pb2.STEP_PURPOSE_CLIMB)),
        )


def test_trials_of_missing_rules_are_refused() -> None:
    with pytest.raises(CheckpointError, match="impossible split"):
        Designer.resume(_SPEC, _edited(lambda state: setattr(state.trials[0], "rule", 8)))


@pytest.mark.parametrize(
    "table",
    [
        lambda state: state.climb.table,
        lambda state: state.best.table,
        lambda state: state.best_start.table,
    ],
    ids=["climb", "best", "best start"],
)
def test_a_broken_table_is_refused(table: Callable[..., rule_table_pb2.RuleTable]) -> None:
    with pytest.raises(CheckpointError, match="broken table"):
        Designer.resume(_SPEC, _edited(lambda state: table(state).nodes.pop()))


def test_a_table_in_flight_with_another_number_of_rules_is_refused() -> None:
    other = sealing.unseal(_DATA).joint.best.table
    assert len(other.nodes) != len(sealing.unseal(_DATA).joint.climb.table.nodes)
    with pytest.raises(CheckpointError, match="table in flight with"):
        Designer.resume(_SPEC, _edited(lambda state: state.climb.tables_in_flight.append(other)))


def test_too_few_coordinates_for_the_table_are_refused() -> None:
    with pytest.raises(CheckpointError, match="numbers"):
        Designer.resume(_SPEC, _edited(lambda state: state.climb.coordinates.pop()))
