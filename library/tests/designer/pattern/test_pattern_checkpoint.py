"""Tests that checkpoints that the pattern search never writes are refused."""

from collections.abc import Callable
from functools import cache

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.small_pattern_spec import small_pattern_spec
from remy_farm.designer import CheckpointError, Designer
from remy_farm.designer import checkpoint as sealing
from remy_proto.v1 import checkpoint_pb2, progress_pb2

_SPEC = small_pattern_spec()


@cache
def _before(purpose: progress_pb2.StepPurpose) -> bytes:
    """Returns the checkpoint before the first step of `purpose` after epoch 0."""
    designer = Designer(_SPEC)
    evaluator = AnalyticEvaluator(noise=2.0)
    while True:
        request = designer.next_request()
        assert request is not None
        designer.receive(evaluator.evaluate(request))
        data = designer.checkpoint()
        if designer.epoch > 0 and sealing.unseal(data).pattern.purpose == purpose:
            return data


def _edited(
    purpose: progress_pb2.StepPurpose, edit: Callable[[checkpoint_pb2.PatternSearchState], object]
) -> bytes:
    """Returns the checkpoint of `_before` with a changed state and a valid hash."""
    checkpoint = sealing.unseal(_before(purpose))
    edit(checkpoint.pattern)
    return sealing.seal(checkpoint)


_IMPROVE = progress_pb2.STEP_PURPOSE_IMPROVE
_TRY_SPLITS = progress_pb2.STEP_PURPOSE_TRY_SPLITS


@pytest.mark.parametrize("purpose", [_IMPROVE, _TRY_SPLITS])
def test_checkpoint_round_trip(purpose: progress_pb2.StepPurpose) -> None:
    data = _before(purpose)
    assert Designer.resume(_SPEC, data).checkpoint() == data


@pytest.mark.parametrize(
    ("purpose", "edit"),
    [
        (_IMPROVE, lambda state: setattr(state, "purpose", 99)),
        (_IMPROVE, lambda state: setattr(state, "purpose", progress_pb2.STEP_PURPOSE_CLIMB)),
        (_IMPROVE, lambda state: state.ClearField("best")),
        (_IMPROVE, lambda state: state.ClearField("queue")),
        (_IMPROVE, lambda state: state.queue.append(99)),
        (_IMPROVE, lambda state: state.ClearField("race")),
        (_TRY_SPLITS, lambda state: state.ClearField("race")),
        (_TRY_SPLITS, lambda state: state.ClearField("splits")),
        (_TRY_SPLITS, lambda state: setattr(state.race.candidates[0], "number", 10_000)),
    ],
)
def test_a_step_that_the_search_never_makes_is_refused(
    purpose: progress_pb2.StepPurpose,
    edit: Callable[[checkpoint_pb2.PatternSearchState], object],
) -> None:
    with pytest.raises(CheckpointError, match="never makes"):
        Designer.resume(_SPEC, _edited(purpose, edit))


def test_a_race_whose_candidate_is_no_neighbour_is_refused() -> None:
    def edit(state: checkpoint_pb2.PatternSearchState) -> None:
        state.race.candidates[0].number = 10

    with pytest.raises(
        CheckpointError, match=r"candidate 10; the candidates are the \d+ neighbours"
    ):
        Designer.resume(_SPEC, _edited(_IMPROVE, edit))


def test_a_broken_table_is_refused() -> None:
    with pytest.raises(CheckpointError, match="broken table"):
        Designer.resume(_SPEC, _edited(_IMPROVE, lambda state: state.current.table.nodes.pop()))


@pytest.mark.parametrize("sizes", ["current.steps", "best_steps"])
def test_step_sizes_of_a_table_with_more_rules_are_refused(sizes: str) -> None:
    def edit(state: checkpoint_pb2.PatternSearchState) -> None:
        (state.best_steps if sizes == "best_steps" else state.current.steps).append(0.1)

    with pytest.raises(CheckpointError, match=r"step sizes for \d rules"):
        Designer.resume(_SPEC, _edited(_IMPROVE, edit))


def test_an_impossible_split_is_refused() -> None:
    def edit(state: checkpoint_pb2.PatternSearchState) -> None:
        state.splits[0].threshold.value = -1

    with pytest.raises(CheckpointError, match="impossible split"):
        Designer.resume(_SPEC, _edited(_TRY_SPLITS, edit))
